//! A request under way: which of the shipped procedures it is, and what it waits for.

use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::procedure::{
    Answered, Create, Created, Expire, Input, Procedure, Read, Step, TakeOver, Taken, Write, Written,
};
use tokkuri_core::store::Unavailable;

use super::Tool;
use super::payload::Number;

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) node: usize,
    /// The incarnation of the node that it was begun by.
    pub(super) incarnation: NodeId,
    pub(super) op: Op,
    /// What the procedure waits for.
    pub(super) waits: Step<Number, Reply>,
    pub(crate) kind: Kind,
}

/// What a request is, for those who judge its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create(TaskId),
    /// A client's, and whether the task is the client's own.
    Client {
        id: TaskId,
        own: bool,
        cancel: bool,
    },
    Abandon,
    /// A run's, and whether it is its end.
    Run {
        tool: Tool,
        end: bool,
    },
    Sweep,
    Expire,
}

#[derive(Debug)]
pub(super) enum Op {
    Create(Box<Create<Number>>),
    Read(Read<Number>),
    Write(Box<Write<Number>>),
    Expire(Expire<Number>),
    TakeOver(Box<TakeOver<Number>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Created(Created<Number>),
    Read(Answered<Number>),
    Written(Written<Number>),
    Expired(Result<(usize, bool), Unavailable>),
    Taken(Result<Taken, Unavailable>),
}

impl Op {
    pub(super) fn step(&mut self, input: Input<Number>) -> Step<Number, Reply> {
        match self {
            Self::Create(it) => it.step(input).map(Reply::Created),
            Self::Read(it) => it.step(input).map(Reply::Read),
            Self::Write(it) => it.step(input).map(Reply::Written),
            Self::Expire(it) => it.step(input).map(Reply::Expired),
            Self::TakeOver(it) => it.step(input).map(Reply::Taken),
        }
    }
}
