//! The table of this node's runs: readings of the store and signals come in, and reach the run they are for.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::lease::Draining;
use crate::payload::Payload;
use crate::procedure::{Local, Seen};
use crate::run::{Run, Stop};
use crate::store::Request;
use crate::task::Task;
use crate::time::Millis;

/// How far back a look at the store reaches beyond the last one: longer than any transaction stays open, so that a change
/// which became visible late is not missed. Readings that are not news are dropped by their revision.
pub const OVERLAP_MS: u64 = 10_000;

/// The runs of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host<P> {
    /// Which incarnation of the node it is now: a run of an earlier one is never started.
    node: NodeId,
    runs: BTreeMap<TaskId, Run<P>>,
    /// Started runs by the end of their time to live.
    expiry: BTreeSet<(Millis, TaskId)>,
    /// The node shuts down: a run whose task was on its way into the store is still started, to be stopped at once.
    shuts_down: bool,
    /// Likewise for a node that drains.
    draining: Draining,
}

impl<P: Payload> Host<P> {
    /// The table of a node without runs.
    pub const fn new(node: NodeId) -> Self {
        Self { node, runs: BTreeMap::new(), expiry: BTreeSet::new(), shuts_down: false, draining: Draining::No }
    }

    /// The node's incarnation.
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// Whether the node drains, as it was told last.
    pub const fn draining(&self) -> Draining {
        self.draining
    }

    /// The node's lease is lost, and it goes on as another. Stops every run, and returns those to which it is news. What was on
    /// its way into the store is not started any more: nobody would tell it that it was lost.
    pub fn rejoin(&mut self, node: NodeId) -> Vec<TaskId> {
        if !mutant!(StartsForTheLost) {
            self.node = node;
        }
        self.draining = Draining::No;
        if mutant!(RunsOutliveTheLease) { Vec::new() } else { self.halt(Stop::LeaseLost) }
    }

    /// The node drains, or no longer does. Stops the runs that are better run elsewhere, also those that are started later, and
    /// returns those to which it is news.
    pub fn drain(&mut self, draining: Draining) -> Vec<TaskId> {
        self.draining = draining;
        self.runs.iter_mut().filter_map(|(id, run)| run.drain(draining).then_some(*id)).collect()
    }

    /// The run of a task, started or reserved.
    pub fn run(&self, id: TaskId) -> Option<&Run<P>> {
        self.runs.get(&id)
    }

    /// The run of exactly this attempt.
    pub fn run_of(&mut self, id: TaskId, attempt: Attempt) -> Option<&mut Run<P>> {
        self.runs.get_mut(&id).filter(|run| run.attempt() == attempt)
    }

    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = (&TaskId, &Run<P>)> {
        self.runs.iter()
    }

    /// How many runs there are, reserved ones included.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Carries out what a procedure wants of the table.
    pub fn local(&mut self, local: Local) {
        match local {
            // Two sweeps of one node may want the same task: the one that loses must not touch the run that the other started.
            Local::Reserve { id, attempt } if self.has_started(id, attempt) => {}
            Local::Abandon { id, attempt } if self.has_started(id, attempt) => {}
            Local::Reserve { id, attempt } => {
                // An older attempt of the same task may still be winding down here: the new one takes its place, and the
                // old one, asking for itself, finds that it is lost.
                self.forget(id);
                self.runs.insert(id, Run::reserve(id, attempt));
            }
            Local::Abandon { id, attempt } => self.release(id, attempt),
        }
    }

    /// A stored task is to be run here. True if its run is to be spawned now: once per attempt, provided
    /// that the node drives one [`TakeOver`](crate::procedure::TakeOver) at a time. One that was stored for another node, or for
    /// an incarnation of this one whose lease is lost, is not started, and its place is given back.
    pub fn start(&mut self, task: &Arc<Task<P>>) -> bool {
        if task.node != self.node {
            if !self.has_started(task.id, task.attempt) {
                self.release(task.id, task.attempt);
            }
            return false;
        }
        if self.has_started(task.id, task.attempt) {
            self.observe(task.id, &Seen::Task(Arc::clone(task)));
            return false;
        }
        let run = self.runs.entry(task.id).or_insert_with(|| Run::reserve(task.id, task.attempt));
        if run.attempt() != task.attempt || !run.start(task) {
            return false;
        }
        if let Some(expires) = run.expires() {
            self.expiry.insert((expires, task.id));
        }
        if self.shuts_down {
            run.halt(Stop::Shutdown);
        }
        run.drain(self.draining);
        true
    }

    /// A reading of the store. Returns whether it is news to a run here.
    pub fn observe(&mut self, id: TaskId, seen: &Seen<P>) -> bool {
        let Some(run) = self.runs.get_mut(&id) else { return false };
        if mutant!(EarlyReadingsAreLost) && !run.is_started() {
            return false;
        }
        let before = run.expires();
        let news = run.observe(seen);
        let after = run.expires();
        // An end may raise the time to live.
        if before != after && run.is_started() {
            before.map(|before| self.expiry.remove(&(before, id)));
            after.map(|after| self.expiry.insert((after, id)));
        }
        news
    }

    /// Somebody says that the task has this revision now. Returns whether the store has to be asked.
    pub fn is_behind(&self, id: TaskId, revision: Revision) -> bool {
        !mutant!(NeverBehind)
            && self.runs.get(&id).is_some_and(|run| run.seen().is_none_or(|known| known.revision < revision))
    }

    /// The store's time. Stops the runs whose tasks have expired, and returns them.
    pub fn clock(&mut self, now: Millis) -> Vec<TaskId> {
        let mut expired = Vec::new();
        while let Some(&(expires, id)) = self.expiry.first() {
            if now < expires {
                break;
            }
            self.expiry.pop_first();
            if self.runs.get_mut(&id).is_some_and(|run| run.clock(now)) {
                expired.push(id);
            }
        }
        expired
    }

    /// Stops every run for this reason, and returns those to which it is news. There is no way back from a shutdown: it also
    /// stops those that are started later.
    pub fn halt(&mut self, stop: Stop) -> Vec<TaskId> {
        self.halt_those(stop, |_| true)
    }

    /// The same for the runs that wait for a place, and for those that are started later.
    pub fn halt_waiting(&mut self, stop: Stop) -> Vec<TaskId> {
        self.halt_those(stop, |run| !run.has_begun())
    }

    fn halt_those(&mut self, stop: Stop, which: impl Fn(&Run<P>) -> bool) -> Vec<TaskId> {
        self.shuts_down |= stop == Stop::Shutdown;
        self.runs.iter_mut().filter_map(|(id, run)| (which(run) && run.halt(stop)).then_some(*id)).collect()
    }

    /// The run of this attempt is over.
    pub fn release(&mut self, id: TaskId, attempt: Attempt) {
        if self.runs.get(&id).is_some_and(|run| run.attempt() == attempt) {
            self.forget(id);
        }
    }

    /// Whether the run of this attempt, or of a newer one, was started here.
    fn has_started(&self, id: TaskId, attempt: Attempt) -> bool {
        self.runs.get(&id).is_some_and(|run| run.is_started() && run.attempt() >= attempt)
    }

    fn forget(&mut self, id: TaskId) {
        if let Some(run) = self.runs.remove(&id)
            && let Some(expires) = run.expires()
        {
            self.expiry.remove(&(expires, id));
        }
    }
}

/// How a node looks at the store for its runs: one question per poll interval, however many runs there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    node: NodeId,
    since: Millis,
    overlap_ms: u64,
}

impl Watch {
    /// The watch of a node that has not looked yet.
    pub const fn new(node: NodeId) -> Self {
        Self::of_store(node, OVERLAP_MS)
    }

    /// The same over a store in which a change is visible at most `overlap_ms` after the time that it carries: 0 where changes
    /// are made one after the other, so that a look never returns what an earlier one did.
    pub const fn of_store(node: NodeId, overlap_ms: u64) -> Self {
        Self { node, since: Millis(0), overlap_ms }
    }

    /// Whose watch it is.
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// The next look.
    pub const fn request<P>(&self) -> Request<P> {
        Request::TouchedSince { node: self.node, since: self.since }
    }

    /// The look was answered at `now`, the store's time, and what it named was read and [observed](Host::observe). Not before:
    /// if a reading fails, the next look has to name its task again.
    pub fn answered(&mut self, now: Millis) {
        let since = if mutant!(LookSkipsTheMoment) { now.after(1) } else { now.before(self.overlap_ms) };
        self.since = self.since.max(since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Command;
    use crate::task::samples::{Number, T0, TTL_MS, draft, restartable, task};

    /// Whose the samples are.
    const NODE: NodeId = NodeId(1);

    #[test]
    fn a_cancel_that_was_committed_before_the_run_was_started_reaches_it() {
        let mut task = task();
        let created = Arc::new(task.clone());
        let mut host = Host::new(NODE);
        host.local(Local::Reserve { id: task.id, attempt: task.attempt });
        task.apply(T0, Command::Cancel, &mut Vec::new()).unwrap();
        host.observe(task.id, &Seen::Task(Arc::new(task.clone())));
        assert!(host.start(&created));
        assert_eq!(host.run(task.id).unwrap().stop(), Some(Stop::Cancelled));
    }

    #[test]
    fn a_run_is_started_once() {
        let task = Arc::new(task());
        let mut host = Host::new(NODE);
        assert!(host.start(&task));
        assert!(!host.start(&task));
    }

    #[test]
    fn a_run_that_is_started_during_a_shutdown_is_stopped() {
        let task = Arc::new(task());
        let mut host = Host::new(NODE);
        assert!(host.halt(Stop::LeaseLost).is_empty());
        assert!(host.halt(Stop::Shutdown).is_empty());
        assert!(host.start(&task));
        assert_eq!(host.run(task.id).unwrap().stop(), Some(Stop::Shutdown));
    }

    #[test]
    fn a_node_that_lost_its_lease_stops_its_runs_and_starts_none_of_them() {
        let runs = Arc::new(task());
        let (mut host, other) = (Host::new(NODE), NodeId(2));
        assert!(host.start(&runs));
        // Two are on their way into the store; one of them is not stored in the end.
        let (stored, refused) = (Arc::new(draft(2).created(T0)), draft(3));
        for id in [stored.id, refused.id] {
            host.local(Local::Reserve { id, attempt: Attempt::FIRST });
        }
        assert!(host.rejoin(other).contains(&runs.id));
        assert_eq!(host.run(runs.id).unwrap().stop(), Some(Stop::LeaseLost));
        assert!(!host.start(&stored), "it is an orphan, and whoever takes it over starts it");
        host.local(Local::Abandon { id: refused.id, attempt: Attempt::FIRST });
        assert!(!host.start(&runs), "nor is one that runs started again");
        assert_eq!(host.runs().map(|(id, _)| *id).collect::<Vec<_>>(), [runs.id], "places are given back");
        // The node takes over what it lost itself.
        let mut heired = restartable();
        let lose = Command::Lose { attempt: heired.attempt, heir: Some(other), why: "lost".into() };
        heired.apply(T0, lose, &mut Vec::new()).unwrap();
        host.local(Local::Reserve { id: heired.id, attempt: heired.attempt });
        assert!(host.start(&Arc::new(heired.clone())));
        assert_eq!(host.run(heired.id).unwrap().stop(), None);
    }

    #[test]
    fn a_run_that_is_started_while_its_node_drains_is_handed_over() {
        let mut host = Host::new(NODE);
        host.drain(Draining::Waits);
        assert!(host.start(&Arc::new(task())));
        assert_eq!(host.run(task().id).unwrap().stop(), Some(Stop::Drain));
        host.release(task().id, Attempt::FIRST);
        assert!(host.drain(Draining::No).is_empty());
        assert!(host.start(&Arc::new(task())));
        assert_eq!(host.run(task().id).unwrap().stop(), None);
    }

    #[test]
    fn a_newer_attempt_on_the_same_node_takes_the_place_of_the_older() {
        let mut task = restartable();
        let mut host = Host::new(NODE);
        host.start(&Arc::new(task.clone()));
        let first = task.attempt;
        let lose = Command::Lose { attempt: first, heir: Some(task.node), why: "lost".into() };
        task.apply(T0, lose, &mut Vec::new()).unwrap();
        host.local(Local::Reserve { id: task.id, attempt: task.attempt });
        assert!(host.run_of(task.id, first).is_none());
        assert!(host.start(&Arc::new(task.clone())));
        host.release(task.id, first);
        assert!(host.run_of(task.id, task.attempt).is_some(), "the old run's end does not release the new one");
    }

    #[test]
    fn a_sweep_that_came_second_leaves_the_run_of_the_first_alone() {
        let task = Arc::new(restartable());
        let (id, attempt) = (task.id, task.attempt);
        let mut host = Host::new(NODE);
        host.local(Local::Reserve { id, attempt });
        assert!(host.start(&task));
        host.local(Local::Reserve { id, attempt });
        host.local(Local::Abandon { id, attempt });
        assert!(host.run_of(id, attempt).is_some_and(|run| run.is_started()));
        assert!(!host.start(&task));
    }

    #[test]
    fn a_run_leaves_nothing_behind_although_its_end_raised_the_time_to_live() {
        let mut task = task();
        let mut host = Host::new(NODE);
        host.start(&Arc::new(task.clone()));
        task.apply(T0.after(TTL_MS - 1), Command::Cancel, &mut Vec::new()).unwrap();
        host.observe(task.id, &Seen::Task(Arc::new(task.clone())));
        host.release(task.id, task.attempt);
        assert_eq!(host, Host::new(NODE));
    }

    #[test]
    fn runs_expire_in_the_order_of_their_time() {
        let task = Arc::new(task());
        let mut host = Host::<Number>::new(NODE);
        host.start(&task);
        assert!(host.clock(T0).is_empty());
        assert_eq!(host.clock(T0.after(TTL_MS)), [task.id]);
        assert_eq!(host.run(task.id).unwrap().stop(), Some(Stop::Expired));
        host.release(task.id, task.attempt);
        assert!(host.is_empty());
    }
}
