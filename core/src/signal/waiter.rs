//! One who waits for what happens to a run.

use core::task::{Context, Poll};

use super::Registry;
use super::waiting::Place;
use crate::id::{Attempt, Key, TaskId};
use crate::payload::Payload;
use crate::run::{ProgressDue, Run, Stop};
use crate::time::Millis;

/// One who waits at the run of one attempt: what a future holds while it is polled, and drops with itself.
///
/// # Contract
/// * Its `poll_…` functions are like [`Future::poll`]: after `Pending`, the waker of the latest call is woken at the next change
///   of the run. Unlike a future it may be polled again after `Ready`, and for something else.
/// * It waits for one thing at a time. Who wants an answer and a stop at once asks for the answer, which a stop ends as well, or
///   takes two waiters.
/// * Dropping it takes its waker out of the registry.
#[derive(Debug)]
pub struct Waiter<'a, P: Payload> {
    registry: &'a Registry<P>,
    id: TaskId,
    attempt: Attempt,
    place: Option<Place>,
}

impl<P: Payload> Waiter<'_, P> {
    /// Ready once this attempt has to stop. One that is not in the table any more is lost.
    pub fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        self.poll(cx, |run| run.stop()).map(|outcome| outcome.unwrap_or_else(|stop| stop))
    }

    /// Ready once the question of this key is answered, or the attempt has to stop. An answer that is there goes before a
    /// stop only if the stop is not there yet.
    pub fn poll_answer(&mut self, key: &Key, cx: &mut Context<'_>) -> Poll<Result<P, Stop>> {
        self.poll(cx, |run| match run.stop() {
            Some(stop) => Some(Err(stop)),
            None => run.answer(key).cloned().map(Ok),
        })
        .map(|outcome| outcome.unwrap_or_else(Err))
    }

    /// What to do about the run's progress at `now` (the process's clock); pending while there is nothing to do.
    pub fn poll_progress(&mut self, now: Millis, cx: &mut Context<'_>) -> Poll<ProgressDue> {
        self.poll(cx, |run| match run.progress_due(now) {
            ProgressDue::Nothing => None,
            due @ (ProgressDue::At(_) | ProgressDue::Write(_)) => Some(due),
        })
        .map(|outcome| outcome.unwrap_or(ProgressDue::Nothing))
    }

    /// Looks, and if there is nothing yet, leaves the waker under the same lock: nothing can come in between.
    /// `Err` means that this attempt is not in the table any more.
    fn poll<T>(&mut self, cx: &mut Context<'_>, look: impl FnOnce(&mut Run<P>) -> Option<T>) -> Poll<Result<T, Stop>> {
        let mut shard = self.registry.shard(self.id);
        let Some(run) = shard.host.run_of(self.id, self.attempt) else { return Poll::Ready(Err(Stop::Lost)) };
        if let Some(found) = look(run) {
            return Poll::Ready(Ok(found));
        }
        let replaced = shard.waiting.leave(self.id, &mut self.place, cx.waker());
        drop(shard);
        drop(replaced);
        Poll::Pending
    }
}

impl<P: Payload> Drop for Waiter<'_, P> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut shard = self.registry.shard(self.id);
        let waker = shard.waiting.forget(self.id, place);
        drop(shard);
        drop(waker);
    }
}

impl<P: Payload> Registry<P> {
    /// One more who waits at the run of this attempt.
    pub const fn waiter(&self, id: TaskId, attempt: Attempt) -> Waiter<'_, P> {
        Waiter { registry: self, id, attempt, place: None }
    }
}
