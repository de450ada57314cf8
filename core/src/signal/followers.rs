//! The followers of a node's tasks, shared between whoever changes tasks and whoever writes to followers.
//!
//! What a follower is owed is [`Table`]'s decision; here is only who is woken. A change wakes, it does not deliver: each
//! follower takes what it is owed when it can, so a slow one holds nobody up and no lock is ever held across its I/O.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};

use super::shim::{self, Mutex, MutexGuard};
use crate::access::Caller;
use crate::follow::{FollowerId, Owed, Table, Turns};
use crate::id::{Revision, TaskId};
use crate::payload::Payload;
use crate::procedure::Seen;
use crate::task::Task;
use crate::time::Millis;

/// The node's followers. No call blocks for longer than it takes to change a map.
#[derive(Debug)]
pub struct Followers<P> {
    shards: Box<[Mutex<Shard<P>>]>,
    /// Names followers. It orders nothing.
    next: AtomicU64,
}

#[derive(Debug)]
struct Shard<P> {
    table: Table<P>,
    wakers: BTreeMap<TaskId, BTreeMap<FollowerId, Waker>>,
}

impl<P: Payload> Followers<P> {
    /// A table over `shards` locks.
    ///
    /// # Panics
    /// If `shards` is 0.
    pub fn new(shards: usize) -> Self {
        assert!(shards > 0, "a table has at least one shard");
        let shard = || Mutex::new(Shard { table: Table::default(), wakers: BTreeMap::new() });
        Self { shards: (0..shards).map(|_| shard()).collect(), next: AtomicU64::new(0) }
    }

    /// Follows these tasks as `caller`. Whoever calls this has to read each of them from the store afterwards and
    /// [`observe`](Self::observe) the reading, or [`leave`](Subscription::leave) it.
    pub fn follow(self: &Arc<Self>, caller: &Arc<Caller>, ids: Vec<TaskId>) -> Subscription<P> {
        let me = FollowerId(self.next.fetch_add(1, Ordering::Relaxed));
        for id in &ids {
            self.shard(*id).table.join(*id, me, caller);
        }
        Subscription { followers: Arc::clone(self), me, turns: Turns::new(ids) }
    }

    /// A reading of the store: whoever follows the task is woken if it is news. Returns whether it is.
    pub fn observe(&self, id: TaskId, seen: &Seen<P>) -> bool {
        let mut shard = self.shard(id);
        let news = shard.table.observe(id, seen);
        let wakers = if news { shard.wakers.remove(&id) } else { None };
        drop(shard);
        wakers.into_iter().flatten().for_each(|(_, waker)| waker.wake());
        news
    }

    /// Whether a task of this revision is news to a follower here, so that the store has to be asked.
    pub fn is_behind(&self, id: TaskId, revision: Revision) -> bool {
        self.shard(id).table.is_behind(id, revision)
    }

    /// The followed tasks of which the store has to be asked, as [`Table::open`] says, as of some moment during the call.
    pub fn open(&self, now: Millis, fed: impl Fn(TaskId) -> bool) -> Vec<TaskId> {
        let mut open = Vec::new();
        for shard in &self.shards {
            open.extend(shim::lock(shard).table.open(now, &fed));
        }
        open
    }

    /// How many tasks are followed.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shim::lock(shard).table.len()).sum()
    }

    /// Whether nobody follows anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks, and if there is nothing yet, leaves the waker under the same lock: nothing can come in between.
    fn ask(&self, id: TaskId, follower: FollowerId, cx: &Context<'_>) -> Owed<P> {
        let mut shard = self.shard(id);
        let owed = shard.table.next(id, follower);
        match owed {
            Owed::Nothing => {
                let waker = shard.wakers.entry(id).or_default().entry(follower).or_insert_with(|| cx.waker().clone());
                waker.clone_from(cx.waker());
            }
            Owed::Over => {
                drop(shard);
                self.take_out(id, follower);
            }
            Owed::Snapshot(_) => {}
        }
        owed
    }

    fn take_out(&self, id: TaskId, follower: FollowerId) {
        let mut shard = self.shard(id);
        shard.table.leave(id, follower);
        let mut waker = None;
        if let Some(wakers) = shard.wakers.get_mut(&id) {
            waker = wakers.remove(&follower);
            if wakers.is_empty() {
                shard.wakers.remove(&id);
            }
        }
        // Dropping a waker may run code of its runtime's: not under the lock.
        drop(shard);
        drop(waker);
    }

    fn shard(&self, id: TaskId) -> MutexGuard<'_, Shard<P>> {
        shim::lock(&self.shards[super::shard_of(id, self.shards.len())])
    }
}

/// One follower and what it follows. Dropping it leaves everything.
#[derive(Debug)]
pub struct Subscription<P: Payload> {
    followers: Arc<Followers<P>>,
    me: FollowerId,
    turns: Turns,
}

impl<P: Payload> Subscription<P> {
    /// The tasks of which it may still hear.
    pub fn open(&self) -> &[TaskId] {
        self.turns.open()
    }

    /// Follows this task no longer.
    pub fn leave(&mut self, id: TaskId) {
        self.turns.leave(id);
        self.followers.take_out(id, self.me);
    }

    /// The next snapshot that is owed; none once nothing can follow. It waits for as long as nothing is owed.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Task<P>>>> {
        match self.turns.next(|id| self.followers.ask(id, self.me, cx)) {
            Owed::Snapshot(task) => Poll::Ready(Some(task)),
            Owed::Nothing => Poll::Pending,
            Owed::Over => Poll::Ready(None),
        }
    }
}

impl<P: Payload> Drop for Subscription<P> {
    fn drop(&mut self) {
        for id in self.turns.open() {
            self.followers.take_out(*id, self.me);
        }
    }
}

#[cfg(all(test, not(tokkuri_loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;
    use crate::access::Scopes;
    use crate::task::Command;
    use crate::task::samples::{Number, T0, draft, owner, task};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn caller() -> Arc<Caller> {
        Arc::new(Caller { owner: owner("a"), scopes: Scopes::Unrestricted })
    }

    fn seen(task: &Task<Number>) -> Seen<Number> {
        Seen::Task(Arc::new(task.clone()))
    }

    #[test]
    fn a_change_wakes_its_followers_once_and_nobody_else() {
        let followers = Arc::new(Followers::new(2));
        let mut task = task();
        let other = draft(2).created(T0);
        let (mine, theirs) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (my_waker, their_waker) = (Waker::from(Arc::clone(&mine)), Waker::from(Arc::clone(&theirs)));
        let mut me = followers.follow(&caller(), Vec::from([task.id]));
        let mut them = followers.follow(&caller(), Vec::from([other.id]));
        assert!(me.poll_next(&mut Context::from_waker(&my_waker)).is_pending());
        assert!(them.poll_next(&mut Context::from_waker(&their_waker)).is_pending());
        followers.observe(task.id, &seen(&task));
        followers.observe(task.id, &seen(&task));
        task.apply(T0, Command::Cancel, &mut Vec::new()).unwrap();
        followers.observe(task.id, &seen(&task));
        assert_eq!((mine.0.load(Ordering::SeqCst), theirs.0.load(Ordering::SeqCst)), (1, 0));
        let Poll::Ready(Some(snapshot)) = me.poll_next(&mut Context::from_waker(&my_waker)) else {
            panic!("the latest is owed");
        };
        assert_eq!(snapshot.revision, task.revision);
        assert_eq!(me.poll_next(&mut Context::from_waker(&my_waker)), Poll::Ready(None));
    }

    #[test]
    fn a_task_that_never_rests_does_not_silence_the_others() {
        let followers = Arc::new(Followers::new(1));
        let mut busy = task();
        let quiet = draft(2).created(T0);
        let mut me = followers.follow(&caller(), Vec::from([busy.id, quiet.id]));
        followers.observe(quiet.id, &seen(&quiet));
        let mut cx = Context::from_waker(Waker::noop());
        let mut told = Vec::new();
        for message in ["1", "2", "3"] {
            let progress = Command::Progress { by: busy.attempt, message: message.into() };
            busy.apply(T0, progress, &mut Vec::new()).unwrap();
            followers.observe(busy.id, &seen(&busy));
            let Poll::Ready(Some(snapshot)) = me.poll_next(&mut cx) else { panic!("there is always something") };
            told.push(snapshot.id);
        }
        assert_eq!(told, [busy.id, quiet.id, busy.id]);
    }

    #[test]
    fn a_follower_that_is_dropped_leaves_nothing_behind() {
        let followers = Arc::new(Followers::<Number>::new(2));
        let (one, two) = (task(), draft(2).created(T0));
        let mut me = followers.follow(&caller(), Vec::from([one.id, two.id]));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        assert!(me.poll_next(&mut Context::from_waker(&waker)).is_pending());
        me.leave(one.id);
        assert_eq!((followers.len(), me.open()), (1, &[two.id][..]));
        drop(me);
        assert!(followers.is_empty());
        assert!(followers.shards.iter().all(|shard| shim::lock(shard).wakers.is_empty()));
        drop(waker);
        assert_eq!(Arc::strong_count(&count), 1, "no waker is kept");
    }

    #[test]
    fn followers_of_what_is_gone_are_woken_to_nothing() {
        let followers = Arc::new(Followers::new(1));
        let task = task();
        let mut me = followers.follow(&caller(), Vec::from([task.id]));
        followers.observe(task.id, &seen(&task));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        assert!(matches!(me.poll_next(&mut cx), Poll::Ready(Some(_))));
        assert!(me.poll_next(&mut cx).is_pending());
        assert_eq!(followers.open(T0, |_| false), [task.id]);
        followers.observe(task.id, &Seen::Gone);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(me.poll_next(&mut cx), Poll::Ready(None));
        assert!(followers.is_empty());
    }
}
