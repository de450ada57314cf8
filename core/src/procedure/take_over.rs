//! Tasks whose node holds no lease any more: failed, or run again here if their tool allows it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Text;
use crate::id::NodeId;
use crate::payload::Payload;
use crate::procedure::{After, Input, Procedure, Step, Write, Written, out_of_turn};
use crate::store::{Outcome, Request, Unavailable};
use crate::task::Task;

/// Takes over what lost nodes left behind, up to a limit.
///
/// A node drives one of these at a time, or several [`among`](Self::among) whose tasks are not the same. Two that overlap are told
/// of the same task, and if an answer of the store is lost, both may take it for theirs: the second one's start could come when
/// the run that the first one started is over already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TakeOver<P> {
    heir: Option<NodeId>,
    why: Text,
    limit: u32,
    /// Those that are still to be taken over; `None` until the store was asked.
    orphans: Option<VecDeque<Arc<Task<P>>>>,
    current: Option<Write<P>>,
    taken: Taken,
    after: Vec<After<P>>,
}

/// How many tasks a take-over found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taken {
    /// Ended as failed.
    pub failed: u32,
    /// Started again on this node.
    pub restarted: u32,
    /// Whether there may be more.
    pub more: bool,
}

impl<P> TakeOver<P> {
    /// One sweep of at most `limit` orphans. Restartable ones go to `heir`, which is the node that drives the sweep; the others
    /// fail and say `why`. Without an heir the restartable ones fail as well: a node that drains leaves sweeping to the others.
    pub const fn new(heir: Option<NodeId>, why: Text, limit: u32) -> Self {
        Self {
            heir,
            why,
            limit,
            orphans: None,
            current: None,
            taken: Taken { failed: 0, restarted: 0, more: false },
            after: Vec::new(),
        }
    }

    /// The same for orphans that the store has named already ([`Request::Orphans`]): a share of one sweep. The shares can be
    /// driven at once, so that a store which makes many changes durable together does so.
    pub fn among(orphans: Vec<Arc<Task<P>>>, heir: Option<NodeId>, why: Text) -> Self {
        Self { orphans: Some(orphans.into()), ..Self::new(heir, why, 0) }
    }
}

impl<P: Payload> TakeOver<P> {
    fn next(&mut self) -> Step<P, Result<Taken, Unavailable>> {
        match self.orphans.as_mut().and_then(VecDeque::pop_front) {
            Some(orphan) => {
                let write = Write::lose(orphan.id, orphan.attempt, self.heir, self.why.clone());
                let step = self.current.insert(write).step(Input::Begin);
                self.inner(step)
            }
            None => Step::Done { reply: Ok(self.taken), after: core::mem::take(&mut self.after) },
        }
    }

    fn inner(&mut self, step: Step<P, Written<P>>) -> Step<P, Result<Taken, Unavailable>> {
        match step {
            Step::Store(request) => Step::Store(request),
            Step::Pause { ms } => Step::Pause { ms },
            Step::Host(local) => Step::Host(local),
            Step::Done { reply, after } => {
                self.current = None;
                self.after.extend(after);
                match reply {
                    Written::Done(task) if task.live().is_some() => self.taken.restarted += 1,
                    Written::Done(_) => self.taken.failed += 1,
                    // Somebody else ended it or took it over first.
                    Written::Absent | Written::LacksScope { .. } | Written::Rejected { .. } => {}
                    // What was already taken over is stored: its effects must not be lost with the rest.
                    Written::Unavailable(unavailable) => {
                        return Step::Done { reply: Err(unavailable), after: core::mem::take(&mut self.after) };
                    }
                }
                self.next()
            }
        }
    }
}

impl<P: Payload> Procedure for TakeOver<P> {
    type Payload = P;
    type Reply = Result<Taken, Unavailable>;

    fn command(&self) -> Option<&crate::task::Command<P>> {
        self.current.as_ref().and_then(Procedure::command)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn step(&mut self, input: Input<P>) -> Step<P, Self::Reply> {
        if let Some(write) = &mut self.current {
            let step = write.step(input);
            return self.inner(step);
        }
        match input {
            Input::Begin if self.orphans.is_some() => self.next(),
            Input::Begin => Step::Store(Request::Orphans { limit: self.limit }),
            Input::Store(answer) => match answer.outcome {
                Outcome::Orphans(orphans) => {
                    self.taken.more = orphans.len() >= self.limit as usize;
                    self.orphans = Some(orphans.into());
                    self.next()
                }
                Outcome::Unavailable(unavailable) => Step::Done { reply: Err(unavailable), after: Vec::new() },
                _ => out_of_turn(),
            },
            Input::Paused | Input::Host => out_of_turn(),
        }
    }
}
