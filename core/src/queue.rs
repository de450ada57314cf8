//! Which runs of a node have a place, and which wait for one: no more than so many at once, and fair between owners.
//!
//! A place that becomes free goes round the owners that wait, one run each; the runs of one owner start in the order in which
//! they came. So an owner with a thousand runs in the queue holds another one up by one run, not by a thousand.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// The places of one node, and those who wait for one. `R` names a run, `O` its owner.
///
/// # Contract
/// * [`admit`](Self::admit) a run once, when its task is about to be stored or taken over.
/// * [`leave`](Self::leave) whenever it is over, for whatever reason, also while it still waits: then it never starts.
/// * Start the run that `leave` returns: it has the place from that moment on.
///
/// Nobody waits while a place is free, and no more than `limit` have one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue<R, O> {
    limit: usize,
    running: BTreeSet<R>,
    /// Where in its owner's line each waiting run stands.
    waiting: BTreeMap<R, (O, u64)>,
    lines: BTreeMap<O, Line<R>>,
    /// Whose turn it is: the owners that wait, each once.
    turns: VecDeque<O>,
}

/// The waiting runs of one owner. Numbers start over with every new line, so that equal queues are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Line<R> {
    next: u64,
    runs: BTreeMap<u64, R>,
}

/// What becomes of a run that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admitted {
    /// It has a place: start it.
    Starts,
    /// It waits for its turn.
    Waits,
}

impl<R: Ord + Clone, O: Ord + Clone> Queue<R, O> {
    /// A queue with `limit` places; one at least, or nothing would ever start.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            running: BTreeSet::new(),
            waiting: BTreeMap::new(),
            lines: BTreeMap::new(),
            turns: VecDeque::new(),
        }
    }

    /// A run comes. One that is here already stays where it is.
    pub fn admit(&mut self, run: R, owner: O) -> Admitted {
        if self.waiting.contains_key(&run) {
            return Admitted::Waits;
        }
        if (self.running.contains(&run) && !mutant!(RunningComesAnew)) || self.running.len() < self.limit {
            self.running.insert(run);
            return Admitted::Starts;
        }
        if !self.lines.contains_key(&owner) {
            match mutant!(NewcomerFirst) {
                false => self.turns.push_back(owner.clone()),
                true => self.turns.push_front(owner.clone()),
            }
        }
        let line = self.lines.entry(owner.clone()).or_insert_with(|| Line { next: 0, runs: BTreeMap::new() });
        line.runs.insert(line.next, run.clone());
        self.waiting.insert(run, (owner, line.next));
        line.next += 1;
        Admitted::Waits
    }

    /// A run is over, or is not wanted any more. Returns the one that has its place now.
    pub fn leave(&mut self, run: &R) -> Option<R> {
        if self.running.remove(run) {
            return self.start_next();
        }
        if let Some((owner, at)) = self.waiting.remove(run)
            && let Some(line) = self.lines.get_mut(&owner)
        {
            if !mutant!(GoneRunStarts) {
                line.runs.remove(&at);
            }
            if line.runs.is_empty() && !mutant!(EmptyLineKept) {
                self.lines.remove(&owner);
                self.turns.retain(|waiting| *waiting != owner);
            }
            if mutant!(WaiterFreesPlace) {
                return self.start_next();
            }
        }
        None
    }

    /// How many have a place.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn start_next(&mut self) -> Option<R> {
        let owner = self.turns.pop_front()?;
        let line = self.lines.get_mut(&owner)?;
        let (_, run) = if mutant!(LastComeFirst) { line.runs.pop_last() } else { line.runs.pop_first() }?;
        if line.runs.is_empty() {
            self.lines.remove(&owner);
        } else if mutant!(OneOwnerOnly) {
            self.turns.push_front(owner);
        } else {
            self.turns.push_back(owner);
        }
        self.waiting.remove(&run);
        if !mutant!(CalledRunForgotten) {
            self.running.insert(run.clone());
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_round_the_owners_and_in_order_within_one() {
        let mut queue = Queue::new(1);
        assert_eq!(queue.admit(0, 'a'), Admitted::Starts);
        for run in [1, 2, 3] {
            assert_eq!(queue.admit(run, 'a'), Admitted::Waits);
        }
        queue.admit(10, 'b');
        queue.admit(20, 'c');
        queue.admit(11, 'b');
        let mut last = 0;
        let started: alloc::vec::Vec<i32> = core::iter::from_fn(|| {
            last = queue.leave(&last)?;
            Some(last)
        })
        .collect();
        assert_eq!(started, [1, 10, 20, 2, 11, 3]);
        assert_eq!(queue, Queue::new(1), "nothing is left behind");
    }

    #[test]
    fn a_run_that_left_while_it_waited_never_starts_and_frees_no_place() {
        let mut queue = Queue::new(1);
        queue.admit(0, 'a');
        queue.admit(1, 'b');
        queue.admit(2, 'b');
        assert_eq!(queue.leave(&1), None);
        assert_eq!(queue.leave(&1), None, "leaving twice changes nothing");
        assert_eq!(queue.leave(&0), Some(2));
        assert_eq!(queue.leave(&2), None);
        assert_eq!(queue, Queue::new(1));
    }

    #[test]
    fn a_run_that_comes_twice_takes_one_place() {
        let mut queue = Queue::new(1);
        assert_eq!((queue.admit(0, 'a'), queue.admit(0, 'a')), (Admitted::Starts, Admitted::Starts));
        assert_eq!((queue.admit(1, 'a'), queue.admit(1, 'a')), (Admitted::Waits, Admitted::Waits));
        assert_eq!((queue.running(), queue.waiting()), (1, 1));
    }

    #[test]
    fn there_is_always_one_place() {
        assert_eq!(Queue::new(0).admit(0, 'a'), Admitted::Starts);
    }
}
