//! What one task is, and every way it can change.
//!
//! [`Task::apply`] takes one [`Command`], changes the task, and says what has to happen once the new state is stored. The
//! commands live in one file per family; each matches every phase explicitly.

mod answer;
mod ask;
mod cancel;
mod command;
mod create;
mod effect;
mod finish;
mod hand_over;
pub mod invariant;
mod lose;
mod progress;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use command::{Command, Rejected};
pub use create::Draft;
pub use effect::Effect;

use crate::Text;
use crate::access::Owner;
use crate::id::{Attempt, Key, NodeId, Revision, TaskId};
use crate::payload::{self, Capabilities, Payload};
use crate::time::Millis;

/// One task, as the store keeps it.
///
/// ```text
///                        ask                       complete
///            ┌─────────┐ ───▶ ┌────────────────┐ ─────────▶ completed
///  create ─▶ │ working │      │ input_required │ ─────────▶ failed      (fail, lose)
///            └─────────┘ ◀─── └────────────────┘ ─────────▶ cancelled   (cancel)
///               │        answer (the last one)
///               └─────────────────────────────────────────▶ any of the three
/// ```
///
/// A task that has ended stays as it is. One whose time to live is over is as if it had never been, in whatever phase: the
/// machines refuse every command ([`Rejected::Expired`]) and the store removes it.
///
/// # Contract
/// * [`apply`](Self::apply) is the only way to change a task. If it returns `Err`, nothing has changed.
/// * A command that finds nothing to change is `Ok`, leaves [`revision`](Self::revision) alone and has no effects: an answer to
///   a question that was answered, a cancel of a task that ended.
/// * Effects may be carried out only after the new state is stored under the revision that was loaded.
/// * [`invariant::check`] holds after every `apply`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Task<P> {
    /// Its name.
    pub id: TaskId,
    /// How often it was stored.
    pub revision: Revision,
    /// What was settled when it was created.
    pub origin: Arc<Origin>,
    /// The node that runs it, or ran it last.
    pub node: NodeId,
    /// The attempt that may write.
    pub attempt: Attempt,
    /// Where it is in its life.
    pub phase: Phase<P>,
    /// What the run last said of its progress, or why the task ended.
    pub status_message: Option<Text>,
    /// When it last changed; never goes back.
    pub updated: Millis,
    /// How long it is kept, counted from its creation. Ending may raise it.
    pub ttl_ms: u64,
    /// For the host alone: the name of an upstream's task, say. Core only hands it back in [`Effect::Release`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "payload::present")]
    pub slot: Option<P>,
}

/// What was settled when a task was created.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Whose it is.
    pub owner: Owner,
    /// The tool that it runs.
    pub tool: Text,
    /// The scopes that the tool required when the task started.
    pub scopes: Vec<Text>,
    /// What the creating request's credentials granted; empty without authorization. The tool is told, nothing is decided by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<Text>,
    /// What the creating request declared: the bounds of what the task may ask.
    pub capabilities: Capabilities,
    /// W3C `traceparent` of the creating request.
    pub traceparent: Option<Text>,
    /// Whether the tool may be run again if its node is lost.
    pub restartable: bool,
    /// When the store inserted it.
    pub created: Millis,
    /// How often clients are asked to poll (`pollIntervalMs`).
    pub poll_interval_ms: u64,
    /// How long a result stays readable after the task's end, at least.
    pub keep_ms: u64,
    /// How many questions it may ask in its life.
    pub max_questions: u32,
}

/// Where a task is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase<P> {
    /// It runs, or waits for answers.
    Live(Live<P>),
    /// Its tool returned a result, `isError` or not.
    Completed(P),
    /// It ended with a JSON-RPC error.
    Failed(Fault<P>),
    /// Its owner cancelled it.
    Cancelled,
}

/// What only a live task has. It is dropped at the task's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Live<P> {
    /// The arguments of the call: what a restart needs.
    pub arguments: P,
    /// Every question that was ever asked, by its key.
    pub questions: BTreeMap<Key, Question<P>>,
}

/// One question to the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Question<P> {
    /// What was asked.
    pub request: P,
    /// The first answer that fitted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "payload::present")]
    pub answer: Option<P>,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Fault<P> {
    /// Its code.
    pub code: i64,
    /// What it says.
    pub message: Text,
    /// What it carries besides.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "payload::present")]
    pub data: Option<P>,
}

/// -32603: the code of a fault that is ours, not the caller's.
pub const INTERNAL_ERROR: i64 = -32603;

impl<P> Fault<P> {
    /// An internal error (-32603) that says `message`.
    pub fn internal(message: impl Into<Text>) -> Self {
        Self { code: INTERNAL_ERROR, message: message.into(), data: None }
    }
}

/// A task's status in the words of the wire (tasks extension, § Task Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool runs.
    Working,
    /// At least one question is outstanding.
    InputRequired,
    /// Ended with a result.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended by its owner.
    Cancelled,
}

impl Status {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Working | Self::InputRequired => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl<P> Task<P> {
    /// The status that follows from the phase: `input_required` exactly while a question is outstanding.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Live(live) if live.outstanding().next().is_some() && !mutant!(StatusNeverWaits) => {
                Status::InputRequired
            }
            Phase::Live(_) => Status::Working,
            Phase::Completed(_) => Status::Completed,
            Phase::Failed(_) => Status::Failed,
            Phase::Cancelled => Status::Cancelled,
        }
    }

    /// The live part, while there is one.
    pub const fn live(&self) -> Option<&Live<P>> {
        match &self.phase {
            Phase::Live(live) => Some(live),
            Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled => None,
        }
    }

    /// From this moment on the task is as if it had never been.
    pub fn expires(&self) -> Millis {
        self.origin.created.after(self.ttl_ms)
    }

    /// Whether the task is still there at `now`.
    pub fn is_visible(&self, now: Millis) -> bool {
        now < self.expires() || (mutant!(LivesAMomentLonger) && now == self.expires())
    }
}

impl<P> Live<P> {
    /// The questions that wait for an answer, by key.
    pub fn outstanding(&self) -> impl Iterator<Item = (&Key, &P)> {
        self.questions
            .iter()
            .filter(|(_, question)| question.answer.is_none())
            .map(|(key, question)| (key, &question.request))
    }
}

impl<P: Payload> Task<P> {
    /// Carries out one command at the store's time `now`; see the type's contract.
    ///
    /// # Errors
    /// [`Rejected`] says why the command cannot be; the task and `effects` are then as they were.
    pub fn apply(&mut self, now: Millis, command: Command<P>, effects: &mut Vec<Effect<P>>) -> Result<(), Rejected> {
        let now = now.max(self.updated);
        if !self.is_visible(now) {
            return Err(Rejected::Expired);
        }
        match command {
            Command::Progress { by, message } => self.progress(now, by, message, effects),
            Command::Ask { by, key, request } => self.ask(now, by, key, request, effects),
            Command::Answer { answers } => self.answer(now, answers, effects),
            Command::Complete { by, result, message } => self.complete(now, by, result, message, effects),
            Command::Fail { by, fault } => self.fail(now, by, fault, effects),
            Command::Cancel => self.cancel(now, effects),
            Command::Lose { attempt, heir, why } => self.lose(now, attempt, heir, why, effects),
            Command::HandOver { by, began } => self.hand_over(now, by, began, effects),
            Command::Note { by, slot } => self.note(now, by, slot),
        }?;
        debug_assert_eq!(invariant::check(self), Ok(()));
        Ok(())
    }

    /// The fence: only the newest attempt of a task that lives may write.
    fn fence(&self, by: Attempt) -> Result<(), Rejected> {
        match &self.phase {
            Phase::Live(_) if by == self.attempt || mutant!(FenceNotCompared) => Ok(()),
            Phase::Live(_) => Err(Rejected::StaleAttempt),
            Phase::Completed(_) | Phase::Failed(_) | Phase::Cancelled => Err(Rejected::Ended),
        }
    }

    /// The last step of every command that changed something.
    fn changed(&mut self, now: Millis, effects: &mut Vec<Effect<P>>) {
        self.revision = self.revision.next();
        self.updated = now;
        effects.push(Effect::Publish);
    }
}

#[cfg(test)]
pub(crate) mod samples;
