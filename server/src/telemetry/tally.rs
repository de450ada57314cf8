//! What happened, in core's words, becomes numbers.

use std::time::Instant;

use tokkuri_core::id::Attempt;
use tokkuri_core::procedure::{After, Seen};
use tokkuri_core::store::{Answer, Outcome};
use tokkuri_core::task::{Effect, Status, Task};
use tokkuri_core::wire::Json;

use super::{Meters, StoreRequest};
use crate::store::Reply;

impl Meters {
    /// Awaits the store's answer and counts what came of it.
    pub(crate) async fn answer(&self, request: StoreRequest, reply: Reply) -> Answer<Json> {
        self.asked(request).requests.increment(1);
        let answer = match reply {
            // It was there at once, and looking at the clock would take longer than it did.
            Reply::Now(answer) => answer,
            Reply::Later(answer) => {
                let asked = Instant::now();
                let answer = answer.await;
                self.store_took(request, asked.elapsed());
                answer
            }
        };
        self.answered(request, &answer.outcome);
        answer
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "these are what is counted; the others say nothing by themselves"
    )]
    fn answered(&self, request: StoreRequest, outcome: &Outcome<Json>) {
        match outcome {
            Outcome::Unavailable(_) => self.asked(request).unavailable.increment(1),
            Outcome::Conflict => self.conflicts.increment(1),
            Outcome::AtTheLimit => self.quota_refusals.increment(1),
            Outcome::Leased { .. } => self.lease_renewals.increment(1),
            _ => {}
        }
    }

    /// A change of a task is stored, with these effects.
    pub(crate) fn stored(&self, after: &After<Json>) {
        let mut changed = Change::default();
        for effect in &after.effects {
            match effect {
                Effect::Start { attempt, .. } => changed.starts = Some(*attempt),
                Effect::Publish => changed.published = true,
                Effect::Signal { .. } => changed.run_is_told = true,
                Effect::Release { .. } => {}
            }
        }
        match &after.seen {
            Seen::Task(task) => self.changed(task, &changed),
            Seen::Gone if !changed.published => {}
            Seen::Gone if changed.run_is_told => self.expired_live.increment(1),
            Seen::Gone => self.expired_ended.increment(1),
        }
    }

    fn changed(&self, task: &Task<Json>, changed: &Change) {
        let tool = &task.origin.tool;
        match changed.starts {
            Some(Attempt::FIRST) => return self.created.of(tool).increment(1),
            Some(_) => return self.orphans_restarted.increment(1),
            None if !changed.published => return,
            None => {}
        }
        // A task that has ended never changes again: the change that was published is its end.
        match task.status() {
            Status::Working | Status::InputRequired => {}
            Status::Completed => self.ended.of(tool).completed.increment(1),
            Status::Cancelled => self.ended.of(tool).cancelled.increment(1),
            Status::Failed => {
                self.ended.of(tool).failed.increment(1);
                // A run that fails knows it already. One that is told was lost.
                if changed.run_is_told {
                    self.orphans_failed.increment(1);
                }
            }
        }
    }
}

/// The effects of one change.
#[derive(Debug, Default)]
struct Change {
    starts: Option<Attempt>,
    published: bool,
    run_is_told: bool,
}
