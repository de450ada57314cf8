//! Rows whose time to live is over are removed, and whoever still runs them is told.

use alloc::vec;
use alloc::vec::Vec;

use crate::payload::Payload;
use crate::procedure::{After, Input, Procedure, Seen, Step, out_of_turn};
use crate::store::{Outcome, Request, Row, Unavailable};
use crate::task::Effect;

/// Removes what is due, oldest first, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expire<P> {
    limit: u32,
    due: Vec<Row<P>>,
}

impl<P> Expire<P> {
    /// One sweep of at most `limit` rows. If it removed that many, there may be more.
    pub const fn new(limit: u32) -> Self {
        Self { limit, due: Vec::new() }
    }
}

impl<P: Payload> Procedure for Expire<P> {
    type Payload = P;
    /// How many rows were removed, and whether there may be more.
    type Reply = Result<(usize, bool), Unavailable>;

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn step(&mut self, input: Input<P>) -> Step<P, Self::Reply> {
        let answer = match input {
            Input::Begin => return Step::Store(Request::Due { limit: self.limit }),
            Input::Store(answer) => answer,
            Input::Paused | Input::Host => out_of_turn(),
        };
        match answer.outcome {
            Outcome::Due(due) if due.is_empty() => Step::Done { reply: Ok((0, false)), after: Vec::new() },
            Outcome::Due(due) => {
                let rows = due.iter().map(|row| (row.id, row.revision)).collect();
                self.due = due;
                Step::Store(Request::Remove { rows })
            }
            Outcome::Removed(removed) => {
                let full = self.due.len() >= self.limit as usize;
                let gone = core::mem::take(&mut self.due).into_iter().filter(|row| removed.contains(&row.id));
                let after: Vec<_> = gone.map(farewell).collect();
                Step::Done { reply: Ok((after.len(), full)), after }
            }
            Outcome::Unavailable(unavailable) => Step::Done { reply: Err(unavailable), after: Vec::new() },
            _ => out_of_turn(),
        }
    }
}

fn farewell<P>(row: Row<P>) -> After<P> {
    let mut effects = vec![Effect::Publish];
    if row.live {
        effects.push(Effect::Signal { node: row.node, attempt: row.attempt });
    }
    if let Some(slot) = row.slot {
        effects.push(Effect::Release { slot });
    }
    After { id: row.id, seen: Seen::Gone, effects }
}
