//! Who watches all tasks from this node: each watcher has a bounded buffer of what it has not been told yet, of each task only
//! that it has changed. What has changed it reads when it can.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokkuri_core::id::{Revision, TaskId};

/// How many changed tasks wait for one watcher.
const WAITING: usize = 65_536;

/// How long a watcher knows what it was told: longer than any way on which a change comes by a second time.
const KNOWS: Duration = Duration::from_secs(120);

/// The watchers of this node.
#[derive(Debug, Default)]
pub(super) struct Changes {
    watchers: Mutex<Vec<Arc<Watcher>>>,
    /// How many there are: for most nodes, most of the time, none.
    count: AtomicUsize,
}

/// One watcher's buffer.
#[derive(Debug)]
pub(super) struct Watcher {
    buffer: Mutex<Buffer>,
    wake: Notify,
}

#[derive(Debug)]
struct Buffer {
    order: VecDeque<TaskId>,
    /// The tasks in `order`, each with the revision that it has at least.
    waiting: HashMap<TaskId, Option<Revision>>,
    told: Told,
    missed: u64,
    limit: usize,
}

/// What was told lately.
#[derive(Debug, Default)]
struct Told {
    revisions: HashMap<TaskId, Revision>,
    order: VecDeque<(Instant, TaskId, Revision)>,
}

impl Changes {
    /// Watches from now on, until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>) -> Watching {
        let watcher = Arc::new(Watcher::new(WAITING));
        let mut watchers = self.lock();
        watchers.push(Arc::clone(&watcher));
        self.count.store(watchers.len(), Ordering::Release);
        drop(watchers);
        Watching { changes: Arc::clone(self), watcher }
    }

    /// A task has changed.
    pub(super) fn offer(&self, id: TaskId, revision: Option<Revision>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for watcher in self.lock().iter() {
            watcher.offer(id, revision);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watcher>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watcher that is there. Dropping it ends the watch.
#[derive(Debug)]
pub(super) struct Watching {
    changes: Arc<Changes>,
    watcher: Arc<Watcher>,
}

impl std::ops::Deref for Watching {
    type Target = Watcher;

    fn deref(&self) -> &Watcher {
        &self.watcher
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watchers = self.changes.lock();
        watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
        self.changes.count.store(watchers.len(), Ordering::Release);
    }
}

impl Watcher {
    fn new(limit: usize) -> Self {
        let buffer =
            Buffer { order: VecDeque::new(), waiting: HashMap::new(), told: Told::default(), missed: 0, limit };
        Self { buffer: Mutex::new(buffer), wake: Notify::new() }
    }

    /// A task has changed; without a revision, nobody knows how often.
    pub(super) fn offer(&self, id: TaskId, revision: Option<Revision>) {
        if self.lock().offer(id, revision) {
            self.wake.notify_one();
        }
    }

    /// The next task that has changed, and how many were missed before it.
    pub(super) async fn next(&self) -> (TaskId, u64) {
        loop {
            if let Some(next) = self.lock().next() {
                return next;
            }
            self.wake.notified().await;
        }
    }

    /// The watcher is about to be told of this revision. False if it knows it, or a newer one.
    pub(super) fn is_news(&self, id: TaskId, revision: Revision) -> bool {
        self.lock().told.is_news(id, revision, Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn offer(&mut self, id: TaskId, revision: Option<Revision>) -> bool {
        if let (Some(told), Some(revision)) = (self.told.revisions.get(&id), revision)
            && *told >= revision
        {
            return false;
        }
        if let Some(waiting) = self.waiting.get_mut(&id) {
            *waiting = revision.max(*waiting);
            return false;
        }
        if self.order.len() >= self.limit {
            self.missed += 1;
            return false;
        }
        self.order.push_back(id);
        self.waiting.insert(id, revision);
        true
    }

    fn next(&mut self) -> Option<(TaskId, u64)> {
        while let Some(id) = self.order.pop_front() {
            let revision = self.waiting.remove(&id).flatten();
            // It was told on another way meanwhile.
            if self.told.revisions.get(&id).is_some_and(|told| revision.is_some_and(|revision| *told >= revision)) {
                continue;
            }
            return Some((id, std::mem::take(&mut self.missed)));
        }
        None
    }
}

impl Told {
    fn is_news(&mut self, id: TaskId, revision: Revision, now: Instant) -> bool {
        while let Some((when, id, revision)) = self.order.front().copied()
            && now.duration_since(when) > KNOWS
        {
            self.order.pop_front();
            if self.revisions.get(&id) == Some(&revision) {
                self.revisions.remove(&id);
            }
        }
        if self.revisions.get(&id).is_some_and(|told| *told >= revision) {
            return false;
        }
        self.revisions.insert(id, revision);
        self.order.push_back((now, id, revision));
        true
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn id(n: u8) -> TaskId {
        TaskId::from_bytes([n; 18])
    }

    #[test]
    fn of_a_task_that_changes_often_a_slow_watcher_is_told_once() {
        let changes = Arc::new(Changes::default());
        let watching = changes.watch();
        for revision in 2..9 {
            changes.offer(id(1), Some(Revision(revision)));
        }
        changes.offer(id(2), None);
        assert_eq!(watching.next().now_or_never(), Some((id(1), 0)));
        assert!(watching.is_news(id(1), Revision(8)));
        assert_eq!(watching.next().now_or_never(), Some((id(2), 0)));
        assert_eq!(watching.next().now_or_never(), None);
    }

    #[test]
    fn what_was_told_is_not_told_again_and_never_goes_back() {
        let changes = Arc::new(Changes::default());
        let watching = changes.watch();
        assert!(watching.is_news(id(1), Revision(3)));
        changes.offer(id(1), Some(Revision(3)));
        changes.offer(id(1), Some(Revision(2)));
        assert_eq!(watching.next().now_or_never(), None);
        changes.offer(id(1), Some(Revision(4)));
        assert!(watching.is_news(id(1), Revision(5)), "a reading was newer than what was offered");
        assert_eq!(watching.next().now_or_never(), None);
        assert!(!watching.is_news(id(1), Revision(4)));
    }

    #[test]
    fn a_watcher_that_misses_something_is_told_how_much() {
        let watcher = Watcher::new(2);
        for n in 1..=5 {
            watcher.offer(id(n), Some(Revision(2)));
        }
        assert_eq!(watcher.next().now_or_never(), Some((id(1), 3)));
        assert_eq!(watcher.next().now_or_never(), Some((id(2), 0)));
    }

    #[test]
    fn what_was_told_is_forgotten_in_time() {
        let mut told = Told::default();
        let start = Instant::now();
        assert!(told.is_news(id(1), Revision(1), start));
        assert!(told.is_news(id(1), Revision(2), start + KNOWS));
        assert!(told.is_news(id(2), Revision(1), start + KNOWS + Duration::from_secs(1)));
        assert!(!told.is_news(id(1), Revision(2), start + KNOWS + Duration::from_secs(1)));
        assert!(told.is_news(id(3), Revision(1), start + KNOWS * 2 + Duration::from_secs(2)));
        assert_eq!((told.revisions.len(), told.order.len()), (1, 1));
    }

    #[test]
    fn whoever_has_gone_is_offered_nothing() {
        let changes = Arc::new(Changes::default());
        drop(changes.watch());
        changes.offer(id(1), None);
        assert!(changes.lock().is_empty());
        assert_eq!(changes.count.load(Ordering::Acquire), 0);
    }
}
