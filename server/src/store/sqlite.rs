//! The store in one SQLite file: for one process, without anything to set up.
//!
//! # How it works
//! Changes go to one thread, the writer. Those that wait while it writes share the next transaction (group commit), so the
//! disk's `fsync` is paid once for all of them; each is answered when the transaction is on disk. Everything else is answered
//! at once from a mirror of the file in memory, which takes a change up only when it is on disk: nobody reads what a crash
//! could take back.
//!
//! Leases are in memory alone. The lock on the file proves that every earlier process is dead, so whatever they leased is void.

mod error;
mod lock;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use error::OpenError;
use rusqlite::Connection;
use tokkuri_core::store::{Outcome, Request};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::clock::Clock;
use super::memory::Table;
use super::{Reply, Store};
use lock::FileLock;
use writer::{Order, Writer};

/// Tasks in a SQLite file.
///
/// # Contract
/// * What was answered is on disk (`synchronous=FULL`), and survives a crash of the process and of the machine.
/// * The file is this process's alone for as long as the store lives: see [`OpenError::InUse`].
/// * The store never hangs on a file that fails: a change that cannot be written is answered with
///   [`Outcome::Unavailable`], reads go on, and writing goes on as soon as the file lets it.
/// * All tasks are held in memory too.
///
/// Dropping the store carries out what was handed in, closes the file and frees it; this blocks for as long as the disk takes.
pub struct SqliteStore {
    clock: Arc<Clock>,
    mirror: Arc<Table>,
    secret: [u8; 32],
    writer: Writer,
}

impl SqliteStore {
    /// Opens the file, or makes it. Reads all of it, so it blocks: call it outside an async task, or through
    /// `spawn_blocking`.
    ///
    /// Beside `path` there will be `path-lock` for as long as the file is used, and SQLite's own `path-wal`.
    ///
    /// # Errors
    /// [`OpenError`], in words for whoever started the server.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, Clock::wall())
    }

    /// As [`open`](Self::open), by a clock that tests can move.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clock(path: &Path, source: Arc<dyn Fn() -> Millis + Send + Sync>) -> Result<Self, OpenError> {
        Self::open_with(path, Clock::new(source))
    }

    fn open_with(path: &Path, clock: Clock) -> Result<Self, OpenError> {
        let lock = FileLock::take(path)?;
        let failed = |error: rusqlite::Error| OpenError::of_sqlite(path, &error);
        let mut connection = connect(lock.path()).map_err(failed)?;
        if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
            return Err(OpenError::ReadOnly { path: path.into() });
        }
        schema::bring_up_to_date(&mut connection, path)?;
        let secret = schema::secret(&connection, path)?;
        let mirror = Table::default();
        rows::all(&connection, |task, touched| {
            // The machine's clock may have been set back since: the store's time goes on from where it was.
            clock.at_least(touched.max(task.updated));
            mirror.store(&task, touched);
        })
        .map_err(failed)?;
        let (clock, mirror) = (Arc::new(clock), Arc::new(mirror));
        let writer = Writer::start(connection, lock, Arc::clone(&clock), Arc::clone(&mirror))
            .map_err(|source| OpenError::Io { path: path.into(), source })?;
        Ok(Self { clock, mirror, secret, writer })
    }

    /// 32 random bytes that were drawn when the file was made and stay the same: for signing what clients carry across
    /// restarts.
    pub const fn secret(&self) -> [u8; 32] {
        self.secret
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Exclusive before WAL: then SQLite keeps the WAL's index in memory and lets nobody else at the file.
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA cache_size = -16384;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA temp_store = MEMORY;",
    )?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    // Without WAL (a file system that cannot do it) the rollback journal is as durable, only slower.
    if mode != "wal" {
        tracing::warn!(%mode, "the file system of the SQLite store cannot do WAL; commits will be slower");
    }
    connection.set_prepared_statement_cache_capacity(16);
    Ok(connection)
}

impl Store for SqliteStore {
    fn carry_out(&self, request: Request<Json>) -> Reply {
        let id = match &request {
            Request::Load { id } => Some(*id),
            _ => None,
        };
        match self.mirror.look(&self.clock, request) {
            // The row is over, but a change that raises its time to live may be on its way to the disk. Told that it is gone
            // now, a caller could see it again later: so what is on its way counts first.
            Ok(answer) if answer.outcome == Outcome::Loaded(None) => match id.filter(|id| self.mirror.holds(*id)) {
                Some(id) => self.writer.hand_in(|reply| Order::Look(Request::Load { id }, reply), &self.clock),
                None => Reply::Now(answer),
            },
            Ok(answer) => Reply::Now(answer),
            Err(change) => self.writer.hand_in(|reply| Order::Change(change, reply), &self.clock),
        }
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn state_secret(&self) -> Option<[u8; 32]> {
        Some(self.secret)
    }
}

impl fmt::Debug for SqliteStore {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("clock", &self.clock).field("mirror", &self.mirror).finish_non_exhaustive()
    }
}
