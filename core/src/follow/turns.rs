//! Which of its tasks a follower hears of next.

use alloc::vec::Vec;

use crate::follow::Owed;
use crate::id::TaskId;

/// The tasks that one follower may still hear of, in turn: one that never rests does not silence the others.
///
/// # Contract
/// [`next`](Self::next) asks for each task what is owed of it ([`Table::next`](super::Table::next)) until something is. Whoever
/// answers [`Owed::Over`] takes the follower out of the table as well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Turns {
    open: Vec<TaskId>,
    /// Which of them is asked first.
    turn: usize,
}

impl Turns {
    /// These tasks, in this order.
    pub const fn new(ids: Vec<TaskId>) -> Self {
        Self { open: ids, turn: 0 }
    }

    /// The tasks of which it may still hear.
    pub fn open(&self) -> &[TaskId] {
        &self.open
    }

    /// It does not follow this one any more.
    pub fn leave(&mut self, id: TaskId) {
        self.open.retain(|open| *open != id);
    }

    /// The next snapshot that is owed. [`Owed::Nothing`] if no task has one, [`Owed::Over`] if none ever will.
    pub fn next<P>(&mut self, mut owed: impl FnMut(TaskId) -> Owed<P>) -> Owed<P> {
        for _ in 0..self.open.len() {
            self.turn %= self.open.len();
            match owed(self.open[self.turn]) {
                Owed::Snapshot(task) => {
                    self.turn += usize::from(!mutant!(TurnStays));
                    return Owed::Snapshot(task);
                }
                Owed::Nothing => self.turn += 1,
                Owed::Over => {
                    // In order: the one after it is the next.
                    self.open.remove(self.turn);
                }
            }
        }
        if self.open.is_empty() { Owed::Over } else { Owed::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec;

    use super::*;
    use crate::task::samples::{Number, T0, draft};

    const IDS: [TaskId; 3] = [TaskId::from_bytes([1; 18]), TaskId::from_bytes([2; 18]), TaskId::from_bytes([3; 18])];

    fn snapshot(id: TaskId) -> Owed<Number> {
        Owed::Snapshot(Arc::new(draft(id.to_bytes()[0]).created(T0)))
    }

    #[test]
    fn tasks_that_are_over_are_asked_no_more_and_cost_nobody_a_turn() {
        let mut turns = Turns::new(IDS.to_vec());
        let mut asked = vec![];
        let told = turns.next(|id| {
            asked.push(id);
            if id == IDS[2] { snapshot(id) } else { Owed::Over }
        });
        assert_eq!((told, asked.as_slice(), turns.open()), (snapshot(IDS[2]), &IDS[..], &IDS[2..]));
        assert_eq!(turns.next(|_| Owed::<Number>::Nothing), Owed::Nothing);
        assert_eq!(turns.next(|_| Owed::<Number>::Over), Owed::Over);
        assert_eq!(turns.next(|_| -> Owed<Number> { panic!("nothing is left to ask for") }), Owed::Over);
    }

    #[test]
    fn whoever_was_told_last_is_asked_last() {
        let mut turns = Turns::new(IDS.to_vec());
        let mut told = || turns.next(snapshot);
        assert_eq!([told(), told(), told(), told()], [IDS[0], IDS[1], IDS[2], IDS[0]].map(snapshot));
    }
}
