//! The thread that writes: what waits for it shares a transaction, and is answered once that is on disk.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;
use tokkuri_core::store::{Answer, Outcome, Request, Unavailable};
use tokkuri_core::wire::Json;

use super::error::Failure;
use super::lock::FileLock;
use super::rows;
use crate::store::Reply;
use crate::store::clock::Clock;
use crate::store::memory::{Change, Table};

/// How many changes share a transaction at most: the first of them waits for the last.
const TOGETHER: usize = 512;

type Answering = oneshot::Sender<Answer<Json>>;

/// What the writer is to do.
pub(super) enum Order {
    /// Write this.
    Change(Change, Answering),
    /// Answer this from the mirror, after all that was handed in before.
    Look(Request<Json>, Answering),
    /// Do this with the connection: the tests' way to a failing file.
    #[cfg(test)]
    With(Box<dyn FnOnce(&Connection) + Send>),
}

/// The way to the thread. Dropping it waits for the thread to end.
pub(super) struct Writer {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        lock: FileLock,
        clock: Arc<Clock>,
        mirror: Arc<Table>,
    ) -> io::Result<Self> {
        let (orders, received) = channel();
        let thread = Thread { connection, _lock: lock, clock, mirror, is_failing: false };
        let thread = Builder::new().name("tokkuri-sqlite".into()).spawn(move || thread.run(&received))?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Hands in an order at once, so that it is carried out whether or not anybody waits for the answer.
    pub(super) fn hand_in(&self, order: impl FnOnce(Answering) -> Order, clock: &Arc<Clock>) -> Reply {
        let (answering, answered) = oneshot::channel();
        if !self.send(order(answering)) {
            return Reply::Now(Answer { now: clock.now(), outcome: ended(false) });
        }
        let clock = Arc::clone(clock);
        Reply::Later(Box::pin(async move {
            answered.await.unwrap_or_else(|_| Answer { now: clock.now(), outcome: ended(true) })
        }))
    }

    pub(super) fn send(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }
}

/// Only a panic ends the thread while the store lives.
fn ended(maybe_done: bool) -> Outcome<Json> {
    Outcome::Unavailable(Unavailable { why: "the thread that writes the SQLite file has ended".into(), maybe_done })
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the SQLite file has panicked");
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// Fields are dropped in this order: the file is closed before its lock is given up.
struct Thread {
    connection: Connection,
    _lock: FileLock,
    clock: Arc<Clock>,
    mirror: Arc<Table>,
    is_failing: bool,
}

impl Thread {
    fn run(mut self, orders: &Receiver<Order>) {
        let mut changes = Vec::new();
        while let Ok(first) = orders.recv() {
            let mut looks = Vec::new();
            let waiting = std::iter::once(first).chain(orders.try_iter());
            for order in waiting.take(TOGETHER) {
                match order {
                    Order::Change(change, answering) => changes.push((change, answering)),
                    Order::Look(request, answering) => looks.push((request, answering)),
                    #[cfg(test)]
                    Order::With(act) => act(&self.connection),
                }
            }
            self.write(std::mem::take(&mut changes));
            for (request, answering) in looks {
                if let Ok(answer) = self.mirror.look(&self.clock, request) {
                    let _ = answering.send(answer);
                }
            }
        }
    }

    /// Writes changes, together if that goes, and answers them.
    fn write(&mut self, changes: Vec<(Change, Answering)>) {
        if changes.is_empty() {
            return;
        }
        match self.transaction(&changes) {
            Ok(answers) => {
                self.succeeded();
                for ((change, answering), answer) in changes.into_iter().zip(answers) {
                    self.publish(change, &answer);
                    let _ = answering.send(answer);
                }
            }
            Err(failure) => {
                self.failed(&failure);
                // None of them is in the file, and one may be the cause (too large for what is left of the disk, say): each by
                // itself. Where they may be in the file after all, a second try could find the first.
                if changes.len() > 1 && !failure.maybe_done() {
                    for change in changes {
                        self.write(vec![change]);
                    }
                    return;
                }
                for (_, answering) in changes {
                    let outcome = Outcome::Unavailable(failure.unavailable());
                    let _ = answering.send(Answer { now: self.clock.now(), outcome });
                }
            }
        }
    }

    fn transaction(&self, changes: &[(Change, Answering)]) -> Result<Vec<Answer<Json>>, Failure> {
        self.roll_back();
        let written = self.connection.execute_batch("BEGIN IMMEDIATE").and_then(|()| {
            let answer = |(change, _): &(Change, Answering)| {
                let now = self.clock.now();
                rows::change(&self.connection, now, change).map(|outcome| Answer { now, outcome })
            };
            changes.iter().map(answer).collect()
        });
        let committed = match written {
            Ok(answers) => self.connection.execute_batch("COMMIT").map(|()| answers).map_err(Failure::AtCommit),
            Err(error) => Err(Failure::Before(error)),
        };
        if committed.is_err() {
            self.roll_back();
        }
        committed
    }

    /// Leaves a transaction that a failure left open. If that fails too, the next one begins with it.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "cannot roll back a failed transaction of the SQLite store");
        }
    }

    /// What is on disk may be read.
    fn publish(&self, change: Change, answer: &Answer<Json>) {
        match (&answer.outcome, change) {
            (Outcome::Inserted(task), _) => self.mirror.store(task, answer.now),
            (Outcome::Committed, Change::Commit { task, .. }) => self.mirror.store(&task, answer.now),
            (Outcome::Removed(ids), _) => ids.iter().for_each(|id| self.mirror.forget(*id)),
            _ => {}
        }
    }

    fn failed(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::error!(error = %failure.error(), "the SQLite store cannot write: {}", failure.unavailable().why);
        }
        // What is in the WAL already has its place in the database: giving the WAL's back may be the room that is missing,
        // for the removals first of all.
        if failure.is_full() {
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    fn succeeded(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            tracing::info!("the SQLite store can write again");
        }
    }
}
