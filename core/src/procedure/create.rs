//! A task comes to be: a place for its run is reserved, the task is stored, the run starts, and only then the reply goes out.
//!
//! The reservation comes first so that nothing which is committed to the task, however soon, can miss its run.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::{Attempt, NodeId, TaskId};
use crate::payload::Payload;
use crate::procedure::{After, Input, Local, Procedure, Seen, Step, Write, out_of_turn};
use crate::store::{Outcome, Request, Unavailable};
use crate::task::{Draft, Effect, Task};

/// Creates a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Create<P> {
    id: TaskId,
    node: NodeId,
    limit: Option<u32>,
    state: State<P>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State<P> {
    Idle(Box<Draft<P>>),
    Reserving(Box<Draft<P>>),
    Inserting,
    Abandoning(Created<P>),
    /// The store did not say whether it inserted the task: whatever is there is cancelled, since nobody will hear its name.
    Cleaning(Box<Write<P>>, Unavailable),
    Over,
}

/// What came of a create.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Created<P> {
    /// It is stored and readable.
    Task(Arc<Task<P>>),
    /// Its owner's live tasks have reached the limit.
    AtTheLimit {
        /// How many live tasks an owner may have.
        limit: u32,
    },
    /// There is a task of this id: draw another one.
    IdTaken,
    /// The store is not available; the caller may try again.
    Unavailable(Unavailable),
}

impl<P: Payload> Create<P> {
    /// Creates the task of `draft`, if its owner has fewer than `limit` live ones.
    pub fn new(draft: Draft<P>, limit: Option<u32>) -> Self {
        Self { id: draft.id, node: draft.node, limit, state: State::Idle(Box::new(draft)) }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn inserted(&mut self, outcome: Outcome<P>) -> Step<P, Created<P>> {
        match outcome {
            Outcome::Inserted(task) => {
                let start = Effect::Start { node: self.node, attempt: task.attempt };
                let seen = Seen::Task(Arc::clone(&task));
                let after = vec![After { id: self.id, seen, effects: vec![start, Effect::Publish] }];
                let after = if mutant!(CreateForgetsStart) { Vec::new() } else { after };
                Step::Done { reply: Created::Task(task), after }
            }
            Outcome::AtTheLimit => self.give_up(Created::AtTheLimit { limit: self.limit.unwrap_or(u32::MAX) }),
            Outcome::Exists => self.give_up(Created::IdTaken),
            Outcome::Unavailable(unavailable) if unavailable.maybe_done && !mutant!(DoubtfulCreateForgotten) => {
                let mut write = Box::new(Write::abandon(self.id));
                let step = write.step(Input::Begin);
                self.state = State::Cleaning(write, unavailable);
                self.cleaning(step)
            }
            Outcome::Unavailable(unavailable) => self.give_up(Created::Unavailable(unavailable)),
            _ => out_of_turn(),
        }
    }

    /// Passes on what the cleaning write wants. It may fail: then the task ends with its time to live.
    fn cleaning(&mut self, step: Step<P, super::Written<P>>) -> Step<P, Created<P>> {
        match step {
            Step::Store(request) => Step::Store(request),
            Step::Pause { ms } => Step::Pause { ms },
            Step::Host(local) => Step::Host(local),
            Step::Done { .. } => match core::mem::replace(&mut self.state, State::Over) {
                State::Cleaning(_, unavailable) => self.give_up(Created::Unavailable(unavailable)),
                State::Idle(_) | State::Reserving(_) | State::Inserting | State::Abandoning(_) | State::Over => {
                    out_of_turn()
                }
            },
        }
    }

    fn give_up(&mut self, reply: Created<P>) -> Step<P, Created<P>> {
        if mutant!(PlaceNotGivenBack) {
            return Step::Done { reply, after: Vec::new() };
        }
        self.state = State::Abandoning(reply);
        Step::Host(Local::Abandon { id: self.id, attempt: Attempt::FIRST })
    }
}

impl<P: Payload> Procedure for Create<P> {
    type Payload = P;
    type Reply = Created<P>;

    fn command(&self) -> Option<&crate::task::Command<P>> {
        match &self.state {
            State::Cleaning(write, ..) => write.command(),
            State::Idle(_) | State::Reserving(_) | State::Inserting | State::Abandoning(_) | State::Over => None,
        }
    }

    fn step(&mut self, input: Input<P>) -> Step<P, Created<P>> {
        match (core::mem::replace(&mut self.state, State::Over), input) {
            (State::Idle(draft), Input::Begin) if mutant!(NoReservation) => {
                self.state = State::Inserting;
                Step::Store(Request::Insert { draft, limit: self.limit })
            }
            (State::Idle(draft), Input::Begin) => {
                self.state = State::Reserving(draft);
                Step::Host(Local::Reserve { id: self.id, attempt: Attempt::FIRST })
            }
            (State::Reserving(draft), Input::Host) if mutant!(ReplyBeforeInsert) => {
                let task = Arc::new(draft.created(crate::time::Millis(0)));
                Step::Done { reply: Created::Task(task), after: Vec::new() }
            }
            // The count is asked for first, and the insert trusts it.
            (State::Reserving(draft), Input::Host) if mutant!(QuotaOutsideTheInsert) => {
                let owner = draft.owner.clone();
                self.state = State::Reserving(draft);
                Step::Store(Request::Count { owner })
            }
            (State::Reserving(draft), Input::Store(answer)) if mutant!(QuotaOutsideTheInsert) => match answer.outcome {
                Outcome::Live(live) if self.limit.is_some_and(|limit| live >= limit) => {
                    self.give_up(Created::AtTheLimit { limit: live })
                }
                Outcome::Unavailable(unavailable) => self.give_up(Created::Unavailable(unavailable)),
                Outcome::Live(_) => {
                    self.state = State::Inserting;
                    Step::Store(Request::Insert { draft, limit: None })
                }
                Outcome::Loaded(_)
                | Outcome::Inserted(_)
                | Outcome::AtTheLimit
                | Outcome::Exists
                | Outcome::Committed
                | Outcome::Conflict
                | Outcome::Due(_)
                | Outcome::Removed(_)
                | Outcome::Orphans(_)
                | Outcome::Touched(_)
                | Outcome::Page(..)
                | Outcome::Leased { .. }
                | Outcome::LeaseLost
                | Outcome::Released
                | Outcome::Nodes(_)
                | Outcome::Drained(_) => out_of_turn(),
            },
            (State::Reserving(draft), Input::Host) => {
                self.state = State::Inserting;
                Step::Store(Request::Insert { draft, limit: self.limit })
            }
            (State::Inserting, Input::Store(answer)) => self.inserted(answer.outcome),
            (State::Cleaning(mut write, unavailable), input) => {
                let step = write.step(input);
                self.state = State::Cleaning(write, unavailable);
                self.cleaning(step)
            }
            (State::Abandoning(reply), Input::Host) => Step::Done { reply, after: Vec::new() },
            (
                State::Idle(_) | State::Reserving(_) | State::Inserting | State::Abandoning(_) | State::Over,
                Input::Begin | Input::Store(_) | Input::Paused | Input::Host,
            ) => out_of_turn(),
        }
    }
}
