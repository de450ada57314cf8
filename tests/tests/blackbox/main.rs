//! Black-box tests: real HTTP to a real process. One binary, for linking costs; one module per topic.
//! `TOKKURI_TEST_STORE=sqlite` runs all of them on that store (memory without it; `postgres`; `cluster`: three nodes on one
//! Postgres, behind a balancer that takes them in turn), `TOKKURI_TESTBED=PATH` against another build of the test bed.
//!
//! Names like H05 are those of the table of hard inputs: what went wrong in systems like this one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admin;
mod admin_access;
mod arguments;
mod authorization;
mod budget;
mod cancel;
mod cors;
mod disconnect;
mod durable;
mod earlier_era;
mod expiry;
mod fairness;
mod followers;
mod headers;
mod http2;
mod input;
mod input_gates;
mod issuer;
mod lifecycle;
mod limits;
mod listen;
mod metrics;
mod modes;
mod mrtr;
mod negotiation;
mod owners;
mod panics;
mod queueing;
mod quota;
mod quota_races;
mod races;
mod restart;
mod scopes;
mod shutdown;
mod stdio;
mod stdio_follow;
mod tokens;
mod values;
mod wire;
mod wrapped;

use tokkuri_tests::harness::{Bed, Store};

/// A test bed that is not started yet.
fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_tokkuri-testbed"))
}

/// A test bed on a store that survives: on a file, unless the environment names another one.
fn durable_bed() -> Bed {
    match Store::from_env() {
        // What a killed process ran is taken over once its lease is over. A busy machine is to keep those of the living.
        Store::Postgres | Store::Cluster => bed().setting("tasks.lease_ms", 3_000),
        Store::Memory | Store::Sqlite => file_bed(),
    }
}

/// A test bed on a file, whatever the environment says.
fn file_bed() -> Bed {
    bed().store(Store::Sqlite)
}

/// An id that no task has: as well formed as any.
const NEVER: &str = "AAAAAAAAAAAAAAAAAAAAAAAA";
