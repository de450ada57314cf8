//! `tasks/get`: one reading of the store, for its owner.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::Text;
use crate::access::{self, Caller, Denied};
use crate::id::TaskId;
use crate::payload::Payload;
use crate::procedure::{Input, Procedure, Step, out_of_turn};
use crate::store::{Outcome, Request, Unavailable};
use crate::task::Task;

/// Reads a task for a caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read<P> {
    id: TaskId,
    caller: Caller,
    payload: PhantomData<P>,
}

/// What came of reading a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answered<P> {
    /// The task.
    Task(Arc<Task<P>>),
    /// Unknown, expired, or somebody else's: one and the same to the caller.
    Absent,
    /// It is theirs, but they lack scopes.
    LacksScope {
        /// All that it needs.
        needed: Vec<Text>,
    },
    /// The store is not available; the caller may try again.
    Unavailable(Unavailable),
}

impl<P> Read<P> {
    /// `tasks/get` of `id` by `caller`.
    pub const fn new(id: TaskId, caller: Caller) -> Self {
        Self { id, caller, payload: PhantomData }
    }
}

impl<P: Payload> Procedure for Read<P> {
    type Payload = P;
    type Reply = Answered<P>;

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn step(&mut self, input: Input<P>) -> Step<P, Answered<P>> {
        let answer = match input {
            Input::Begin => return Step::Store(Request::Load { id: self.id }),
            Input::Store(answer) => answer,
            Input::Paused | Input::Host => out_of_turn(),
        };
        let reply = match answer.outcome {
            // The store leaves out what has expired, by the same clock; asking again costs nothing and needs no trust.
            Outcome::Loaded(Some(task)) if task.is_visible(answer.now) => match access::check(&task, &self.caller) {
                Ok(()) => Answered::Task(task),
                Err(Denied::NotTheirs) => Answered::Absent,
                Err(Denied::LacksScope { needed }) => Answered::LacksScope { needed },
            },
            Outcome::Loaded(_) => Answered::Absent,
            Outcome::Unavailable(unavailable) => Answered::Unavailable(unavailable),
            _ => out_of_turn(),
        };
        Step::Done { reply, after: Vec::new() }
    }
}
