//! How a request is carried out against a store that others write too.
//!
//! A procedure is a sans-IO machine. It says what it wants ([`Step`]), is told what came of it ([`Input`]), and ends with a
//! reply and with what has to happen now that everything is stored. The server's driver is a loop around
//! [`Procedure::step`]; so are the worlds of the model.
//!
//! ```text
//! Begin ─▶ step ─▶ Step::Store(request)  ──▶ the store ──▶ Input::Store(answer) ─┐
//!           ▲  ─▶ Step::Pause(ms)        ──▶ a timer  ──▶ Input::Paused          │
//!           │  ─▶ Step::Host(local)      ──▶ the node's own table ─▶ Input::Host │
//!           └──────────────────────────────────────────────────────────────────┘
//!           └─▶ Step::Done { reply, after }: first carry out `after`, then reply
//! ```
//!
//! The rules that live here and nowhere else: store first, then effects, then the reply; on a conflict load again; the fence
//! against stale attempts; what a failing store means for whom.

mod create;
mod expire;
mod read;
mod take_over;
mod write;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use create::{Create, Created};
pub use expire::Expire;
pub use read::{Answered, Read};
pub use take_over::{TakeOver, Taken};
pub use write::{Write, Written};

use crate::id::{Attempt, TaskId};
use crate::store::{Answer, Request};
use crate::task::{Command, Effect, Task};

/// A sans-IO machine that carries out one request.
///
/// # Contract
/// Call [`step`](Self::step) with [`Input::Begin`], do what it says, and call it with what came of it, until it says
/// [`Step::Done`]. After that it must not be called again.
///
/// A procedure that is dropped half-way leaves the store as its last request left it: nothing is half-written. But what it has
/// stored may then want effects that nobody carries out. [`Read`], [`Expire`] and a [`Write`] of a client or a run may be dropped
/// all the same: nodes find out by their next look at the store. [`Create`] and [`TakeOver`] may not: their run would be stored
/// as this node's, and never started. Drive them in a task of their own, whatever becomes of the request.
pub trait Procedure {
    /// What its tasks carry.
    type Payload;
    /// What it ends with.
    type Reply;

    /// One step.
    ///
    /// # Panics
    /// If the input is not an answer to the last step: that is a bug of the driver.
    fn step(&mut self, input: Input<Self::Payload>) -> Step<Self::Payload, Self::Reply>;

    /// The command that it carries out now, if it is one that changes a task: for whoever records what was done
    /// ([`trace`](crate::trace)).
    fn command(&self) -> Option<&Command<Self::Payload>> {
        None
    }
}

/// What a procedure is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input<P> {
    /// Begin.
    Begin,
    /// What the store answered.
    Store(Answer<P>),
    /// The pause is over.
    Paused,
    /// The node's table has done it.
    Host,
}

/// What a procedure wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step<P, R> {
    /// Ask the store.
    Store(Request<P>),
    /// Wait so long, then go on.
    Pause {
        /// Milliseconds.
        ms: u64,
    },
    /// Change the node's table of runs ([`host::Host`](crate::host::Host)); it cannot fail.
    Host(Local),
    /// The end. Everything is stored: carry out `after`, in order, then reply.
    Done {
        /// What to answer.
        reply: R,
        /// What has to happen.
        after: Vec<After<P>>,
    },
}

impl<P, R> Step<P, R> {
    /// The same with another reply, for who drives procedures of several kinds.
    pub fn map<S>(self, reply: impl FnOnce(R) -> S) -> Step<P, S> {
        match self {
            Self::Store(request) => Step::Store(request),
            Self::Pause { ms } => Step::Pause { ms },
            Self::Host(local) => Step::Host(local),
            Self::Done { reply: it, after } => Step::Done { reply: reply(it), after },
        }
    }
}

/// A change of the node's own table of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    /// Make a place for a run that is about to be stored, so that whatever is committed to the task from then on finds it.
    Reserve {
        /// The task.
        id: TaskId,
        /// The attempt.
        attempt: Attempt,
    },
    /// It was not stored: give the place back.
    Abandon {
        /// The task.
        id: TaskId,
        /// The attempt.
        attempt: Attempt,
    },
}

/// What has to happen after a change of one task was stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct After<P> {
    /// The task.
    pub id: TaskId,
    /// Its state in the store.
    pub seen: Seen<P>,
    /// What has to happen.
    pub effects: Vec<Effect<P>>,
}

/// A reading of the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Seen<P> {
    /// The task at some revision.
    Task(Arc<Task<P>>),
    /// There is no such task any more.
    Gone,
}

/// An input that does not answer the last step.
#[track_caller]
fn out_of_turn() -> ! {
    panic!("a procedure was told something that it did not ask for: its driver is wrong")
}
