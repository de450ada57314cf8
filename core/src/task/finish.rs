//! The run ended, with a result or with an error.

use alloc::vec::Vec;

use crate::Text;
use crate::id::Attempt;
use crate::payload::Payload;
use crate::task::{Effect, Fault, Phase, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    pub(super) fn complete(
        &mut self,
        now: Millis,
        by: Attempt,
        result: P,
        message: Option<Text>,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        if !(mutant!(LateResultWins) && matches!(self.phase, Phase::Cancelled)) {
            self.fence(by)?;
        }
        if let Some(message) = message {
            self.status_message = Some(message).filter(|message| !message.is_empty());
        }
        // What the run used upstream has ended with it: nothing is left to release.
        self.slot = None;
        self.end(now, Phase::Completed(result), effects);
        Ok(())
    }

    pub(super) fn fail(
        &mut self,
        now: Millis,
        by: Attempt,
        fault: Fault<P>,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        self.fence(by)?;
        self.slot = None;
        self.status_message = Some(fault.message.clone());
        self.end(now, Phase::Failed(fault), effects);
        Ok(())
    }

    /// Every end goes through here: arguments, questions and answers are dropped with the old phase, the time to live is
    /// raised so that the outcome stays readable, and what the slot names is released.
    pub(super) fn end(&mut self, now: Millis, phase: Phase<P>, effects: &mut Vec<Effect<P>>) {
        self.phase = phase;
        let keep = now.after(self.origin.keep_ms).since(self.origin.created);
        self.ttl_ms = if mutant!(ResultNotKept) { self.ttl_ms } else { self.ttl_ms.max(keep) };
        self.changed(now, effects);
        if let Some(slot) = self.slot.take() {
            effects.push(Effect::Release { slot });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::samples::{KEEP_MS, Number, T0, TTL_MS, ask, task};
    use crate::task::{Command, Status};

    #[test]
    fn a_result_ends_the_task_and_drops_what_only_a_live_one_needs() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, ask("a"), &mut Vec::new()).unwrap();
        let complete = Command::Complete { by, result: Number(9), message: Some("2/2".into()) };
        task.apply(T0.after(3), complete, &mut Vec::new()).unwrap();
        assert_eq!(task.phase, Phase::Completed(Number(9)));
        assert_eq!(task.status_message.as_deref(), Some("2/2"));
    }

    #[test]
    fn an_error_is_also_the_status_message() {
        let mut task = task();
        let fault = Fault { code: -32602, message: "no such row".into(), data: Some(Number(1)) };
        task.apply(T0, Command::Fail { by: task.attempt, fault: fault.clone() }, &mut Vec::new()).unwrap();
        assert_eq!(task.status(), Status::Failed);
        assert_eq!(task.status_message.as_deref(), Some("no such row"));
        assert_eq!(task.phase, Phase::Failed(fault));
    }

    #[test]
    fn a_result_stays_readable_for_keep_ms() {
        let mut task = task();
        let by = task.attempt;
        let late = T0.after(TTL_MS - 1);
        task.apply(late, Command::Complete { by, result: Number(9), message: None }, &mut Vec::new()).unwrap();
        assert_eq!(task.expires(), late.after(KEEP_MS));
    }

    #[test]
    fn an_early_end_does_not_shorten_the_time_to_live() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::Complete { by, result: Number(9), message: None }, &mut Vec::new()).unwrap();
        assert_eq!(task.ttl_ms, TTL_MS);
    }

    #[test]
    fn after_its_time_to_live_a_task_takes_no_command() {
        let mut task = task();
        let by = task.attempt;
        let before = task.clone();
        let late = T0.after(TTL_MS);
        let refused = task.apply(late, Command::Complete { by, result: Number(9), message: None }, &mut Vec::new());
        assert_eq!(refused, Err(Rejected::Expired));
        assert_eq!(task, before);
    }
}
