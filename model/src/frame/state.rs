//! What a state of a world is: the shipped machines, what is under way between them, and what the claims remember.

use std::hash::Hash;
use std::sync::Arc;

use tokkuri_core::host::{Host, Watch};
use tokkuri_core::id::{Attempt, NodeId, Revision, TaskId};
use tokkuri_core::lease::{Draining, Lease, Sent};
use tokkuri_core::procedure::{
    After, Answered, Create, Created, Expire, Input, Procedure, Read, Seen, Step, TakeOver, Taken, Write, Written,
};
use tokkuri_core::store::{Answer, Request, Shelf, Unavailable};
use tokkuri_core::time::Millis;

use crate::frame::claim::Broken;
use crate::frame::hashed::{Aside, Hashed};
use crate::frame::payload::{Number, T0};
use crate::frame::scene::Faults;

/// One state of a world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The store's time.
    pub now: Millis,
    /// The store.
    pub shelf: Hashed<Shelf<Number>>,
    /// The nodes.
    pub nodes: Vec<Hashed<Node>>,
    /// Requests under way, by slot.
    pub flights: Vec<(Slot, Hashed<Flight>)>,
    /// What is on its way to nodes, in an order that depends on nothing but what it is.
    pub mail: Vec<Hashed<Mail>>,
    /// Renewals that take their time, in an order that depends on nothing but what they are.
    pub renewals: Vec<Hashed<Renewal>>,
    /// Tools that run, also those whose node has thought better of it.
    pub tools: Vec<Tool>,
    /// What was done and may still be done, and what the claims have to remember.
    pub memory: Hashed<Memory>,
    /// The claims that are broken.
    pub broken: Broken,
    /// Why the first of them is.
    pub why: Aside<Option<Arc<str>>>,
    /// The premises that were reached on the way here.
    pub reached: Aside<u64>,
}

/// One node: what a host keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Which incarnation it is.
    pub id: NodeId,
    /// Its runs.
    pub host: Host<Number>,
    /// Its looks at the store.
    pub watch: Watch,
    /// Its lease, where nodes hold any.
    pub lease: Option<Lease>,
    /// Whether its own clock goes slow.
    pub lags: bool,
}

/// A renewal of a lease on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// To the store.
    Asked {
        /// Whose.
        node: u8,
        /// What is asked.
        request: Request<Number>,
        /// When it was sent.
        sent: Sent,
    },
    /// And back.
    Answered {
        /// Whose.
        node: u8,
        /// When it was sent.
        sent: Sent,
        /// What the store said.
        answer: Answer<Number>,
    },
}

impl Renewal {
    /// Whose it is.
    pub const fn node(&self) -> u8 {
        match self {
            Self::Asked { node, .. } | Self::Answered { node, .. } => *node,
        }
    }
}

/// The place of a request under way. There is at most one in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A client's, by its number in the scene.
    Request(u8),
    /// The cancel of a task whose create reply nobody received.
    Abandon(u8),
    /// What the run of a task writes.
    Run(u8, Attempt),
    /// What the run of a task writes of its progress.
    Progress(u8, Attempt),
    /// A node's look for expired rows.
    Expire(u8),
    /// A node's look for orphans: its number among those of the node.
    Sweep(u8, u8),
}

/// A request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// The node that carries it out.
    pub node: u8,
    /// The procedure.
    pub procedure: Running,
    /// What it waits for.
    pub waits: Step<Number, Reply>,
    /// Whether it has stored something.
    pub stored: bool,
    /// How often the store failed it.
    pub failures: u8,
    /// What a sweep found orphaned when it looked.
    pub orphans: Vec<(TaskId, Attempt)>,
}

/// The shipped procedures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Running {
    /// A create.
    Create(Box<Create<Number>>),
    /// A read.
    Read(Read<Number>),
    /// A write.
    Write(Box<Write<Number>>),
    /// A look for expired rows.
    Expire(Expire<Number>),
    /// A look for orphans.
    TakeOver(Box<TakeOver<Number>>),
}

/// What a procedure ends with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// A create's.
    Created(Created<Number>),
    /// A read's.
    Read(Answered<Number>),
    /// A write's.
    Written(Written<Number>),
    /// An expiry's.
    Expired(Result<(usize, bool), Unavailable>),
    /// A take-over's.
    Taken(Result<Taken, Unavailable>),
}

impl Running {
    /// One step of the procedure.
    pub fn step(&mut self, input: Input<Number>) -> Step<Number, Reply> {
        match self {
            Self::Create(it) => it.step(input).map(Reply::Created),
            Self::Read(it) => it.step(input).map(Reply::Read),
            Self::Write(it) => it.step(input).map(Reply::Written),
            Self::Expire(it) => it.step(input).map(Reply::Expired),
            Self::TakeOver(it) => it.step(input).map(Reply::Taken),
        }
    }
}

/// What is on its way to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mail {
    /// What a procedure of the node's own wants to have happen. It may be late, but is never lost while the node lives.
    After {
        /// The node.
        node: u8,
        /// What has to happen.
        after: After<Number>,
        /// What goes on once it has.
        then: Then,
    },
    /// A signal between nodes: the task has this revision now, or is gone.
    Signal {
        /// The node.
        node: u8,
        /// The task.
        id: TaskId,
        /// Its revision.
        revision: Option<Revision>,
    },
    /// What the node read of the task, because of a signal.
    Seen {
        /// The node.
        node: u8,
        /// The task.
        id: TaskId,
        /// The reading.
        seen: Seen<Number>,
    },
}

/// What goes on once a procedure's effects are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Then {
    /// Nothing that waits for it.
    Nothing,
    /// A tool that waited for its write: it goes on in its script, or tries again.
    GoOn {
        /// The task.
        task: u8,
        /// The attempt.
        attempt: Attempt,
        /// Whether the write came through.
        stored: bool,
    },
    /// The run's progress was written, or not.
    Progress(u8, Attempt),
    /// The run is over.
    End(u8, Attempt),
}

impl Then {
    /// The run that waits.
    pub const fn run(self) -> Option<(u8, Attempt)> {
        match self {
            Self::Nothing => None,
            Self::GoOn { task, attempt, .. } | Self::Progress(task, attempt) | Self::End(task, attempt) => {
                Some((task, attempt))
            }
        }
    }
}

impl Mail {
    /// Where it goes.
    pub const fn node(&self) -> u8 {
        match self {
            Self::After { node, .. } | Self::Signal { node, .. } | Self::Seen { node, .. } => *node,
        }
    }

    /// The task that it is about.
    pub const fn task(&self) -> TaskId {
        match self {
            Self::After { after, .. } => after.id,
            Self::Signal { id, .. } | Self::Seen { id, .. } => *id,
        }
    }

    /// Whether the wire may lose or double it.
    pub const fn is_fragile(&self) -> bool {
        match self {
            Self::After { .. } => false,
            Self::Signal { .. } | Self::Seen { .. } => true,
        }
    }
}

/// A tool that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tool {
    /// The task.
    pub task: u8,
    /// The attempt.
    pub attempt: Attempt,
    /// The node.
    pub node: u8,
    /// The node's incarnation that its task was stored for.
    pub incarnation: NodeId,
    /// Where in its script it is.
    pub at: u8,
    /// The answers that it got.
    pub got: [Option<u8>; 2],
    /// Whether its body was begun.
    pub began: bool,
    /// Whether it has returned or was stopped, and its end is being stored.
    pub ending: bool,
}

/// What was done and may still be done, and what the claims have to remember.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Requests that were begun.
    pub begun: Begun,
    /// Time steps that are over.
    pub waited: u8,
    /// What may still go wrong.
    pub faults: Faults,
    /// Sweeps that each node has begun.
    pub sweeps: [u8; 3],
    /// From when on each node is to hand over, as it was told last.
    pub drains: [Option<Millis>; 3],
    /// What the operator has done: drained, and taken it back.
    pub operated: u8,
    /// What is known of each task.
    pub tasks: Vec<TaskMemory>,
}

/// Requests that were begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Begun([u64; 4]);

impl Begun {
    /// Whether this one was.
    pub const fn has(self, request: usize) -> bool {
        self.0[request / 64] & 1 << (request % 64) != 0
    }

    /// Begins one.
    pub const fn add(&mut self, request: usize) {
        self.0[request / 64] |= 1 << (request % 64);
    }
}

/// What the claims remember of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskMemory {
    /// What became of the reply to its create.
    pub reply: Heard,
    /// Whether a cancel of it was acknowledged.
    pub cancelled: bool,
    /// How many were told that it was they who ended it.
    pub winners: u8,
    /// The first answer that was stored for each question.
    pub first: [Option<u8>; 2],
    /// Attempts that were spawned, a bit each.
    pub spawned: u8,
    /// The newest revision that a client was shown by each node.
    pub shown: [u8; 3],
    /// Attempts whose tool was begun, a bit each.
    pub began: u8,
}

/// What became of the reply to a create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heard {
    /// There is none yet.
    #[default]
    No,
    /// It says that the task is there, and is on its way.
    Pending,
    /// The client knows the task.
    Yes,
    /// It says that the task is there, and was lost.
    Lost,
    /// It was a refusal, or said that nobody knows.
    Refused,
    /// Nothing will clean up: the node died, or the store failed while it was cleaning up. The time to live has to end it.
    Stranded,
}

impl State {
    /// What a node's own clock shows: it counts from anywhere, and not quite as fast.
    pub fn own(&self, node: u8) -> Millis {
        let (node, passed) = (usize::from(node), self.now.since(T0));
        let counted = if self.nodes[node].lags { passed - passed / 100 } else { passed };
        Millis(counted).after([77, 5_000_000, 1_000][node])
    }

    /// Whether a node trusts its lease, or needs none.
    pub fn trusts(&self, node: u8) -> bool {
        self.nodes[usize::from(node)].lease.as_ref().is_none_or(|lease| lease.holds(self.own(node)))
    }

    /// Whether a node takes tasks up.
    pub fn takes_up(&self, node: u8) -> bool {
        self.nodes[usize::from(node)].lease.as_ref().is_none_or(|lease| lease.takes_up(self.own(node)))
    }

    /// Whether a node drains, as far as it knows.
    pub fn draining(&self, node: u8) -> Draining {
        let lease = self.nodes[usize::from(node)].lease.as_ref();
        lease.map_or(Draining::No, |lease| lease.draining(self.own(node)))
    }

    /// Whether the lease of a node's incarnation holds, by what is written in the store.
    pub fn is_leased(&self, node: NodeId) -> bool {
        self.shelf.nodes().get(node).is_some_and(|state| self.now < state.leased_until)
    }

    /// The request in a slot.
    pub fn flight(&self, slot: Slot) -> Option<&Hashed<Flight>> {
        self.flights.binary_search_by_key(&slot, |(slot, _)| *slot).ok().map(|at| &self.flights[at].1)
    }

    /// The row of a task as it is in the store, expired or not.
    pub fn row(&self, id: TaskId) -> Option<&Arc<tokkuri_core::task::Task<Number>>> {
        self.shelf.rows().find(|row| row.id == id)
    }
}
