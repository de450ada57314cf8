//! Inserts that count: an owner's take turns.
//!
//! Whoever counts an owner's tasks holds a lock of the owner's until its own insert is durable. Were the others to wait for it in the
//! database, a burst of one owner's would hold all connections. So one transaction of an owner is under way at a time, and takes
//! along all that have come in since the last one began.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokkuri_core::store::{Answer, Outcome};
use tokkuri_core::task::Draft;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::Shared;
use super::error::Failure;
use super::requests::{self, Insertion};

/// How many inserts share a transaction at most: the first of them waits for the last.
const TOGETHER: usize = 64;

/// An insert that waits for its turn.
pub(super) struct Waiting {
    draft: Box<Draft<Json>>,
    limit: Option<u32>,
    answering: oneshot::Sender<Answer<Json>>,
}

impl Waiting {
    pub(super) fn new(draft: Box<Draft<Json>>, limit: Option<u32>) -> (Self, oneshot::Receiver<Answer<Json>>) {
        let (answering, answered) = oneshot::channel();
        (Self { draft, limit, answering }, answered)
    }
}

/// Inserts what waits for this owner until nothing does.
pub(super) async fn see_to(shared: Arc<Shared>, owner: [u8; 32]) {
    let mut turn = shared.inserts.see_to(owner);
    while let Some(waiting) = turn.next(TOGETHER) {
        let answers = match insert(&shared, &owner, &waiting).await {
            Ok(answers) => answers,
            // One may be the cause (too large for what is left of the disk, say), and none of them is stored: each by itself.
            Err(failure) if waiting.len() > 1 && !failure.maybe_done() && !failure.is_nobody_there() => {
                let mut answers = Vec::with_capacity(waiting.len());
                for one in waiting.chunks(1) {
                    answers
                        .extend(insert(&shared, &owner, one).await.unwrap_or_else(|it| vec![shared.failed(&it, true)]));
                }
                answers
            }
            Err(failure) => {
                let answers = vec![shared.failed(&failure, true); waiting.len()];
                // Those who came meanwhile were not sent. Nobody is made to wait for a database twice because of its turn.
                for one in turn.next(usize::MAX).unwrap_or_default() {
                    let _ = one.answering.send(shared.failed(&failure, false));
                }
                answers
            }
        };
        for (waiting, answer) in waiting.into_iter().zip(answers) {
            let _ = waiting.answering.send(answer);
        }
    }
}

async fn insert(shared: &Shared, owner: &[u8; 32], waiting: &[Waiting]) -> Result<Vec<Answer<Json>>, Failure> {
    let tasks = waiting.iter().map(|it| {
        // The database alone knows when that is.
        let task = it.draft.as_ref().clone().created(Millis(0));
        Insertion::new(task, it.limit)
    });
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    let rows = shared.rows(&requests::insert(owner, &tasks)).await?;
    let (now, came) = requests::inserted(&rows)?;
    shared.clock.at_least(now);
    if came.len() != waiting.len() {
        return Err(Failure::Unreadable("an answer to another insert".into()));
    }
    let outcomes = waiting.iter().zip(came).map(|(it, came)| match came {
        0 => {
            let task = Arc::new(it.draft.as_ref().clone().created(now));
            shared.tell(task.id, task.revision);
            Outcome::Inserted(task)
        }
        1 => Outcome::Exists,
        _ => Outcome::AtTheLimit,
    });
    Ok(outcomes.map(|outcome| Answer { now, outcome }).collect())
}
