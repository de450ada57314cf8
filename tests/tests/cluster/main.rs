//! Black-box tests of several nodes on one Postgres: what only they can show. Those of one server run on a cluster too, with
//! `TOKKURI_TEST_STORE=cluster`.
//!
//! Names like H09 are those of the table of hard inputs. Times are printed, not judged, but for gross ones: a test machine has
//! other things to do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod cancels;
mod clocks;
mod database;
mod drains;
mod followers;
mod killed;
mod lost;
mod partitions;
mod quota;
mod traffic;
mod zombies;

use std::time::Duration;

use tokkuri_tests::harness::Cluster;
use tokkuri_tests::harness::cluster::Options;

/// How often nodes look at the store here.
const POLL: Duration = Duration::from_millis(200);

/// What a task says that waits for a place.
const WAITING: &str = "Waiting for a free place to run.";

/// Nodes that look at the store often, so that tests need not wait long for what no signal tells.
fn cluster() -> Options {
    Cluster::of(env!("CARGO_BIN_EXE_tokkuri-testbed")).poll_interval_ms(200)
}

/// How signals may be lost: every way that a claim has to hold in.
fn all_ways() -> [(&'static str, Options); 3] {
    [
        ("with all signals", cluster()),
        ("without signals between nodes", cluster().without_signals()),
        ("without any signal", cluster().without_signals().without_notify()),
    ]
}

/// Prints how long something took, as often as it was done.
fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!("{what}: median {:?}, p99 {:?}, most {:?}, of {}", at(0.5), at(0.99), at(1.0), times.len());
    at(0.99)
}
