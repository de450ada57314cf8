//! Whether a store keeps its contract: cases that any store can be put through, this crate's and anybody else's.
//!
//! Each case gets an empty store, asks it things, and judges every answer: against the case's own claim, against
//! [`Shelf`](tokkuri_core::store::Shelf), and against what has to hold of all answers alike (time never goes back, what expired
//! is absent, no two states under one revision, nobody reads an older state after a newer one). Claims about time hold for a
//! store with a clock of its own too: they are judged by the time that each answer carries. A store whose clock can be
//! moved ([`Subject::with_clock`]) is done in a second; for another the suite waits until what it waits for shows.
//!
//! What cannot be asked is not checked here: that an answered change survives a crash.
//!
//! ```
//! use std::sync::Arc;
//! use tokkuri_server::store::MemoryStore;
//! use tokkuri_server::store::contract::{HandClock, Subject, check_all};
//!
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
//! # async fn main() {
//! let make = async || {
//!     let clock = HandClock::new();
//!     Subject::with_clock(Arc::new(MemoryStore::with_clock(clock.source())), clock)
//! };
//! check_all(make).await.expect("a store that keeps its contract");
//! # }
//! ```

mod driven;
mod expiry;
mod history;
mod nodes;
mod pages;
mod payloads;
mod quota;
mod reference;
mod rows;
mod samples;
#[cfg(test)]
mod tests;
mod times;
mod trial;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokkuri_core::time::Millis;

use crate::store::Store;
use trial::Trial;

/// How long one case may take before the store is said to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// A store that is to be checked.
#[derive(Clone, Debug)]
pub struct Subject {
    store: Arc<dyn Store>,
    clock: Option<Arc<HandClock>>,
}

impl Subject {
    /// An empty store whose time goes by itself, about as fast as ours.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, clock: None }
    }

    /// An empty store whose time is `clock`'s, clamped so that it never goes back.
    pub fn with_clock(store: Arc<dyn Store>, clock: Arc<HandClock>) -> Self {
        Self { store, clock: Some(clock) }
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct HandClock(AtomicU64);

impl HandClock {
    /// A clock that shows some moment in 2026.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_788_249_600_000)))
    }

    /// What it shows.
    pub fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    /// Lets so many milliseconds go by.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// Shows this from now on, be it earlier or later.
    pub fn set(&self, moment: Millis) {
        self.0.store(moment.0, Ordering::SeqCst);
    }

    /// As the source of a store's time.
    pub fn source(self: &Arc<Self>) -> Arc<dyn Fn() -> Millis + Send + Sync> {
        let clock = Arc::clone(self);
        Arc::new(move || clock.now())
    }
}

/// A claim that a store breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {why}")]
pub struct Violation {
    /// The name of the case.
    pub case: &'static str,
    /// What was seen, and what should have been.
    pub why: String,
}

type Verdict = Result<(), String>;
type Running = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// One claim about stores.
#[derive(Clone, Copy)]
pub struct Case {
    /// The claim, as the name of a test.
    pub name: &'static str,
    run: fn(Trial) -> Running,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

impl Case {
    /// Checks this claim on an empty store. Needs a tokio runtime with timers; the more threads it has, the harder the races.
    ///
    /// # Errors
    /// [`Violation`] says what the store did wrong.
    pub async fn check(&self, subject: Subject) -> Result<(), Violation> {
        // In a task of its own, so that a procedure which panics at an impossible answer is a verdict too.
        let running = tokio::spawn(tokio::time::timeout(PATIENCE, (self.run)(Trial::new(subject))));
        let verdict = match running.await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_elapsed)) => Err(format!("no verdict within {PATIENCE:?}: some answer does not come")),
            Err(panicked) => Err(panicked.to_string()),
        };
        verdict.map_err(|why| Violation { case: self.name, why })
    }
}

/// Checks every claim, each on a store of its own.
///
/// # Errors
/// The first [`Violation`].
pub async fn check_all(make: impl AsyncFn() -> Subject) -> Result<(), Violation> {
    for case in CASES {
        case.check(make().await).await?;
    }
    Ok(())
}

macro_rules! cases {
    ($($file:ident: $($name:ident)*;)*) => {
        &[$($(Case { name: stringify!($name), run: |trial| Box::pin($file::$name(trial)) }),*),*]
    };
}

/// Every claim.
pub const CASES: &[Case] = cases! {
    rows: what_was_inserted_is_loaded an_id_is_taken_once a_commit_needs_the_revision_that_was_loaded
        of_concurrent_commits_on_one_revision_one_wins;
    payloads: payloads_come_back_byte_for_byte owners_are_told_apart_whatever_they_are_called;
    expiry: what_expired_is_absent_to_every_request due_is_oldest_first_and_only_what_is_due
        removing_takes_only_what_is_due_and_unchanged a_raised_time_to_live_moves_the_end;
    quota: the_limit_is_exact the_count_is_of_live_tasks concurrent_inserts_admit_exactly_the_limit;
    times: time_never_goes_back time_stands_still_when_its_source_goes_back;
    nodes: touched_tasks_are_those_of_the_node_ended_ones_included a_task_is_orphaned_unless_its_node_holds_a_lease
        a_lease_runs_out a_lost_lease_is_never_revived a_drain_is_told_with_each_renewal
        nodes_are_listed_by_id_with_what_they_said;
    pages: pages_are_in_the_order_of_ids a_page_has_what_its_filter_admits;
    reference: any_sequence_of_requests_is_answered_as_by_the_reference;
    driven: procedures_that_race_keep_every_invariant;
};
