//! What procedures and a store say to each other, as data.
//!
//! A store is whatever can carry out these requests: a map, SQLite, Postgres. It decides nothing but what is written here, and
//! [`Shelf`] is the reference that says it in code. The rules that every store keeps:
//!
//! * Each request is atomic, and durable before its answer.
//! * Every answer carries the store's own `now`, which never goes back. Procedures use no other time, so that the clocks of
//!   nodes never decide anything that others see.
//! * A row whose time to live is over ([`Task::is_visible`] at the store's `now`) is absent to every request but
//!   [`Request::Due`] and [`Request::Remove`].
//! * The number of an owner's live tasks is counted from its live, unexpired rows, never kept beside them.
//! * A node lives while its lease holds, by the store's time. A lease that ran out is never revived; the node is forgotten
//!   [`REMEMBERED_MS`] later.

mod node;
mod shelf;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use node::{Load, Node, NodeState, Nodes, REMEMBERED_MS};
pub use shelf::Shelf;

use crate::Text;
use crate::access::Owner;
use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::task::{Draft, Status, Task};
use crate::time::Millis;

/// What can be asked of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request<P> {
    /// One task. Answered with [`Outcome::Loaded`].
    Load {
        /// Which.
        id: TaskId,
    },
    /// A new task, created now, unless its owner's live tasks have reached the limit. Answered with [`Outcome::Inserted`],
    /// [`Outcome::AtTheLimit`] or [`Outcome::Exists`].
    Insert {
        /// The task to be.
        draft: Box<Draft<P>>,
        /// How many live tasks the owner may have; `None` for any number.
        limit: Option<u32>,
    },
    /// A changed task, if the row is still the one that was loaded. Answered with [`Outcome::Committed`] or
    /// [`Outcome::Conflict`].
    Commit {
        /// The revision that was loaded.
        expected: Revision,
        /// The new state.
        task: Arc<Task<P>>,
    },
    /// How many live tasks an owner has. Answered with [`Outcome::Live`].
    Count {
        /// Whose.
        owner: Owner,
    },
    /// Rows whose time to live is over, oldest first. Answered with [`Outcome::Due`].
    Due {
        /// How many at most.
        limit: u32,
    },
    /// Removes rows whose time to live is over and which are still at this revision. Answered with [`Outcome::Removed`].
    Remove {
        /// Which.
        rows: Vec<(TaskId, Revision)>,
    },
    /// Live tasks whose node holds no lease: it ran out, was given up, or the store knows of no such node. Answered with
    /// [`Outcome::Orphans`].
    Orphans {
        /// How many at most.
        limit: u32,
    },
    /// The tasks of one node that were inserted or committed at or after a moment, ended ones included. It is the time of the
    /// insert or commit that counts, not [`Task::updated`]: that is when the writer loaded the task, and a writer may have been
    /// asleep between the two. Answered with [`Outcome::Touched`].
    TouchedSince {
        /// The node.
        node: NodeId,
        /// From when on, by the store's time.
        since: Millis,
    },
    /// Tasks in the order of their ids. Answered with [`Outcome::Page`].
    Page {
        /// Which of them.
        filter: Filter,
        /// Only ids after this one.
        after: Option<TaskId>,
        /// How many at most.
        limit: u32,
    },
    /// A node begins, and is to be thought alive for so long. Of one that is there and holds its lease, it is a renewal: the
    /// answer to its first request was lost. Answered with [`Outcome::Leased`] or [`Outcome::LeaseLost`].
    Join {
        /// Who it is.
        node: Box<Node>,
        /// For how long from now, in milliseconds.
        lease_ms: u64,
    },
    /// The node lives, and is to be thought alive for so long. The last word counts: a shorter lease takes the place of a
    /// longer one. Answered with [`Outcome::Leased`], or with [`Outcome::LeaseLost`] if its lease ran out or it is unknown.
    Renew {
        /// The node.
        node: NodeId,
        /// What it has to do.
        load: Load,
        /// For how long from now, in milliseconds.
        lease_ms: u64,
    },
    /// The node gives up its lease and is forgotten: its live tasks are orphans at once. Answered with [`Outcome::Released`].
    Resign {
        /// The node.
        node: NodeId,
    },
    /// Every node by its id, those whose lease ran out at most [`REMEMBERED_MS`] ago included. Answered with
    /// [`Outcome::Nodes`].
    Nodes,
    /// The node is to drain, or to take up work again. It learns of it with its next renewal. Answered with
    /// [`Outcome::Drained`].
    Drain {
        /// The node.
        node: NodeId,
        /// In how many milliseconds it is to hand its restartable tasks over; `None` takes the drain back.
        drain: Option<u64>,
    },
}

/// Which tasks a [`Request::Page`] is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Only these statuses; empty for any.
    pub statuses: Vec<Status>,
    /// Only this tool.
    pub tool: Option<Text>,
    /// Only this owner.
    pub owner: Option<Owner>,
    /// Only this node.
    pub node: Option<NodeId>,
    /// Only tasks created before this moment.
    pub created_before: Option<Millis>,
}

impl Filter {
    /// Whether a task is among them.
    pub fn admits<P>(&self, task: &Task<P>) -> bool {
        let origin = &task.origin;
        (self.statuses.is_empty() || self.statuses.contains(&task.status()))
            && self.tool.as_ref().is_none_or(|tool| *tool == origin.tool)
            && self.owner.as_ref().is_none_or(|owner| *owner == origin.owner)
            && self.node.is_none_or(|node| node == task.node)
            && self.created_before.is_none_or(|moment| origin.created < moment)
    }
}

/// What a store answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer<P> {
    /// The store's time when it carried out the request.
    pub now: Millis,
    /// What came of it.
    pub outcome: Outcome<P>,
}

/// What came of a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<P> {
    /// The task, if it is there.
    Loaded(Option<Arc<Task<P>>>),
    /// The task as it was inserted.
    Inserted(Arc<Task<P>>),
    /// Nothing was inserted: the owner's live tasks have reached the limit.
    AtTheLimit,
    /// Nothing was inserted: there is a row of this id.
    Exists,
    /// The new state is stored.
    Committed,
    /// Nothing was stored: the row changed, or is gone.
    Conflict,
    /// How many live tasks the owner has.
    Live(u32),
    /// What is due.
    Due(Vec<Row<P>>),
    /// What was removed.
    Removed(Vec<TaskId>),
    /// What was orphaned.
    Orphans(Vec<Arc<Task<P>>>),
    /// What changed.
    Touched(Vec<(TaskId, Revision)>),
    /// A page, and whether there is more.
    Page(Vec<Arc<Task<P>>>, bool),
    /// The node's lease holds.
    Leased {
        /// Until when, by the store's time.
        until: Millis,
        /// Whether the node is to drain, and from when on it hands its restartable tasks over.
        drain: Option<Millis>,
    },
    /// The node's lease ran out, or there never was one: the node's tasks may be somebody else's, and it has to begin as another.
    LeaseLost,
    /// The lease is given up.
    Released,
    /// The nodes.
    Nodes(Vec<NodeState>),
    /// Whether the node is known and alive; if not, nothing has changed.
    Drained(bool),
    /// The store could not do it, or did it and could not say so.
    Unavailable(Unavailable),
}

impl<P> Outcome<P> {
    /// What a node is told that joined or renewed its lease.
    pub fn leased(state: Option<&NodeState>) -> Self {
        match state {
            Some(state) => Self::Leased { until: state.leased_until, drain: state.drain },
            None => Self::LeaseLost,
        }
    }
}

/// A row that is due, with what has to be told of its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row<P> {
    /// Which task.
    pub id: TaskId,
    /// Its revision.
    pub revision: Revision,
    /// The node that ran it.
    pub node: NodeId,
    /// The attempt.
    pub attempt: Attempt,
    /// Whether it was live.
    pub live: bool,
    /// The host's slot.
    pub slot: Option<P>,
}

impl<P: Clone> From<&Task<P>> for Row<P> {
    fn from(task: &Task<P>) -> Self {
        Self {
            id: task.id,
            revision: task.revision,
            node: task.node,
            attempt: task.attempt,
            live: task.live().is_some(),
            slot: task.slot.clone(),
        }
    }
}

/// The store could not carry out a request. Trying again later may help.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the store is not available: {why}")]
pub struct Unavailable {
    /// What went wrong, for the log.
    pub why: Text,
    /// Whether the request may have been carried out all the same.
    pub maybe_done: bool,
}
