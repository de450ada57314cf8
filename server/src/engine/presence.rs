//! What of a node a run takes up, for as long as anything of it is alive.
//!
//! A task is over the moment that it is cancelled. Its run need not be: a blocking body only learns of the cancel by asking, and
//! may never ask. Whatever of the run is left, a thread for the most part, still takes what it took before, so its place is not
//! given to another run until it has ended. A run hands its presence on with its context: to the thread that a blocking body
//! runs on, and to whatever else the body keeps its context for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokkuri_core::access::Owner;

use super::Engine;
use super::places::Ticket;

/// A run is here: it counts as alive, and holds its place.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(super) engine: Arc<Engine>,
    pub(super) owner: Owner,
    pub(super) _ticket: Option<Ticket>,
}

impl Presence {
    /// Asks for a thread to block.
    pub(crate) fn thread(&self) -> Ticket {
        self.engine.threads.enter(&self.owner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.engine.alive.fetch_sub(1, Ordering::Relaxed);
    }
}
