//! The node of a run gives it away.

use alloc::vec::Vec;

use crate::id::{Attempt, NodeId};
use crate::payload::Payload;
use crate::task::{Effect, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    /// The task goes to [`NodeId::NOBODY`], as a new attempt with the answers recorded so far: the next sweep of any node that
    /// does not drain takes it over. One whose tool has begun and must not run twice is left to its run.
    pub(super) fn hand_over(
        &mut self,
        now: Millis,
        by: Attempt,
        began: bool,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        self.fence(by)?;
        if began && !self.origin.restartable && !mutant!(HandsOverWhatRunsOnce) {
            return Ok(());
        }
        let old = Effect::Signal { node: self.node, attempt: by };
        if let Some(slot) = self.slot.take() {
            effects.push(Effect::Release { slot });
        }
        self.node = NodeId::NOBODY;
        self.attempt = if mutant!(HandOverKeepsAttempt) { by } else { by.next() };
        self.status_message = None;
        self.changed(now, effects);
        // Its run is over by then, unless somebody else gave it away.
        effects.push(old);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::samples::{Number, T0, answer, ask, restartable, task};
    use crate::task::{Command, Phase, Status};

    fn lose(attempt: Attempt) -> Command<Number> {
        Command::Lose { attempt, heir: Some(NodeId(2)), why: "its node was lost".into() }
    }

    #[test]
    fn a_task_that_is_handed_over_goes_on_elsewhere_with_its_answers() {
        let mut task = restartable();
        let (node, by) = (task.node, task.attempt);
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, answer([("a", Number(1))]), &mut Vec::new()).unwrap();
        task.apply(T0, Command::Note { by, slot: Number(5) }, &mut Vec::new()).unwrap();
        let mut effects = Vec::new();
        task.apply(T0, Command::HandOver { by, began: true }, &mut effects).unwrap();
        assert_eq!((task.node, task.attempt, task.status()), (NodeId::NOBODY, by.next(), Status::Working));
        let signal = Effect::Signal { node, attempt: by };
        assert_eq!(effects, [Effect::Release { slot: Number(5) }, Effect::Publish, signal]);
        // The fence: the old run has nothing to say any more.
        let late = Command::Complete { by, result: Number(9), message: None };
        assert_eq!(task.apply(T0, late, &mut Vec::new()), Err(Rejected::StaleAttempt));
        task.apply(T0, lose(by.next()), &mut Vec::new()).unwrap();
        assert_eq!((task.node, task.attempt), (NodeId(2), by.next().next()));
        assert_eq!(task.live().unwrap().questions["a"].answer, Some(Number(1)));
    }

    #[test]
    fn what_must_not_run_twice_is_left_to_its_run() {
        let mut task = task();
        let (by, before) = (task.attempt, task.clone());
        let mut effects = Vec::new();
        task.apply(T0, Command::HandOver { by, began: true }, &mut effects).unwrap();
        assert_eq!((task, effects), (before, Vec::new()));
    }

    #[test]
    fn what_never_began_may_run_elsewhere_whatever_its_tool() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::HandOver { by, began: false }, &mut Vec::new()).unwrap();
        task.apply(T0, lose(by.next()), &mut Vec::new()).unwrap();
        assert_eq!((task.node, task.status()), (NodeId(2), Status::Working));
        // From then on it is lost like any other.
        task.apply(T0, lose(by.next().next()), &mut Vec::new()).unwrap();
        assert!(matches!(task.phase, Phase::Failed(_)));
    }

    #[test]
    fn nobody_else_hands_a_task_over() {
        let mut task = restartable();
        let by = task.attempt;
        task.apply(T0, lose(by), &mut Vec::new()).unwrap();
        let before = task.clone();
        let late = Command::HandOver { by, began: true };
        assert_eq!(task.apply(T0, late, &mut Vec::new()), Err(Rejected::StaleAttempt));
        assert_eq!(task, before);
    }
}
