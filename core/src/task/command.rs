//! What can be asked of a task, and why it may refuse.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::Text;
use crate::id::{Attempt, Key, NodeId};
use crate::payload::Capabilities;
use crate::task::Fault;

/// One change of a task. `by` is the attempt that the run belongs to: it must be the task's newest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<P> {
    /// The run says how far it is: sets the status message.
    Progress {
        /// Who writes.
        by: Attempt,
        /// The new status message; an empty one takes the old one away.
        message: Text,
    },
    /// The run asks the client something. A key that was used already changes nothing: its first answer counts, whatever is
    /// asked now.
    Ask {
        /// Who writes.
        by: Attempt,
        /// The name of the question.
        key: Key,
        /// The question.
        request: P,
    },
    /// The client answers. Keys that are not outstanding are dropped unseen; one answer that does not fit refuses them all.
    Answer {
        /// Answers by key.
        answers: BTreeMap<Key, P>,
    },
    /// The run ended with a result.
    Complete {
        /// Who writes.
        by: Attempt,
        /// What the tool returned.
        result: P,
        /// Progress that was not written yet: the last one always stands before the end.
        message: Option<Text>,
    },
    /// The run ended with an error.
    Fail {
        /// Who writes.
        by: Attempt,
        /// The error; its message becomes the status message.
        fault: Fault<P>,
    },
    /// The owner wants no more of it.
    Cancel,
    /// The node of this attempt is gone, and its run with it.
    Lose {
        /// The attempt that was lost; a newer one is left alone.
        attempt: Attempt,
        /// The node that runs a restartable task again.
        heir: Option<NodeId>,
        /// Why, in words for the owner: error message and status message of a task that cannot be restarted.
        why: Text,
    },
    /// The run's node drains or shuts down: its run was stopped, and the task is to be run again by whichever node takes it over.
    HandOver {
        /// Whose run it was.
        by: Attempt,
        /// Whether its tool was begun. One that was not may run elsewhere even if it must not run twice.
        began: bool,
    },
    /// The host writes its slot.
    Note {
        /// Who writes.
        by: Attempt,
        /// The new content.
        slot: P,
    },
}

/// Why a command was refused. The task is then as it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejected {
    /// Its time to live is over: to every caller it does not exist.
    #[error("the task does not exist")]
    Expired,
    /// It has ended, so its run has nothing to write any more.
    #[error("the task has ended")]
    Ended,
    /// Another attempt has taken over.
    #[error("another attempt runs the task")]
    StaleAttempt,
    /// The creating request did not declare what this question needs.
    #[error("the client did not declare what this question needs")]
    Undeclared {
        /// What was missing.
        missing: Capabilities,
    },
    /// The task has asked as many questions as it may.
    #[error("a task may ask {limit} questions")]
    TooManyQuestions {
        /// How many it may.
        limit: u32,
    },
    /// An answer to an outstanding question does not fit it. The question stays outstanding.
    #[error("the answer to {key:?} does not fit its question: {reason}")]
    Misfit {
        /// Which question.
        key: Key,
        /// What is wrong.
        reason: String,
    },
}
