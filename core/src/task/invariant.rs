//! What holds of every stored task. Debug builds, the model's worlds, fuzzers and tests all call this one.

use crate::id::{Attempt, Revision};
use crate::payload::Payload;
use crate::task::{Phase, Task};

/// A task that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("broken invariant: {0}")]
pub struct Broken(pub &'static str);

/// Checks one task by itself.
///
/// # Errors
/// The first invariant that does not hold.
pub fn check<P: Payload>(task: &Task<P>) -> Result<(), Broken> {
    let holds = |it: bool, claim: &'static str| if it { Ok(()) } else { Err(Broken(claim)) };
    holds(task.revision >= Revision::FIRST, "a stored task has a revision")?;
    holds(task.attempt >= Attempt::FIRST, "a task has an attempt")?;
    holds(task.updated >= task.origin.created, "a task changes after it was created")?;
    holds(task.ttl_ms > 0, "a task lives for a while")?;
    match &task.phase {
        Phase::Live(live) => {
            holds(live.questions.len() <= task.origin.max_questions as usize, "a task asks no more than it may")?;
            for question in live.questions.values() {
                let declared = question.request.needs().missing_from(task.origin.capabilities).is_none();
                holds(declared, "a task asks only what its client declared")?;
                let fits = question.answer.as_ref().is_none_or(|answer| question.request.accepts(answer).is_ok());
                holds(fits, "a recorded answer fits its question")?;
            }
        }
        Phase::Failed(fault) => {
            holds(task.status_message.as_ref() == Some(&fault.message), "a failed task says why")?;
            ended(task)?;
        }
        Phase::Completed(_) | Phase::Cancelled => ended(task)?,
    }
    Ok(())
}

fn ended<P: Payload>(task: &Task<P>) -> Result<(), Broken> {
    if task.slot.is_some() {
        return Err(Broken("a task that ended holds nothing upstream"));
    }
    if task.expires() < task.updated.after(task.origin.keep_ms) {
        return Err(Broken("a result stays readable"));
    }
    Ok(())
}

/// Checks that `after` may follow `before` in the store.
///
/// # Errors
/// The first invariant that does not hold.
pub fn check_step<P: Payload>(before: &Task<P>, after: &Task<P>) -> Result<(), Broken> {
    let holds = |it: bool, claim: &'static str| if it { Ok(()) } else { Err(Broken(claim)) };
    holds(before.id == after.id && before.origin == after.origin, "what was settled at creation stays")?;
    holds(after.revision > before.revision, "revisions only grow")?;
    holds(after.updated >= before.updated, "lastUpdatedAt never goes back")?;
    holds(after.attempt >= before.attempt, "attempts only grow")?;
    holds(after.node == before.node || after.attempt > before.attempt, "on another node it is another attempt")?;
    holds(after.ttl_ms >= before.ttl_ms, "a time to live is only raised")?;
    match (&before.phase, &after.phase) {
        (Phase::Live(old), Phase::Live(new)) => {
            for (key, question) in &old.questions {
                let same = new.questions.get(key);
                let kept = same.is_some_and(|it| it.request == question.request);
                holds(kept, "a key is never used for another question")?;
                let first = question.answer.is_none() || same.is_some_and(|it| it.answer == question.answer);
                holds(first, "the first answer wins")?;
            }
            Ok(())
        }
        (Phase::Live(_), Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled) => Ok(()),
        (Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled, _) => Err(Broken("an end is final")),
    }
}
