//! The task engine of MCP servers, as pure machines.
//!
//! This crate decides everything that can go wrong with the tasks of the Model Context Protocol extension
//! `io.modelcontextprotocol/tasks`: a cancel that races a result, an answer that arrives while nobody waits, a worker that
//! comes back from the dead, two nodes that admit the last place of an owner at once. It does so without a clock, without
//! randomness, without I/O and without async: time, identifiers and the store's answers come in as arguments, and what has to
//! happen comes out as values. So the very code that runs in production is the code that `tokkuri-model` checks.
//!
//! # How the machines stack
//!
//! | module | decides |
//! |---|---|
//! | [`task`] | what one task is, and every way it can change: [`Task::apply`](task::Task::apply) |
//! | [`procedure`] | how a request is carried out against a store that others write too: load, apply, commit, retry, then effects |
//! | [`store`] | the protocol between procedures and a store, as data, and a reference store |
//! | [`run`] | what the run of one attempt is owed: answers, a stop, the writing of its progress |
//! | [`host`] | the table of a node's runs, and how readings of the store and signals reach them |
//! | [`lease`] | until when a node may trust its lease, when it has to stop everything, and whether it drains |
//! | [`follow`] | which snapshots of a task its followers are still owed |
//! | [`queue`] | which runs of a node have a place, and who is next: fair between owners |
//! | [`replay`] | what a tool that asks on the request itself gets, round by round |
//! | [`admission`] | whether a call becomes a task, runs in the request, or is refused |
//! | [`access`] | whose task it is and which scopes it needs |
//! | [`form`] | whether an answer fits the question that was asked |
//! | [`wire`] | the JSON shapes of the extension |
//! | [`signal`] | the one module with locks and wakers: what a waiting run and the requests that reach it share (feature `std`) |
//!
//! # Embedding
//!
//! A host does three things: it carries out [`store::Request`]s, it spawns and stops runs, and it feeds procedures until they
//! are [`Step::Done`](procedure::Step::Done). `examples/threads.rs` is such a host over plain threads and channels.
//!
//! Everything is generic over an opaque [`Payload`](payload::Payload) (arguments, questions, answers, results). Servers use
//! [`wire::Json`], which carries JSON text byte for byte; models use a small number.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

extern crate alloc;

// Whether a wrong rule is in force: never, but in builds for the test of the model itself.
#[cfg(not(tokkuri_mutants))]
macro_rules! mutant {
    ($mutant:ident) => {
        $crate::WRONG
    };
}
#[cfg(not(tokkuri_mutants))]
const WRONG: bool = false;
#[cfg(tokkuri_mutants)]
macro_rules! mutant {
    ($mutant:ident) => {
        $crate::mutant::is_on($crate::mutant::Mutant::$mutant)
    };
}

pub mod access;
pub mod admission;
pub mod follow;
pub mod form;
pub mod host;
pub mod id;
pub mod lease;
#[cfg(tokkuri_mutants)]
pub mod mutant;
pub mod payload;
pub mod procedure;
pub mod queue;
pub mod replay;
pub mod run;
#[cfg(feature = "std")]
pub mod signal;
pub mod store;
pub mod task;
pub mod time;
pub mod trace;
pub mod wire;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;

/// Short text: inline up to 23 bytes, shared beyond.
pub use smol_str::SmolStr as Text;
