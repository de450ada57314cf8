//! The store in memory: for tests, throw-away servers, and as the mirror from which the SQLite store reads.

mod index;
mod table;

use std::sync::Arc;

pub(super) use table::{Change, Table};
use tokkuri_core::store::Request;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::clock::Clock;
use super::{Reply, Store};

/// Tasks in memory. They end with the process; "durable before its answer" holds as long as the process does.
///
/// Every request is answered at once, and costs what it touches, however many tasks there are: a load takes one shard's read
/// lock, a change a few steps in ordered indexes.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    table: Table,
}

impl MemoryStore {
    /// An empty store that follows the wall clock.
    pub fn new() -> Self {
        Self { clock: Clock::wall(), table: Table::default() }
    }

    /// An empty store that follows `source`, which tests can move. When it goes back, the store's time stands still.
    pub fn with_clock(source: Arc<dyn Fn() -> Millis + Send + Sync>) -> Self {
        Self { clock: Clock::new(source), table: Table::default() }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn carry_out(&self, request: Request<Json>) -> Reply {
        Reply::Now(match self.table.look(&self.clock, request) {
            Ok(answer) => answer,
            Err(change) => self.table.change(&self.clock, change),
        })
    }

    fn visible_after_ms(&self) -> u64 {
        0
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contract::{self, HandClock, Subject};

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn it_keeps_the_contract_when_time_is_moved_by_hand() {
        let make = async || {
            let clock = HandClock::new();
            Subject::with_clock(Arc::new(MemoryStore::with_clock(clock.source())), clock)
        };
        contract::check_all(make).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn it_keeps_the_contract_by_the_wall_clock() {
        contract::check_all(async || Subject::new(Arc::new(MemoryStore::new()))).await.unwrap();
    }
}
