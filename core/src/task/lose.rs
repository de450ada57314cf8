//! The node of a run is gone.

use alloc::vec::Vec;

use crate::Text;
use crate::id::{Attempt, NodeId};
use crate::payload::Payload;
use crate::task::{Effect, Fault, Phase, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    /// A restartable task goes to `heir` as a new attempt, with the answers recorded so far. Any other has failed.
    pub(super) fn lose(
        &mut self,
        now: Millis,
        attempt: Attempt,
        heir: Option<NodeId>,
        why: Text,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        if !(mutant!(LossAfterTheEnd) && self.live().is_none()) {
            self.fence(attempt)?;
        }
        let lost = Effect::Signal { node: self.node, attempt };
        match heir {
            // What was handed over has no run anywhere: to take it is no second run of its tool, or one that is allowed.
            Some(heir) if self.origin.restartable || self.node == NodeId::NOBODY => {
                // What the lost attempt used upstream is not the new one's.
                if let Some(slot) = self.slot.take() {
                    effects.push(Effect::Release { slot });
                }
                self.node = heir;
                self.attempt = if mutant!(RestartKeepsAttempt) { attempt } else { attempt.next() };
                if mutant!(RestartForgetsAnswers)
                    && let Phase::Live(live) = &mut self.phase
                {
                    live.questions.clear();
                }
                self.status_message = None;
                self.changed(now, effects);
                effects.push(Effect::Start { node: heir, attempt: self.attempt });
            }
            Some(_) if mutant!(OrphanLeftAlone) => return Ok(()),
            Some(_) | None => {
                self.status_message = Some(why.clone());
                self.end(now, Phase::Failed(Fault::internal(why)), effects);
            }
        }
        // The lost run may only have been thought dead: it is told.
        effects.push(lost);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::samples::{Number, T0, answer, ask, restartable, task};
    use crate::task::{Command, Status};

    fn lose(attempt: Attempt, heir: Option<NodeId>) -> Command<Number> {
        Command::Lose { attempt, heir, why: "its node was lost".into() }
    }

    #[test]
    fn a_lost_task_has_failed_and_says_why() {
        let mut task = task();
        let attempt = task.attempt;
        task.apply(T0, lose(attempt, Some(NodeId(2))), &mut Vec::new()).unwrap();
        assert_eq!(task.phase, Phase::Failed(Fault::internal("its node was lost")));
        assert_eq!(task.status_message.as_deref(), Some("its node was lost"));
    }

    #[test]
    fn a_restartable_task_goes_on_elsewhere_with_its_answers() {
        let mut task = restartable();
        let first = task.attempt;
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, answer([("a", Number(1))]), &mut Vec::new()).unwrap();
        let mut effects = Vec::new();
        task.apply(T0, lose(first, Some(NodeId(2))), &mut effects).unwrap();
        assert_eq!((task.node, task.attempt, task.status()), (NodeId(2), first.next(), Status::Working));
        assert_eq!(task.live().unwrap().questions["a"].answer, Some(Number(1)));
        assert!(effects.contains(&Effect::Start { node: NodeId(2), attempt: first.next() }));
        // The fence: the old attempt comes back from the dead.
        let late = Command::Complete { by: first, result: Number(9), message: None };
        assert_eq!(task.apply(T0, late, &mut Vec::new()), Err(Rejected::StaleAttempt));
    }

    #[test]
    fn only_the_attempt_that_was_lost_is_lost() {
        let mut task = restartable();
        let first = task.attempt;
        task.apply(T0, lose(first, Some(NodeId(2))), &mut Vec::new()).unwrap();
        let before = task.clone();
        assert_eq!(task.apply(T0, lose(first, Some(NodeId(3))), &mut Vec::new()), Err(Rejected::StaleAttempt));
        assert_eq!(task, before);
    }
}
