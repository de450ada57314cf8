//! What is still to be told to one node: bounded, and of each task only the latest.

use std::collections::{HashMap, VecDeque};

use tokkuri_core::id::{Revision, TaskId};

/// Whom a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// The run, which is there.
    Run,
    /// Followers, if there are any.
    Followers,
}

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) id: TaskId,
    pub(super) revision: Revision,
    pub(super) to: For,
}

/// Two queues, each in the order in which its tasks first came: what runs are owed goes before what followers may like to see,
/// and is never crowded out by it.
#[derive(Debug)]
pub(super) struct Outbox {
    runs: Queue,
    changes: Queue,
}

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<TaskId>,
    latest: HashMap<TaskId, Revision>,
    limit: usize,
}

impl Outbox {
    /// An empty one, for so many tasks of each kind.
    pub(super) fn new(limit: usize) -> Self {
        let queue = || Queue { limit, ..Queue::default() };
        Self { runs: queue(), changes: queue() }
    }

    /// Adds a signal. False if it is lost: there is no room, and its task does not wait already.
    pub(super) fn push(&mut self, signal: Waiting) -> bool {
        let Waiting { id, revision, to } = signal;
        match to {
            For::Run => {
                let told = self.runs.push(id, revision);
                if told && let Some(also) = self.changes.latest.remove(&id) {
                    self.runs.push(id, also);
                }
                told
            }
            // Whoever reads the task for its run shows it to followers as well.
            For::Followers if self.runs.latest.contains_key(&id) => self.runs.push(id, revision),
            For::Followers => self.changes.push(id, revision),
        }
    }

    /// Takes the first so many.
    pub(super) fn take(&mut self, most: usize) -> Vec<Waiting> {
        let mut taken = Vec::new();
        for (queue, to) in [(&mut self.runs, For::Run), (&mut self.changes, For::Followers)] {
            while taken.len() < most
                && let Some(id) = queue.order.pop_front()
            {
                if let Some(revision) = queue.latest.remove(&id) {
                    taken.push(Waiting { id, revision, to });
                }
            }
        }
        taken
    }

    /// Throws away whatever waits. How much it was.
    pub(super) fn clear(&mut self) -> usize {
        self.take(usize::MAX).len()
    }
}

impl Queue {
    fn push(&mut self, id: TaskId, revision: Revision) -> bool {
        if let Some(latest) = self.latest.get_mut(&id) {
            *latest = revision.max(*latest);
            return true;
        }
        if self.order.len() >= self.limit {
            return false;
        }
        self.order.push_back(id);
        self.latest.insert(id, revision);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(id: u8, revision: u64, to: For) -> Waiting {
        Waiting { id: TaskId::from_bytes([id; 18]), revision: Revision(revision), to }
    }

    #[test]
    fn of_each_task_the_latest_is_told_once() {
        let mut outbox = Outbox::new(10);
        for (id, revision) in [(1, 2), (2, 5), (1, 4), (1, 3)] {
            assert!(outbox.push(signal(id, revision, For::Followers)));
        }
        assert_eq!(outbox.take(10), [signal(1, 4, For::Followers), signal(2, 5, For::Followers)]);
        assert!(outbox.take(10).is_empty());
    }

    #[test]
    fn a_full_one_loses_what_is_new_and_keeps_the_latest_of_what_waits() {
        let mut outbox = Outbox::new(2);
        assert!(outbox.push(signal(1, 1, For::Followers)) && outbox.push(signal(2, 1, For::Followers)));
        assert!(!outbox.push(signal(3, 1, For::Followers)), "lost");
        assert!(outbox.push(signal(1, 2, For::Followers)), "it waits already");
        assert!(outbox.push(signal(3, 1, For::Run)), "followers do not crowd out runs");
        assert_eq!(
            outbox.take(2),
            [signal(3, 1, For::Run), signal(1, 2, For::Followers)],
            "what a run is owed goes first"
        );
        assert_eq!(outbox.clear(), 1);
    }

    #[test]
    fn what_goes_to_the_run_need_not_go_to_followers_too() {
        let mut outbox = Outbox::new(2);
        for orders in [[For::Run, For::Followers], [For::Followers, For::Run]] {
            outbox.push(signal(1, 2, orders[0]));
            outbox.push(signal(1, 3, orders[1]));
            assert_eq!(outbox.take(9), [signal(1, 3, For::Run)]);
        }
        outbox.push(signal(1, 4, For::Followers));
        assert_eq!(outbox.take(9), [signal(1, 4, For::Followers)]);
    }
}
