//! Where tasks are kept.
//!
//! A store carries out core's protocol ([`tokkuri_core::store::Request`]) and decides nothing. Any type that does so can be one:
//! the suite in [`contract`] tells whether it does it right.

mod clock;
mod codec;
pub mod contract;
mod memory;
pub mod postgres;
pub mod sqlite;

use std::future::Future;
use std::pin::Pin;

pub use clock::Clock;
pub use memory::MemoryStore;
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;
use tokio::sync::mpsc;
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::store::{Answer, Request};
use tokkuri_core::wire::Json;

/// A store of tasks.
///
/// # Contract
/// The rules of [`tokkuri_core::store`]: each request is atomic, and durable before its answer; every answer carries the
/// store's own time, which never goes back; what has expired is absent. A request that was handed in is carried out even if the
/// [`Reply`] is dropped: whoever asks must not assume that dropping it takes the request back.
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Carries out one request.
    fn carry_out(&self, request: Request<Json>) -> Reply;

    /// How long after the time that it carries a change may become visible, in milliseconds: as long as a transaction may stay
    /// open, and 0 for a store that makes its changes one after the other.
    fn visible_after_ms(&self) -> u64 {
        tokkuri_core::host::OVERLAP_MS
    }

    /// Whether no other process can reach it. Then nobody takes this process's tasks over while it sleeps, and its lease never
    /// runs out.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Random bytes that are as old as the store and live as long: what clients carry across restarts is signed with them, if
    /// the settings name no secret. `None` for a store that is gone with the process.
    fn state_secret(&self) -> Option<[u8; 32]> {
        None
    }

    /// What the store says by itself of changes that others made: which task, and which revision it has now. To be taken once,
    /// by the node's engine. Each may be lost, late or repeated; nodes look at the store all the same. Default: none.
    fn hints(&self) -> Option<mpsc::Receiver<(TaskId, Revision)>> {
        None
    }
}

/// A store's answer, or the promise of one.
pub enum Reply {
    /// It was there at once.
    Now(Answer<Json>),
    /// It takes I/O.
    Later(Pin<Box<dyn Future<Output = Answer<Json>> + Send>>),
}

impl Reply {
    /// The answer.
    pub async fn answer(self) -> Answer<Json> {
        match self {
            Self::Now(answer) => answer,
            Self::Later(answer) => answer.await,
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}
