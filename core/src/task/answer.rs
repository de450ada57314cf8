//! The client answers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::Key;
use crate::payload::Payload;
use crate::task::{Effect, Phase, Question, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    pub(super) fn answer(
        &mut self,
        now: Millis,
        mut answers: BTreeMap<Key, P>,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        let live = match &mut self.phase {
            Phase::Live(live) => live,
            // A late answer is acknowledged and changes nothing.
            Phase::Cancelled if mutant!(LateAnswerRefused) => return Err(Rejected::Ended),
            Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled => return Ok(()),
        };
        // Keys first, values second: what was not asked, or is answered already, is never looked at.
        answers.retain(|key, _| {
            let open = |question: &Question<P>| question.answer.is_none() || mutant!(LastAnswerWins);
            live.questions.get(key).is_some_and(open)
        });
        if mutant!(RefusedHasEffects) {
            effects.push(Effect::Publish);
        }
        for (key, answer) in &answers {
            if let Err(misfit) = live.questions[key].request.accepts(answer)
                && !mutant!(MisfitAccepted)
            {
                return Err(Rejected::Misfit { key: key.clone(), reason: misfit.0 });
            }
        }
        if answers.is_empty() {
            return Ok(());
        }
        for (key, answer) in answers {
            if let Some(question) = live.questions.get_mut(&key) {
                question.answer = Some(answer);
            }
        }
        if mutant!(AnswerNotStored) {
            return Ok(());
        }
        self.changed(now, effects);
        effects.push(Effect::Signal { node: self.node, attempt: self.attempt });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Status;
    use crate::task::samples::{Number, T0, answer, ask, task};

    #[test]
    fn the_first_answer_wins() {
        let mut task = task();
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        let mut effects = Vec::new();
        task.apply(T0, answer([("a", Number(1))]), &mut effects).unwrap();
        assert_eq!(task.status(), Status::Working);
        assert_eq!(effects, [Effect::Publish, Effect::Signal { node: task.node, attempt: task.attempt }]);
        let before = task.clone();
        task.apply(T0, answer([("a", Number(2))]), &mut Vec::new()).unwrap();
        assert_eq!(task, before);
    }

    #[test]
    fn one_misfit_refuses_the_whole_update_and_the_key_stays_outstanding() {
        let mut task = task();
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, ask("b"), &mut Vec::new()).unwrap();
        let before = task.clone();
        let refused = task.apply(T0, answer([("a", Number(1)), ("b", Number::JUNK)]), &mut Vec::new());
        assert!(matches!(refused, Err(Rejected::Misfit { key, .. }) if key == "b"));
        assert_eq!(task, before);
    }

    #[test]
    fn junk_under_an_unknown_key_is_never_looked_at() {
        let mut task = task();
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        let before = task.clone();
        assert_eq!(task.apply(T0, answer([("A", Number::JUNK)]), &mut Vec::new()), Ok(()));
        assert_eq!(task, before);
    }

    #[test]
    fn a_partial_answer_leaves_the_rest_outstanding() {
        let mut task = task();
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        task.apply(T0, ask("b"), &mut Vec::new()).unwrap();
        task.apply(T0, answer([("a", Number(1))]), &mut Vec::new()).unwrap();
        assert_eq!(task.status(), Status::InputRequired);
        let keys: Vec<_> = task.live().unwrap().outstanding().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, ["b"]);
    }
}
