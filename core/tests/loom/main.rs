//! The registry under loom: every order in which the threads of a small scene can take their steps.
//!
//! Each scenario runs the shipped registry, table and monitors over loom's mutex, with threads for the run's waits, the doors
//! that write, and the node's own duties. Who waits is driven by loom's executor: a waiter that nobody wakes, although nothing
//! more can happen, is a deadlock and fails. What a scenario returns is collected over all orders and compared with what must
//! come of it, so that a race which was only run one way fails too. They are integration tests of this package, not of
//! `tokkuri-model`, because the shim is private to it and model's worlds need no loom.
//!
//! ```text
//! RUSTFLAGS="--cfg tokkuri_loom" CARGO_TARGET_DIR=target/loom cargo test -p tokkuri-core --test loom
//! ```
//!
//! | preemptions of one execution | where | orders | time on two cores |
//! |---|---|---|---|
//! | 2 | `tests/run` | 0.35 million | 35 s |
//! | 3 (`LOOM_MAX_PREEMPTIONS`) | `tests/run long` | 4.3 million | 12 min |
//!
//! Times are of a machine that others used as well, optimized, without the build; those of 3 are without `followers`.
//!
//! # Wrong rules that die here
//!
//! Each was put into the code by hand, one at a time, and failed in the scenarios named; the model has a mechanism for its own.
//!
//! | wrong rule | dies in |
//! |---|---|
//! | the waker is left after the lock of the look was released | all but `followers` |
//! | waiters are woken before the change | all but `followers` |
//! | a change wakes nobody | all but `followers` |
//! | news of answers is no change | `before_after`, `dropped`, `lost_signals`, `many`, `newer_attempt` |
//! | only one waiter is woken | `ends`, `many`, `progress` |
//! | another task's waiters are woken instead | `many` |
//! | `halt` and `clock` wake nobody | `ends`, `shutdown` |
//! | a waiter that moved keeps its first waker | `before_after` |
//! | two waiters share a place | `dropped`, `ends`, `many`, `newer_attempt`, `progress` |
//! | a dropped waiter leaves its waker | `dropped` |
//! | a dropped waiter takes all wakers along | `dropped` |
//! | a dropped waiter takes another's waker along | `dropped`, `ends`, `many`, `newer_attempt`, `progress` |
//! | an answer is handed out after a stop | `ends` |
//! | the last reason to stop stays | `ends`, `shutdown` |
//! | the end of a time to live stops nobody | `ends` |
//! | a cancel is no stop | all but `dropped` and `followers` |
//! | an end is no stop | `dropped` |
//! | a reading that stops is not kept | `lost_signals` |
//! | an older reading counts | `before_after`, `newer_attempt` |
//! | a reading of an earlier attempt counts | `newer_attempt` |
//! | a take-over elsewhere does not stop the older attempt | `newer_attempt` |
//! | attempts are not told apart | `newer_attempt` |
//! | the older attempt's release takes the newer along | `newer_attempt` |
//! | a reservation wakes nobody | `newer_attempt` |
//! | no place is reserved before the task is stored | `newer_attempt`, `registration` |
//! | a place that is given back takes a started run along | `registration` |
//! | a place is reserved over a started run | `registration` |
//! | a start brings no reading | `registration` |
//! | a second start brings no reading | `registration` |
//! | a second start spawns again | `registration` |
//! | a lost lease stops nobody, or wakes nobody | `rejoin` |
//! | a run that was stored before the lease was lost is started | `rejoin` |
//! | a shutdown forgets runs that are started later | `shutdown` (this was the code, until loom found it) |
//! | a look asks only for what is newer than the store | `lost_signals` |
//! | a release wakes nobody | `progress` |
//! | progress wakes nobody | `progress` |
//! | a progress write that is over wakes nobody | `progress` |
//! | a progress write that failed is forgotten | `progress` |
//! | the end forgets the progress in flight | `progress` |
//! | the end prefers the progress in flight | `progress` |
//! | news wakes no follower | `followers` |
//! | a follower's waker is left after the lock of the look was released | `followers` |
//! | the clock wakes no follower | `followers` |
#![cfg(tokkuri_loom)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod before_after;
mod dropped;
mod ends;
mod followers;
mod frame;
mod lost_signals;
mod many;
mod newer_attempt;
#[path = "../world/payload.rs"]
mod payload;
mod progress;
mod registration;
mod rejoin;
mod shutdown;
