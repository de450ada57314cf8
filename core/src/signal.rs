//! What a waiting run and the requests that reach it share: the one place of this crate with locks and wakers.
//!
//! A [`Registry`] is the node's table of runs behind a few mutexes, with the wakers of those who wait. It is no part of any
//! async runtime: a [`Waiter`]'s `poll_…` functions take the waker of whichever one calls them. Decisions are [`Host`]'s and
//! [`Run`]'s; what is here is only who is woken, and loom explores it (`tests/loom` of this package). [`Followers`] is the same
//! for those who follow tasks.

mod followers;
mod shim;
mod waiter;
mod waiting;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;

pub use followers::{Followers, Subscription};
use shim::{Mutex, MutexGuard};
pub use waiter::Waiter;
use waiting::Waiting;

use crate::Text;
use crate::host::Host;
use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::lease::Draining;
use crate::payload::Payload;
use crate::procedure::{Local, Seen};
use crate::run::{Run, Stop};
use crate::task::{Status, Task};
use crate::time::Millis;

/// The node's runs, shared between threads. No call blocks for longer than it takes to change a map.
#[derive(Debug)]
pub struct Registry<P> {
    shards: Box<[Mutex<Shard<P>>]>,
}

/// How many tasks are live, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Their runs are at work.
    pub working: usize,
    /// They wait for an answer.
    pub input_required: usize,
}

#[derive(Debug)]
struct Shard<P> {
    host: Host<P>,
    waiting: Waiting,
}

impl<P: Payload> Registry<P> {
    /// The registry of a node, over `shards` locks.
    ///
    /// # Panics
    /// If `shards` is 0.
    pub fn new(shards: usize, node: NodeId) -> Self {
        assert!(shards > 0, "a registry has at least one shard");
        let shard = || Mutex::new(Shard { host: Host::new(node), waiting: Waiting::default() });
        Self { shards: (0..shards).map(|_| shard()).collect() }
    }

    /// Carries out what a procedure wants of the table.
    pub fn local(&self, local: Local) {
        let (Local::Reserve { id, .. } | Local::Abandon { id, .. }) = local;
        self.changing(id, |host| {
            host.local(local);
            true
        });
    }

    /// A stored task is to be run here. True if its run is to be spawned now.
    pub fn start(&self, task: &Arc<Task<P>>) -> bool {
        let mut spawn = false;
        // Also a run that was started before may learn something from the task.
        self.changing(task.id, |host| {
            spawn = host.start(task);
            true
        });
        spawn
    }

    /// A reading of the store: whoever waits for what it brings is woken. Returns whether it is news to a run here.
    pub fn observe(&self, id: TaskId, seen: &Seen<P>) -> bool {
        self.changing(id, |host| host.observe(id, seen))
    }

    /// Whether a task of this revision is news to a run here, so that the store has to be asked.
    pub fn is_behind(&self, id: TaskId, revision: Revision) -> bool {
        self.shard(id).host.is_behind(id, revision)
    }

    /// The store's time: runs whose tasks have expired are stopped. Returns how many.
    pub fn clock(&self, now: Millis) -> usize {
        self.everywhere(|host| host.clock(now))
    }

    /// Stops every run for this reason, and those that are started during or after a shutdown. Returns to how many it is news.
    pub fn halt(&self, stop: Stop) -> usize {
        self.waiting_first(|host| host.halt_waiting(stop), |host| host.halt(stop))
    }

    /// The node's lease is lost, and it goes on as another: every run is stopped, and whatever is started for an earlier
    /// incarnation, now or later, is not run. Returns to how many it is news.
    pub fn rejoin(&self, node: NodeId) -> usize {
        self.waiting_first(|host| host.halt_waiting(Stop::LeaseLost), |host| host.rejoin(node))
    }

    /// The node drains, or no longer does: runs that are better run elsewhere are stopped. Returns how many.
    pub fn drain(&self, draining: Draining) -> usize {
        match draining {
            Draining::No | Draining::Waits => self.everywhere(|host| host.drain(draining)),
            Draining::HandsOver => self.waiting_first(|host| host.drain(Draining::Waits), |host| host.drain(draining)),
        }
    }

    /// The run has its place, and is about to run its tool. False if it has to stop instead.
    pub fn begin(&self, id: TaskId, attempt: Attempt) -> bool {
        self.with_run(id, attempt, Run::begin).unwrap_or(false)
    }

    /// The run of this attempt is over.
    pub fn release(&self, id: TaskId, attempt: Attempt) {
        self.changing(id, |host| {
            host.release(id, attempt);
            true
        });
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shim::lock(shard).host.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids and attempts of all started runs, as of some moment during the call.
    pub fn runs(&self) -> Vec<(TaskId, Attempt)> {
        let mut runs = Vec::new();
        for shard in &self.shards {
            let shard = shim::lock(shard);
            runs.extend(shard.host.runs().filter(|(_, run)| run.is_started()).map(|(id, run)| (*id, run.attempt())));
        }
        runs
    }

    /// How many of the runs have a live task, as far as this node knows, in one status and in the other. The table is walked, one
    /// shard locked at a time: to be asked now and then.
    pub fn live(&self) -> Live {
        let mut live = Live::default();
        for shard in &self.shards {
            let shard = shim::lock(shard);
            for (_, run) in shard.host.runs().filter(|(_, run)| run.is_started() && run.stop().is_none()) {
                match run.seen().map(|task| task.status()) {
                    Some(Status::Working) => live.working += 1,
                    Some(Status::InputRequired) => live.input_required += 1,
                    Some(Status::Completed | Status::Failed | Status::Cancelled) | None => {}
                }
            }
        }
        live
    }

    /// Why this attempt has to stop, if it has to. One that is not in the table any more is lost.
    pub fn stop(&self, id: TaskId, attempt: Attempt) -> Option<Stop> {
        self.with_run(id, attempt, |run| run.stop()).unwrap_or(Some(Stop::Lost))
    }

    /// The run says how far it is.
    pub fn progress(&self, id: TaskId, attempt: Attempt, message: Text) {
        self.changing(id, |host| match host.run_of(id, attempt) {
            Some(run) => {
                run.progress(message);
                true
            }
            None => false,
        });
    }

    /// The progress write is over.
    pub fn progress_written(&self, id: TaskId, attempt: Attempt) {
        // What was said meanwhile may be due now.
        self.changing(id, |host| host.run_of(id, attempt).map(Run::progress_written).is_some());
    }

    /// The run has returned: the progress that has to stand before its end.
    pub fn finish(&self, id: TaskId, attempt: Attempt) -> Option<Text> {
        self.with_run(id, attempt, Run::finish).flatten()
    }

    fn with_run<T>(&self, id: TaskId, attempt: Attempt, f: impl FnOnce(&mut Run<P>) -> T) -> Option<T> {
        self.shard(id).host.run_of(id, attempt).map(f)
    }

    /// Changes the table and wakes those who wait at this task, after the lock is released.
    fn changing(&self, id: TaskId, change: impl FnOnce(&mut Host<P>) -> bool) -> bool {
        let mut shard = self.shard(id);
        let changed = change(&mut shard.host);
        let wakers = changed.then(|| shard.waiting.take(id));
        drop(shard);
        wakers.into_iter().flatten().for_each(Waker::wake);
        changed
    }

    /// Stops the runs that wait for a place, then others. A run that is stopped gives its place away: nothing is to begin on it.
    fn waiting_first(
        &self,
        waiting: impl FnMut(&mut Host<P>) -> Vec<TaskId>,
        others: impl FnMut(&mut Host<P>) -> Vec<TaskId>,
    ) -> usize {
        self.everywhere(waiting) + self.everywhere(others)
    }

    fn everywhere(&self, mut change: impl FnMut(&mut Host<P>) -> Vec<TaskId>) -> usize {
        let mut count = 0;
        for shard in &self.shards {
            let mut shard = shim::lock(shard);
            let changed = change(&mut shard.host);
            count += changed.len();
            let wakers: Vec<_> = changed.iter().flat_map(|id| shard.waiting.take(*id)).collect();
            drop(shard);
            wakers.into_iter().for_each(Waker::wake);
        }
        count
    }

    fn shard(&self, id: TaskId) -> MutexGuard<'_, Shard<P>> {
        shim::lock(&self.shards[shard_of(id, self.shards.len())])
    }
}

/// Which of so many shards a task is in.
fn shard_of(id: TaskId, shards: usize) -> usize {
    // The bits of an id are random: any of them spread the tasks evenly.
    let [low, high, ..] = id.to_bytes();
    usize::from(u16::from_le_bytes([low, high])) % shards
}

#[cfg(all(test, not(tokkuri_loom)))]
mod tests;
