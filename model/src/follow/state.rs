//! What a state is: the shipped table and store, what is under way between them, and what the claims remember.

use std::sync::Arc;

use tokkuri_core::follow::{Table, Turns};
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::procedure::Seen;
use tokkuri_core::store::{Answer, Shelf};
use tokkuri_core::task::Task;
use tokkuri_core::time::Millis;

use crate::frame::hashed::Hashed;
use crate::frame::payload::Number;
use crate::small::Verdict;

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The store's time.
    pub(super) now: Millis,
    /// The store.
    pub(super) shelf: Hashed<Shelf<Number>>,
    /// The node's table.
    pub(super) table: Hashed<Table<Number>>,
    /// What is on its way to the table, in an order that depends on nothing but what it is, and each once.
    pub(super) mail: Vec<Hashed<Mail>>,
    pub(super) listeners: Vec<Hashed<Subscriber>>,
    pub(super) memory: Hashed<Memory>,
    pub(super) verdict: Verdict,
}

/// What is on its way to the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mail {
    /// A reading of the store.
    Reading { id: TaskId, seen: Seen<Number> },
    /// Somebody says that the task has this revision now, or is gone.
    Hint { id: TaskId, revision: Option<Revision> },
}

impl Mail {
    pub(super) const fn id(&self) -> TaskId {
        match self {
            Self::Reading { id, .. } | Self::Hint { id, .. } => *id,
        }
    }
}

/// A listener: what a subscription keeps, and what the claims remember of it. Once it is over, nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subscriber {
    pub(super) stage: Stage,
    pub(super) turns: Turns,
    /// Its first reading of each of its tasks.
    pub(super) asks: Vec<Ask>,
    /// It was told that it is owed nothing, and waits to be woken.
    pub(super) sleeps: bool,
    /// What it was shown last of each.
    pub(super) told: Vec<Option<Arc<Task<Number>>>>,
    /// The revision that the store had of each when it joined.
    pub(super) joined_at: Vec<Option<Revision>>,
    /// How often each was passed over although something was owed of it.
    pub(super) passed: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Away,
    /// It has joined and reads its tasks.
    Reads,
    /// It was told which of its tasks it follows.
    Listens,
    Over,
}

/// A first reading.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    Not,
    /// The store has answered this.
    Asked(Hashed<Answer<Number>>),
    Answered,
}

impl Subscriber {
    pub(super) fn new(tasks: usize) -> Self {
        Self {
            stage: Stage::Away,
            turns: Turns::new(Vec::new()),
            asks: vec![Ask::Not; tasks],
            sleeps: false,
            told: vec![None; tasks],
            joined_at: vec![None; tasks],
            passed: vec![0; tasks],
        }
    }

    /// Whether it may still hear of the task.
    pub(super) fn follows(&self, id: TaskId) -> bool {
        self.turns.open().contains(&id)
    }
}

/// What was done and may still be done, and what the claims remember of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    /// Changes that were made, by lane.
    pub(super) made: Vec<u8>,
    /// Time steps that are over.
    pub(super) waited: u8,
    pub(super) doubles: u8,
    pub(super) away: u8,
    /// Every state that the store ever had of each task.
    pub(super) history: Vec<Vec<Arc<Task<Number>>>>,
    /// What the node has read of each task since somebody follows it.
    pub(super) read: Vec<Reading>,
}

/// What a node has read of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    /// The newest.
    pub(super) newest: Option<Arc<Task<Number>>>,
    /// That it is gone.
    pub(super) gone: bool,
}

impl Reading {
    /// A reading arrives.
    pub(super) fn learn(&mut self, seen: &Seen<Number>) {
        match seen {
            _ if self.gone => {}
            Seen::Task(row) if self.newest.as_ref().is_none_or(|newest| newest.revision < row.revision) => {
                self.newest = Some(Arc::clone(row));
            }
            // A reading from before the task was stored says nothing of its end.
            Seen::Gone => self.gone = self.newest.is_some(),
            Seen::Task(_) => {}
        }
    }
}
