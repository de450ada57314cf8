//! What the run says while it runs: how far it is, and the host's slot.

use alloc::vec::Vec;

use crate::Text;
use crate::id::Attempt;
use crate::payload::Payload;
use crate::task::{Effect, Rejected, Task};
use crate::time::Millis;

impl<P: Payload> Task<P> {
    pub(super) fn progress(
        &mut self,
        now: Millis,
        by: Attempt,
        message: Text,
        effects: &mut Vec<Effect<P>>,
    ) -> Result<(), Rejected> {
        self.fence(by)?;
        let message = Some(message).filter(|message| !message.is_empty());
        if self.status_message != message {
            self.status_message = message;
            self.changed(now, effects);
        }
        Ok(())
    }

    /// The slot is the host's own, so followers hear nothing of it.
    pub(super) fn note(&mut self, now: Millis, by: Attempt, slot: P) -> Result<(), Rejected> {
        self.fence(by)?;
        if self.slot.as_ref() != Some(&slot) {
            self.slot = Some(slot);
            self.revision = self.revision.next();
            self.updated = now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Command;
    use crate::task::samples::{T0, task};

    #[test]
    fn progress_is_the_status_message() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::Progress { by, message: "1/2".into() }, &mut Vec::new()).unwrap();
        assert_eq!(task.status_message.as_deref(), Some("1/2"));
    }

    #[test]
    fn an_empty_message_takes_the_status_message_away() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0, Command::Progress { by, message: "1/2".into() }, &mut Vec::new()).unwrap();
        task.apply(T0, Command::Progress { by, message: "".into() }, &mut Vec::new()).unwrap();
        assert_eq!(task.status_message, None);
        let before = task.clone();
        task.apply(T0, Command::Progress { by, message: "".into() }, &mut Vec::new()).unwrap();
        assert_eq!(task, before);
    }

    #[test]
    fn a_stale_attempt_says_nothing_any_more() {
        let mut task = task();
        let by = Attempt(0);
        let before = task.clone();
        let refused = task.apply(T0, Command::Progress { by, message: "1/2".into() }, &mut Vec::new());
        assert_eq!(refused, Err(Rejected::StaleAttempt));
        assert_eq!(task, before);
    }

    #[test]
    fn time_never_goes_back() {
        let mut task = task();
        let by = task.attempt;
        task.apply(T0.after(9), Command::Progress { by, message: "1/2".into() }, &mut Vec::new()).unwrap();
        task.apply(T0.after(3), Command::Progress { by, message: "2/2".into() }, &mut Vec::new()).unwrap();
        assert_eq!(task.updated, T0.after(9));
    }
}
