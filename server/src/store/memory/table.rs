//! Rows in shards, under one index: how the protocol is answered from memory.
//!
//! # Locks
//! The index lock comes first, then at most one shard's lock, and no lock is held across anything that waits. Whoever changes a
//! row holds the index lock for the whole request, so changes and everything that is answered from the index are atomic. A load
//! takes its shard's read lock alone.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::store::{Answer, Filter, Outcome, Request, Row};
use tokkuri_core::task::{Draft, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::index::Index;
use crate::store::clock::Clock;

const SHARDS: usize = 64;

/// How many rows a page looks at before it lets others at the index: a filter that admits few must not stop all changes.
const PAGE_STRIDE: usize = 1_024;

type Shared = Arc<Task<Json>>;

/// A row.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) task: Shared,
    /// When it was stored: later than [`Task::updated`], if its writer took its time.
    pub(super) touched: Millis,
}

/// All rows.
pub(in crate::store) struct Table {
    index: Mutex<Index>,
    shards: [RwLock<HashMap<TaskId, Stored>>; SHARDS],
}

/// The requests that change rows.
#[derive(Debug)]
pub(in crate::store) enum Change {
    /// [`Request::Insert`].
    Insert { draft: Box<Draft<Json>>, limit: Option<u32> },
    /// [`Request::Commit`].
    Commit { expected: Revision, task: Shared },
    /// [`Request::Remove`].
    Remove { rows: Vec<(TaskId, Revision)> },
}

impl Default for Table {
    fn default() -> Self {
        Self { index: Mutex::default(), shards: std::array::from_fn(|_| RwLock::default()) }
    }
}

impl Table {
    /// Answers what changes no row; hands back what does.
    pub(in crate::store) fn look(&self, clock: &Clock, request: Request<Json>) -> Result<Answer<Json>, Change> {
        let (now, outcome) = match request {
            Request::Load { id } => {
                // The row before the time: a row is never newer than the time it is answered with.
                let row = self.row(id);
                let now = clock.now();
                (now, Outcome::Loaded(row.filter(|row| row.is_visible(now))))
            }
            Request::Insert { draft, limit } => return Err(Change::Insert { draft, limit }),
            Request::Commit { expected, task } => return Err(Change::Commit { expected, task }),
            Request::Remove { rows } => return Err(Change::Remove { rows }),
            Request::Count { owner } => {
                let index = self.index();
                let now = clock.now();
                (now, Outcome::Live(u32::try_from(index.live(&owner, now)).unwrap_or(u32::MAX)))
            }
            Request::Due { limit } => {
                let index = self.index();
                let now = clock.now();
                let rows = index.due(now).take(limit as usize).filter_map(|id| self.row(id));
                (now, Outcome::Due(rows.map(|row| Row::from(&*row)).collect()))
            }
            Request::Orphans { limit } => {
                let index = self.index();
                let now = clock.now();
                let visible = |id| self.row(id).filter(|row| row.is_visible(now));
                let of_each = index.orphans(now).map(|ids| ids.filter_map(visible).take(limit as usize));
                let mut orphans: Vec<_> = of_each.flatten().collect();
                orphans.sort_unstable_by_key(|row| row.id);
                orphans.truncate(limit as usize);
                (now, Outcome::Orphans(orphans))
            }
            Request::TouchedSince { node, since } => {
                let index = self.index();
                let now = clock.now();
                let rows = index.touched(node, since).filter_map(|id| self.row(id)).filter(|row| row.is_visible(now));
                (now, Outcome::Touched(rows.map(|row| (row.id, row.revision)).collect()))
            }
            Request::Page { filter, after, limit } => self.page(clock, &filter, after, limit as usize),
            Request::Join { node, lease_ms } => {
                let mut index = self.index();
                let now = clock.now();
                (now, Outcome::leased(index.leases.join(now, *node, lease_ms)))
            }
            Request::Renew { node, load, lease_ms } => {
                let mut index = self.index();
                let now = clock.now();
                (now, Outcome::leased(index.leases.renew(now, node, load, lease_ms)))
            }
            Request::Resign { node } => {
                let mut index = self.index();
                index.leases.resign(node);
                (clock.now(), Outcome::Released)
            }
            Request::Nodes => {
                let index = self.index();
                let now = clock.now();
                (now, Outcome::Nodes(index.leases.list(now)))
            }
            Request::Drain { node, drain } => {
                let mut index = self.index();
                let now = clock.now();
                (now, Outcome::Drained(index.leases.drain(now, node, drain)))
            }
        };
        Ok(Answer { now, outcome })
    }

    /// Carries out a change.
    pub(in crate::store) fn change(&self, clock: &Clock, change: Change) -> Answer<Json> {
        let mut index = self.index();
        let now = clock.now();
        let outcome = match change {
            Change::Insert { draft, limit } => {
                if self.row(draft.id).is_some() {
                    Outcome::Exists
                } else if limit.is_some_and(|limit| index.live(&draft.owner, now) >= limit as usize) {
                    Outcome::AtTheLimit
                } else {
                    let task = Arc::new(draft.created(now));
                    self.put(&mut index, &task, now);
                    Outcome::Inserted(task)
                }
            }
            Change::Commit { expected, task } => match self.row(task.id) {
                // `old` is dropped after the index: freeing a large result is nobody else's wait.
                Some(old) if old.revision == expected && old.is_visible(now) => {
                    self.put(&mut index, &task, now);
                    drop(index);
                    drop(old);
                    Outcome::Committed
                }
                Some(_) | None => Outcome::Conflict,
            },
            Change::Remove { mut rows } => {
                let mut removed = Vec::with_capacity(rows.len());
                rows.retain(|(id, revision)| {
                    let due = self.row(*id).filter(|row| row.revision == *revision && !row.is_visible(now));
                    let is_due = due.is_some();
                    if let Some(row) = due {
                        self.take(&mut index, *id);
                        removed.push(row);
                    }
                    is_due
                });
                drop(index);
                drop(removed);
                Outcome::Removed(rows.into_iter().map(|(id, _)| id).collect())
            }
        };
        Answer { now, outcome }
    }

    /// Takes up a task that a file holds since `touched`.
    pub(in crate::store) fn store(&self, task: &Shared, touched: Millis) {
        let old = self.row(task.id);
        self.put(&mut self.index(), task, touched);
        drop(old);
    }

    /// Forgets a task that a file no longer holds.
    pub(in crate::store) fn forget(&self, id: TaskId) {
        self.take(&mut self.index(), id);
    }

    /// Whether there is a row, expired or not.
    pub(in crate::store) fn holds(&self, id: TaskId) -> bool {
        self.row(id).is_some()
    }

    fn page(&self, clock: &Clock, filter: &Filter, mut after: Option<TaskId>, limit: usize) -> (Millis, Outcome<Json>) {
        let mut page = Vec::new();
        let mut since = None;
        loop {
            let index = self.index();
            let now = *since.get_or_insert_with(|| clock.now());
            let mut ids = index.after(after);
            for id in ids.by_ref().take(PAGE_STRIDE) {
                after = Some(id);
                // What was created after `now`, between two strides, is no part of the page.
                let is_there = |row: &Shared| row.is_visible(now) && row.origin.created <= now;
                let Some(row) = self.row(id).filter(|row| is_there(row) && filter.admits(row)) else { continue };
                if page.len() == limit {
                    return (now, Outcome::Page(page, true));
                }
                page.push(row);
            }
            if ids.next().is_none() {
                return (now, Outcome::Page(page, false));
            }
        }
    }

    fn row(&self, id: TaskId) -> Option<Shared> {
        self.shard(id).read().unwrap_or_else(PoisonError::into_inner).get(&id).map(|row| Arc::clone(&row.task))
    }

    fn put(&self, index: &mut Index, task: &Shared, now: Millis) {
        let new = Stored { task: Arc::clone(task), touched: now };
        let mut shard = self.shard(task.id).write().unwrap_or_else(PoisonError::into_inner);
        let old = shard.insert(task.id, new.clone());
        drop(shard);
        index.update(old.as_ref(), Some(&new));
    }

    fn take(&self, index: &mut Index, id: TaskId) {
        let mut shard = self.shard(id).write().unwrap_or_else(PoisonError::into_inner);
        let old = shard.remove(&id);
        drop(shard);
        index.update(old.as_ref(), None);
    }

    fn shard(&self, id: TaskId) -> &RwLock<HashMap<TaskId, Stored>> {
        let folded = id.to_bytes().iter().fold(0, |folded, byte| folded ^ byte);
        &self.shards[usize::from(folded) % SHARDS]
    }

    /// No code under this lock panics, so a poisoned lock guards whole state.
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("rows", &self.index().len()).finish_non_exhaustive()
    }
}
