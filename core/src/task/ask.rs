//! The run asks the client something.

use alloc::vec::Vec;

use crate::id::{Attempt, Key};
use crate::payload::Payload;
use crate::task::{Effect, Phase, Question, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    pub(super) fn ask(
        &mut self,
        now: Millis,
        by: Attempt,
        key: Key,
        request: P,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        self.fence(by)?;
        let live = match &mut self.phase {
            Phase::Live(live) => live,
            Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled => return Err(Rejected::Ended),
        };
        // A key is used once in a task's life. Asking again is no change, not even with another question.
        if live.questions.contains_key(&key) && !mutant!(KeyReused) {
            return Ok(());
        }
        if let Some(missing) = request.needs().missing_from(self.origin.capabilities) {
            return Err(Rejected::Undeclared { missing });
        }
        let limit = self.origin.max_questions;
        if live.questions.len() >= limit as usize {
            return Err(Rejected::TooManyQuestions { limit });
        }
        live.questions.insert(key, Question { request, answer: None });
        self.changed(now, effects);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Capabilities;
    use crate::task::samples::{Number, T0, ask, task};
    use crate::task::{Command, Status};

    #[test]
    fn a_question_makes_the_task_wait() {
        let mut task = task();
        let mut effects = Vec::new();
        task.apply(T0.after(1), ask("a"), &mut effects).unwrap();
        assert_eq!(task.status(), Status::InputRequired);
        assert_eq!(effects, [Effect::Publish]);
    }

    #[test]
    fn asking_a_used_key_again_changes_nothing() {
        let mut task = task();
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        let before = task.clone();
        let other = Command::Ask { by: task.attempt, key: "a".into(), request: Number(7) };
        let mut effects = Vec::new();
        task.apply(T0.after(5), other, &mut effects).unwrap();
        assert_eq!(task, before);
        assert!(effects.is_empty());
    }

    #[test]
    fn what_the_creating_request_did_not_declare_is_not_asked() {
        let mut task = task();
        let url = Command::Ask { by: task.attempt, key: "u".into(), request: Number::URL };
        let before = task.clone();
        let missing = Capabilities { url: true, ..Capabilities::default() };
        assert_eq!(task.apply(T0, url, &mut Vec::new()), Err(Rejected::Undeclared { missing }));
        assert_eq!(task, before);
    }

    #[test]
    fn there_is_a_limit_to_questions() {
        let mut task = task();
        for key in ["a", "b", "c"] {
            task.apply(T0, ask(key), &mut Vec::new()).unwrap();
        }
        assert_eq!(task.apply(T0, ask("d"), &mut Vec::new()), Err(Rejected::TooManyQuestions { limit: 3 }));
        assert_eq!(task.apply(T0, ask("a"), &mut Vec::new()), Ok(()));
    }
}
