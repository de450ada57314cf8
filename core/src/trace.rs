//! What a server did to its tasks, written down so that core can be asked whether it would have done the same.
//!
//! One [`Record`] a line of JSON. Whoever records writes one for every insert and for every commit that was carried out, and one
//! for every command that was refused or changed nothing, in the order in which the store did them for each task. Times are the
//! store's own. `tokkuri-model replay` runs them through [`Task::apply`](crate::task::Task::apply).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Text;
use crate::id::{Attempt, Key, NodeId, Revision, TaskId};
use crate::payload::Payload;
use crate::task::{Command, Effect, Fault, Rejected, Status, Task};
use crate::time::Millis;

/// One thing that was done to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Record<P> {
    /// The task.
    pub task: TaskId,
    /// The store's time that the change was made with: that of the load it was made from, or of the insert.
    pub now: Millis,
    /// What was asked of the task.
    pub did: Did<P>,
    /// What came of it.
    pub came: Came,
    /// The revision that is stored now, or was found.
    pub revision: Revision,
    /// The status at that revision.
    pub status: Status,
}

/// What was asked of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Did<P> {
    /// It was inserted. The task as it was stored is where a replay begins.
    Insert(Task<P>),
    /// [`Command::Progress`].
    Progress(Attempt, Text),
    /// [`Command::Ask`].
    Ask(Attempt, Key, P),
    /// [`Command::Answer`].
    Answer(BTreeMap<Key, P>),
    /// [`Command::Complete`].
    Complete(Attempt, P, Option<Text>),
    /// [`Command::Fail`].
    Fail(Attempt, Fault<P>),
    /// [`Command::Cancel`].
    Cancel,
    /// [`Command::Lose`].
    Lose(Attempt, Option<NodeId>, Text),
    /// [`Command::HandOver`].
    HandOver(Attempt, bool),
    /// [`Command::Note`].
    Note(Attempt, P),
    /// It was removed, its time to live being over.
    Remove,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// It was stored.
    Stored,
    /// There was nothing to change.
    Unchanged,
    /// The task refused, for this reason ([`reason`]).
    Refused(Text),
}

/// The short name of a refusal, as it is recorded.
pub const fn reason(rejected: &Rejected) -> &'static str {
    match rejected {
        Rejected::Expired => "expired",
        Rejected::Ended => "ended",
        Rejected::StaleAttempt => "stale_attempt",
        Rejected::Undeclared { .. } => "undeclared",
        Rejected::TooManyQuestions { .. } => "too_many_questions",
        Rejected::Misfit { .. } => "misfit",
    }
}

impl<P> From<Command<P>> for Did<P> {
    fn from(command: Command<P>) -> Self {
        match command {
            Command::Progress { by, message } => Self::Progress(by, message),
            Command::Ask { by, key, request } => Self::Ask(by, key, request),
            Command::Answer { answers } => Self::Answer(answers),
            Command::Complete { by, result, message } => Self::Complete(by, result, message),
            Command::Fail { by, fault } => Self::Fail(by, fault),
            Command::Cancel => Self::Cancel,
            Command::Lose { attempt, heir, why } => Self::Lose(attempt, heir, why),
            Command::HandOver { by, began } => Self::HandOver(by, began),
            Command::Note { by, slot } => Self::Note(by, slot),
        }
    }
}

/// Replays the records of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conformance<P> {
    task: Option<Task<P>>,
}

/// What core would have done instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Divergence(pub String);

impl<P> Default for Conformance<P> {
    fn default() -> Self {
        Self { task: None }
    }
}

impl<P: Payload> Conformance<P> {
    /// The next record of the task.
    ///
    /// # Errors
    /// Says how core differs from what was recorded.
    pub fn follow(&mut self, record: Record<P>) -> Result<(), Divergence> {
        let Record { now, did, came, revision, status, .. } = record;
        let command = match did {
            Did::Insert(task) if self.task.is_none() => {
                same("the revision of an insert", &Revision::FIRST, &task.revision)?;
                crate::task::invariant::check(&task).map_err(|broken| Divergence(alloc::format!("{broken}")))?;
                self.task = Some(task);
                return self.compare(revision, status);
            }
            Did::Insert(_) => return Err(Divergence("it is inserted a second time".into())),
            Did::Remove => {
                return match self.task.take() {
                    Some(task) if task.is_visible(now) => Err(Divergence("it is removed before its time".into())),
                    Some(_) => Ok(()),
                    None => Err(Divergence("it is removed, and was never inserted".into())),
                };
            }
            Did::Progress(by, message) => Command::Progress { by, message },
            Did::Ask(by, key, request) => Command::Ask { by, key, request },
            Did::Answer(answers) => Command::Answer { answers },
            Did::Complete(by, result, message) => Command::Complete { by, result, message },
            Did::Fail(by, fault) => Command::Fail { by, fault },
            Did::Cancel => Command::Cancel,
            Did::Lose(attempt, heir, why) => Command::Lose { attempt, heir, why },
            Did::HandOver(by, began) => Command::HandOver { by, began },
            Did::Note(by, slot) => Command::Note { by, slot },
        };
        let Some(task) = &mut self.task else { return Err(Divergence("it was never inserted".into())) };
        let before = task.revision;
        let mut effects: Vec<Effect<P>> = Vec::new();
        let would = match task.apply(now, command, &mut effects) {
            Ok(()) if task.revision == before => Came::Unchanged,
            Ok(()) => Came::Stored,
            Err(rejected) => Came::Refused(reason(&rejected).into()),
        };
        same("what came of it", &would, &came)?;
        self.compare(revision, status)
    }

    fn compare(&self, revision: Revision, status: Status) -> Result<(), Divergence> {
        let Some(task) = &self.task else { return Ok(()) };
        same("the revision", &task.revision, &revision)?;
        same("the status", &task.status(), &status)
    }
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, core: &T, server: &T) -> Result<(), Divergence> {
    if core == server {
        return Ok(());
    }
    Err(Divergence(alloc::format!("{what}: core says {core:?}, the record {server:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::samples::{Number, T0, task};

    fn record(did: Did<Number>, came: Came, revision: u64, status: Status) -> Record<Number> {
        Record { task: task().id, now: T0, did, came, revision: Revision(revision), status }
    }

    #[test]
    fn what_core_would_have_done_conforms() {
        let mut replay = Conformance::default();
        replay.follow(record(Did::Insert(task()), Came::Stored, 1, Status::Working)).unwrap();
        replay.follow(record(Did::Cancel, Came::Stored, 2, Status::Cancelled)).unwrap();
        replay.follow(record(Did::Cancel, Came::Unchanged, 2, Status::Cancelled)).unwrap();
        let late = Did::Complete(Attempt::FIRST, Number(9), None);
        replay.follow(record(late, Came::Refused("ended".into()), 2, Status::Cancelled)).unwrap();
    }

    #[test]
    fn a_late_result_that_was_stored_does_not() {
        let mut replay = Conformance::default();
        replay.follow(record(Did::Insert(task()), Came::Stored, 1, Status::Working)).unwrap();
        replay.follow(record(Did::Cancel, Came::Stored, 2, Status::Cancelled)).unwrap();
        let late = Did::Complete(Attempt::FIRST, Number(9), None);
        assert!(replay.follow(record(late, Came::Stored, 3, Status::Completed)).is_err());
    }
}
