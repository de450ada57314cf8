//! The front door: MCP 2026-07-28 and earlier revisions, over HTTP and stdio.
//!
//! [`ladder`] says what is wrong with a request, [`door`] decides which way it goes, [`tasks`], [`call`] and [`listen`] answer what is ours,
//! and [`handler`] is what rmcp drives for everything else. [`stdio`] is the door of a client that started the server itself.

pub(crate) mod budget;
pub(crate) mod call;
mod depth;
pub(crate) mod door;
mod envelope;
pub(crate) mod fault;
pub(crate) mod handler;
mod headers;
mod holding;
pub(crate) mod ladder;
pub(crate) mod listen;
pub(crate) mod origin;
mod param_headers;
mod pieces;
pub(crate) mod refusal;
pub(crate) mod request_state;
pub(crate) mod sessions;
pub(crate) mod stdio;
mod tasks;
mod until;
