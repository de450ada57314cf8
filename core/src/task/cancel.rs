//! The owner wants no more of it.

use alloc::vec::Vec;

use crate::payload::Payload;
use crate::task::{Effect, Phase, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    /// A live task is cancelled at once, whether its run hears of it or not: what the run still returns is thrown away. The
    /// extension allows a task to end otherwise after a cancel was acknowledged; we promise that it does not.
    pub(super) fn cancel(&mut self, now: Millis, effects: &mut Vec<Effect<P>>) -> Result<(), Rejected> {
        match &self.phase {
            Phase::Live(_) if mutant!(CancelNotSticky) => {}
            Phase::Completed(_) if mutant!(CancelOverwritesEnd) => self.end(now, Phase::Cancelled, effects),
            Phase::Live(_) => {
                self.end(now, Phase::Cancelled, effects);
                effects.push(Effect::Signal { node: self.node, attempt: self.attempt });
            }
            // The same acknowledgement, and no change.
            Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Command;
    use crate::task::samples::{Number, T0, answer, ask, task};

    #[test]
    fn a_late_result_never_revives_a_cancelled_task() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::Cancel, &mut Vec::new()).unwrap();
        let before = task.clone();
        let late = [
            Command::Complete { by, result: Number(9), message: None },
            Command::Ask { by, key: "a".into(), request: Number(1) },
            Command::Progress { by, message: "1/2".into() },
        ];
        for command in late {
            assert_eq!(task.apply(T0, command, &mut Vec::new()), Err(Rejected::Ended));
            assert_eq!(task, before);
        }
    }

    #[test]
    fn cancelling_stops_the_run_and_releases_the_slot() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, Command::Note { by, slot: Number(5) }, &mut Vec::new()).unwrap();
        let mut effects = Vec::new();
        task.apply(T0, Command::Cancel, &mut effects).unwrap();
        let signal = Effect::Signal { node: task.node, attempt: task.attempt };
        assert_eq!(effects, [Effect::Publish, Effect::Release { slot: Number(5) }, signal]);
    }

    #[test]
    fn cancelling_what_ended_changes_nothing() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::Complete { by, result: Number(9), message: None }, &mut Vec::new()).unwrap();
        let before = task.clone();
        let mut effects = Vec::new();
        task.apply(T0.after(4), Command::Cancel, &mut effects).unwrap();
        task.apply(T0.after(4), answer([("a", Number(1))]), &mut effects).unwrap();
        assert_eq!(task, before);
        assert!(effects.is_empty());
    }
}
