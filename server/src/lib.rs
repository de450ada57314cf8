//! MCP tools as tasks that survive, over the model-checked machines of [`tokkuri_core`].
//!
//! The crate map: [`app`] puts a server together, [`tool`] is how a tool is declared, [`store`] where tasks are kept, [`engine`] drives core's machines,
//! [`listener`] accepts connections, [`auth`] says who is calling, [`config`] what an operator can set, [`telemetry`] what is counted, [`admin`] where operators look, [`client`] speaks to such servers, [`cluster`] is what nodes and operators say over gRPC, [`cli`] is the command.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod admin;
pub mod app;
pub mod auth;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod config;
pub mod demo;
pub mod engine;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod listener;
mod mcp;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod wall_clock;

pub use app::{Server, Settings, Tokkuri};
/// What a [`store::Store`] is asked in: the very version that this crate is built on.
pub use tokkuri_core;

/// The README's Rust compiles, too.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
