//! Loads and commits of one task take turns within a store.
//!
//! Of many at once, one load answers for all that came before it was sent; and of the commits one alone can win, so that the others
//! need not be sent once it has. Many questions of one task, asked at once, would otherwise cost as many loads and commits as the
//! square of their number.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::store::{Answer, Outcome, Request, Unavailable};
use tokkuri_core::task::Task;
use tokkuri_core::wire::Json;

use super::Shared;

/// Whoever wants to know.
pub(super) type Answering = oneshot::Sender<Answer<Json>>;

/// A commit that waits for its turn.
pub(super) struct Commit {
    pub(super) expected: Revision,
    pub(super) task: Arc<Task<Json>>,
    pub(super) answering: Answering,
}

/// Loads the task until nobody waits for it.
pub(super) async fn load(shared: Arc<Shared>, id: TaskId) {
    let mut turn = shared.loads.see_to(id);
    // Whoever comes after this is owed a look that begins later.
    while let Some(waiting) = turn.next(usize::MAX) {
        let answer = shared.answer(Request::Load { id }).await;
        let is_there = !matches!(answer.outcome, Outcome::Unavailable(_));
        // Nobody is made to wait for a database twice because of its turn.
        let more = if is_there { Vec::new() } else { turn.next(usize::MAX).unwrap_or_default() };
        for answering in waiting.into_iter().chain(more) {
            let _ = answering.send(answer.clone());
        }
    }
}

/// Commits what waits, until nothing does.
pub(super) async fn commit(shared: Arc<Shared>, id: TaskId) {
    let mut newest = Revision(0);
    let mut turn = shared.commits.see_to(id);
    while let Some(waiting) = turn.next(usize::MAX) {
        let mut waiting = VecDeque::from(waiting);
        while let Some(Commit { expected, task, answering }) = waiting.pop_front() {
            // A revision that the task has left behind never comes back.
            let answer = if expected < newest {
                Answer { now: shared.clock.latest(), outcome: Outcome::Conflict }
            } else {
                let revision = task.revision;
                let answer = shared.answer(Request::Commit { expected, task }).await;
                match &answer.outcome {
                    Outcome::Committed => newest = newest.max(revision),
                    // The others were not sent. Nobody is made to wait for a database many times because of its turn.
                    Outcome::Unavailable(unavailable) => {
                        waiting.extend(turn.next(usize::MAX).unwrap_or_default());
                        let unavailable = Unavailable { maybe_done: false, ..unavailable.clone() };
                        let outcome = Outcome::Unavailable(unavailable);
                        for Commit { answering, .. } in waiting.drain(..) {
                            let _ = answering.send(Answer { now: answer.now, outcome: outcome.clone() });
                        }
                    }
                    _ => {}
                }
                answer
            };
            let _ = answering.send(answer);
        }
    }
}
