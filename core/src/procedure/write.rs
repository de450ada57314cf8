//! Load, apply, commit if the revision is still the one loaded, on conflict load again, release effects only after the commit.
//!
//! Every change of a stored task goes through here: the client's answers and cancel, the run's own writes, the loss of a node.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::Text;
use crate::access::{self, Caller, Denied};
use crate::id::{Attempt, Key, NodeId, TaskId};
use crate::payload::Payload;
use crate::procedure::{After, Input, Local, Procedure, Seen, Step, out_of_turn};
use crate::store::{Answer, Outcome, Request, Unavailable};
use crate::task::{Command, Effect, Rejected, Task};

/// How often a caller's write is tried again after a conflict. Each conflict means that somebody else's write went through, so
/// this many in a row means that the task is changed faster than this node reads.
const MAX_CONFLICTS: u32 = 1_000;

/// The longest pause between two tries of a write that must not be lost.
const MAX_PAUSE_MS: u64 = 5_000;

/// Carries out one command on a stored task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write<P> {
    id: TaskId,
    guard: Guard,
    command: Command<P>,
    state: State<P>,
    /// A commit of which the store could not say whether it was carried out: the next reading may tell.
    doubt: Option<Doubt<P>>,
    /// Whether it did not tell, for one commit at least.
    in_doubt: bool,
    conflicts: u32,
    outages: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Guard {
    /// A client: owner and scopes are checked, and a store that fails is told to the client.
    Caller(Caller),
    /// An operator, whom no owner binds; a failing store is told to them.
    Operator,
    /// A run or the node itself; a failing store is told to it.
    Node,
    /// The end of a run: tried until it is stored or no longer wanted.
    Persistent,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State<P> {
    Idle,
    Loading,
    Reserving { loaded: Arc<Task<P>>, next: Arc<Task<P>>, effects: Vec<Effect<P>> },
    Committing { next: Arc<Task<P>>, effects: Vec<Effect<P>> },
    Abandoning { then: Then },
    Pausing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    Again,
    Finish(Unavailable),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Doubt<P> {
    next: Arc<Task<P>>,
    effects: Vec<Effect<P>>,
}

impl<P: Payload> Doubt<P> {
    /// Whether the reading shows that the commit was carried out and its effects are still wanted. The task of a run that was to
    /// be started here may have changed since, and if it has ended there is nothing to start.
    ///
    /// If it does not, that proves nothing: a task does not tell who changed it, and others may have changed it since. Then the
    /// command is tried once more, and a refusal says that it may come too late to be one ([`Written::Rejected`]).
    fn is_settled_by(&self, loaded: &Task<P>) -> bool {
        match starts(&self.effects) {
            Some(attempt) => loaded.node == self.next.node && loaded.attempt == attempt && loaded.live().is_some(),
            None => *loaded == *self.next,
        }
    }
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Written<P> {
    /// The command was carried out, or found nothing to change: this is the state in the store.
    Done(Arc<Task<P>>),
    /// Unknown, expired, or somebody else's: one and the same to the caller.
    Absent,
    /// It is theirs, but they lack scopes.
    LacksScope {
        /// All that it needs.
        needed: Vec<Text>,
    },
    /// The task refuses, in this state. A refused command changes nothing and has no effects.
    Rejected {
        /// Why.
        why: Rejected,
        /// The state in the store.
        task: Arc<Task<P>>,
        /// Whether an earlier try may have been carried out all the same: its answer was lost, and the task has been changed
        /// since. Only writes that ask again after a lost answer ever say so: those of a run, and of a take-over.
        maybe_done: bool,
    },
    /// The store is not available; trying again may help.
    Unavailable(Unavailable),
}

impl<P: Payload> Write<P> {
    /// `tasks/update` by `caller`.
    pub const fn answers(id: TaskId, caller: Caller, answers: BTreeMap<Key, P>) -> Self {
        Self::new(id, Guard::Caller(caller), Command::Answer { answers })
    }

    /// `tasks/cancel` by `caller`.
    pub const fn cancel(id: TaskId, caller: Caller) -> Self {
        Self::new(id, Guard::Caller(caller), Command::Cancel)
    }

    /// A cancel by an operator: whoever owns the task, it is cancelled as its owner would.
    pub const fn cancel_by_operator(id: TaskId) -> Self {
        Self::new(id, Guard::Operator, Command::Cancel)
    }

    /// The cancel of a task whose create reply nobody received: nobody can name it.
    pub const fn abandon(id: TaskId) -> Self {
        Self::new(id, Guard::Node, Command::Cancel)
    }

    /// A question of a run. It is tried again until it is stored, or nobody waits for its answer any more: a run goes on while the
    /// store is away.
    pub const fn question(id: TaskId, command: Command<P>) -> Self {
        Self::new(id, Guard::Persistent, command)
    }

    /// What a run writes while it runs, and may do without: progress, the host's slot.
    pub const fn report(id: TaskId, command: Command<P>) -> Self {
        Self::new(id, Guard::Node, command)
    }

    /// What a run ends with. It is tried again until it is stored or another end came first.
    pub const fn end(id: TaskId, command: Command<P>) -> Self {
        Self::new(id, Guard::Persistent, command)
    }

    /// The loss of an attempt whose node is gone.
    pub const fn lose(id: TaskId, attempt: Attempt, heir: Option<NodeId>, why: Text) -> Self {
        Self::new(id, Guard::Node, Command::Lose { attempt, heir, why })
    }

    const fn new(id: TaskId, guard: Guard, command: Command<P>) -> Self {
        Self { id, guard, command, state: State::Idle, doubt: None, in_doubt: false, conflicts: 0, outages: 0 }
    }

    fn load(&mut self) -> Step<P, Written<P>> {
        self.state = State::Loading;
        Step::Store(Request::Load { id: self.id })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn loaded(&mut self, answer: Answer<P>) -> Step<P, Written<P>> {
        let loaded = match answer.outcome {
            Outcome::Loaded(task) => task,
            Outcome::Unavailable(_) if self.doubt.is_some() => return self.pause(),
            Outcome::Unavailable(unavailable) => return self.unavailable(unavailable),
            _ => out_of_turn(),
        };
        if let Some(doubt) = self.doubt.take() {
            return match loaded {
                Some(loaded) if doubt.is_settled_by(&loaded) => {
                    self.seen(Written::Done(Arc::clone(&loaded)), loaded, doubt.effects)
                }
                Some(_) | None => {
                    self.in_doubt = !mutant!(DoubtForgotten);
                    self.give_back(starts(&doubt.effects), Then::Again)
                }
            };
        }
        let Some(loaded) = loaded else { return self.gone() };
        if let Guard::Caller(caller) = &self.guard
            && loaded.is_visible(answer.now)
        {
            match access::check(&loaded, caller) {
                Ok(()) => {}
                Err(Denied::NotTheirs) => return done(Written::Absent),
                Err(Denied::LacksScope { needed }) => return done(Written::LacksScope { needed }),
            }
        }
        if mutant!(UnheardNotCancelled) && self.guard == Guard::Node && self.command == Command::Cancel {
            return done(Written::Absent);
        }
        let mut next = Task::clone(&loaded);
        let mut effects = Vec::new();
        match next.apply(answer.now, self.command.clone(), &mut effects) {
            Ok(()) if mutant!(EffectsBeforeCommit) => {
                let next = Arc::new(next);
                self.seen(Written::Done(Arc::clone(&next)), next, effects)
            }
            Ok(()) if next.revision == loaded.revision => {
                self.seen(Written::Done(Arc::clone(&loaded)), loaded, effects)
            }
            Ok(()) => {
                let next = Arc::new(next);
                match starts(&effects) {
                    Some(attempt) => {
                        self.state = State::Reserving { loaded, next, effects };
                        Step::Host(Local::Reserve { id: self.id, attempt })
                    }
                    None => self.commit(&loaded, next, effects),
                }
            }
            Err(Rejected::Expired) => self.gone(),
            Err(why) => {
                let (task, maybe_done) = (Arc::clone(&loaded), self.in_doubt);
                self.seen(Written::Rejected { why, task, maybe_done }, loaded, effects)
            }
        }
    }

    fn commit(&mut self, loaded: &Task<P>, next: Arc<Task<P>>, effects: Vec<Effect<P>>) -> Step<P, Written<P>> {
        let request = Request::Commit { expected: loaded.revision, task: Arc::clone(&next) };
        self.state = State::Committing { next, effects };
        Step::Store(request)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the store answers what it was asked; all else is as wrong")]
    fn committed(&mut self, answer: Answer<P>, next: Arc<Task<P>>, effects: Vec<Effect<P>>) -> Step<P, Written<P>> {
        let reserved = starts(&effects);
        let then = match answer.outcome {
            Outcome::Conflict if mutant!(ConflictIsSuccess) => {
                return self.seen(Written::Done(Arc::clone(&next)), next, effects);
            }
            // The newer row is written over with what was made of the older one.
            Outcome::Conflict if mutant!(RetryWithoutReload) => {
                let over = Task::clone(&next);
                return self.commit(&over, next, effects);
            }
            Outcome::Committed => return self.seen(Written::Done(Arc::clone(&next)), next, effects),
            Outcome::Conflict if self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                Then::Again
            }
            Outcome::Conflict => {
                let why = Text::from("the task changes too often");
                Then::Finish(Unavailable { why, maybe_done: false })
            }
            // A run that may have been stored as ours must not be forgotten while our node lives: nobody else would take it
            // over. And an end that was stored is not to be taken for somebody else's.
            Outcome::Unavailable(unavailable)
                if !mutant!(DoubtIsNo)
                    && unavailable.maybe_done
                    && (reserved.is_some() || self.guard == Guard::Persistent) =>
            {
                self.doubt = Some(Doubt { next, effects });
                return self.pause();
            }
            Outcome::Unavailable(unavailable) => Then::Finish(unavailable),
            _ => out_of_turn(),
        };
        self.give_back(reserved, then)
    }

    /// Gives back the place of a run that was not stored, if one was reserved, and goes on.
    fn give_back(&mut self, reserved: Option<Attempt>, then: Then) -> Step<P, Written<P>> {
        match reserved {
            Some(attempt) => {
                self.state = State::Abandoning { then };
                Step::Host(Local::Abandon { id: self.id, attempt })
            }
            None => self.then(then),
        }
    }

    fn then(&mut self, then: Then) -> Step<P, Written<P>> {
        match then {
            Then::Again => self.load(),
            Then::Finish(unavailable) => self.unavailable(unavailable),
        }
    }

    fn unavailable(&mut self, mut unavailable: Unavailable) -> Step<P, Written<P>> {
        unavailable.maybe_done |= self.in_doubt;
        match self.guard {
            Guard::Caller(_) | Guard::Operator | Guard::Node => done(Written::Unavailable(unavailable)),
            Guard::Persistent if mutant!(EndGivesUp) => done(Written::Unavailable(unavailable)),
            Guard::Persistent => self.pause(),
        }
    }

    fn pause(&mut self) -> Step<P, Written<P>> {
        self.state = State::Pausing;
        self.conflicts = 0;
        let ms = MAX_PAUSE_MS.min(50 << self.outages.min(7));
        self.outages = self.outages.saturating_add(1);
        Step::Pause { ms }
    }

    /// The task is no more, so whoever still runs it has to stop.
    fn gone(&self) -> Step<P, Written<P>> {
        let after = match self.guard {
            Guard::Caller(_) => Vec::new(),
            Guard::Operator | Guard::Node | Guard::Persistent => {
                vec![After { id: self.id, seen: Seen::Gone, effects: Vec::new() }]
            }
        };
        Step::Done { reply: Written::Absent, after }
    }

    /// Whatever came of it, the node learns what the store says.
    fn seen(&self, reply: Written<P>, task: Arc<Task<P>>, effects: Vec<Effect<P>>) -> Step<P, Written<P>> {
        Step::Done { reply, after: vec![After { id: self.id, seen: Seen::Task(task), effects }] }
    }
}

impl<P: Payload> Procedure for Write<P> {
    type Payload = P;
    type Reply = Written<P>;

    fn command(&self) -> Option<&Command<P>> {
        Some(&self.command)
    }

    fn step(&mut self, input: Input<P>) -> Step<P, Written<P>> {
        match (core::mem::replace(&mut self.state, State::Idle), input) {
            (State::Idle, Input::Begin) | (State::Pausing, Input::Paused) => self.load(),
            (State::Loading, Input::Store(answer)) => self.loaded(answer),
            (State::Reserving { loaded, next, effects }, Input::Host) => self.commit(&loaded, next, effects),
            (State::Committing { next, effects }, Input::Store(answer)) => self.committed(answer, next, effects),
            (State::Abandoning { then }, Input::Host) => self.then(then),
            (
                State::Idle
                | State::Loading
                | State::Reserving { .. }
                | State::Committing { .. }
                | State::Abandoning { .. }
                | State::Pausing,
                _,
            ) => out_of_turn(),
        }
    }
}

fn done<P>(reply: Written<P>) -> Step<P, Written<P>> {
    Step::Done { reply, after: Vec::new() }
}

/// The attempt that these effects start, if they start one.
fn starts<P>(effects: &[Effect<P>]) -> Option<Attempt> {
    effects.iter().find_map(|effect| match effect {
        Effect::Start { attempt, .. } => Some(*attempt),
        Effect::Signal { .. } | Effect::Publish | Effect::Release { .. } => None,
    })
}

#[cfg(test)]
mod tests;
