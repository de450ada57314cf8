//! One thing happens: what it changes. The host's part is here, as the engine plays it; what decides is core's.

use std::sync::Arc;

use tokkuri_core::follow::{FollowerId, Owed, Table, Turns};
use tokkuri_core::id::{Attempt, Revision, TaskId};
use tokkuri_core::procedure::{After, Answered, Create, Expire, Input, Procedure, Read, Seen, Step, Write};
use tokkuri_core::store::{Answer, Outcome, Request, Unavailable};
use tokkuri_core::task::{Command, Task};

use crate::follow::scene::{Change, Deed, Listeners};
use crate::follow::state::{Ask, Mail, Memory, Reading, Stage, State, Subscriber};
use crate::follow::{Action, ELSEWHERE, HERE, nth};
use crate::frame::hashed::Hashed;
use crate::frame::payload::{Number, Who, draft, key, task_id, task_number};

/// How many rows an expiry takes at a time: all of them.
const SWEEP: u32 = 8;

/// A state that is being changed.
pub(super) struct Turn<'a> {
    pub(super) scene: &'a Listeners,
    pub(super) s: State,
}

impl<'a> Turn<'a> {
    pub(super) const fn new(scene: &'a Listeners, state: State) -> Self {
        Self { scene, s: state }
    }

    pub(super) fn make(mut self, action: Action) -> State {
        match action {
            Action::Change(lane) => self.change(lane),
            Action::Join(at) => self.join(at),
            Action::Ask(at, nth) => self.ask(at, nth, true),
            Action::AskInVain(at, nth) => {
                self.remember(|memory| memory.away -= 1);
                self.ask(at, nth, false);
            }
            Action::Answer(at, nth) => self.answer(at, nth),
            Action::Take(at) => self.take(at),
            Action::Leave(at) => self.leave(at),
            Action::Deliver(at) => {
                let mail = self.s.mail.remove(usize::from(at));
                self.deliver(&mail);
            }
            Action::Double(at) => {
                self.remember(|memory| memory.doubles -= 1);
                let mail = self.s.mail[usize::from(at)].clone();
                self.deliver(&mail);
            }
            Action::Look => {
                for id in self.to_read(&self.s.table) {
                    self.read(id);
                }
            }
            Action::Expire(here) => {
                let (_, after) = self.drive(Expire::new(SWEEP));
                self.carry_out(after, here);
            }
            Action::Wait => {
                let ms = self.scene.waits[usize::from(self.s.memory.waited)];
                self.remember(|memory| memory.waited += 1);
                self.s.now = self.s.now.after(ms);
            }
        }
        if self.s.listeners.iter().all(|it| it.stage == Stage::Over) {
            // There is nobody any more to whom it makes a difference.
            self.s.mail.clear();
        }
        self.s.mail.sort_unstable_by_key(Hashed::hash_code);
        self.s.mail.dedup();
        self.judge();
        self.s
    }

    pub(super) fn remember<R>(&mut self, change: impl FnOnce(&mut Memory) -> R) -> R {
        self.s.memory.change(change)
    }

    pub(super) fn listener<R>(&mut self, at: u8, change: impl FnOnce(&mut Subscriber) -> R) -> R {
        self.s.listeners[usize::from(at)].change(change)
    }

    /// Carries a procedure to its end at once.
    fn drive<Q: Procedure<Payload = Number>>(&mut self, mut procedure: Q) -> (Q::Reply, Vec<After<Number>>) {
        let mut input = Input::Begin;
        loop {
            input = match procedure.step(input) {
                Step::Store(request) => Input::Store(self.store(request)),
                Step::Host(_) => Input::Host,
                Step::Pause { .. } => Input::Paused,
                Step::Done { reply, after } => return (reply, after),
            };
        }
    }

    fn store(&mut self, request: Request<Number>) -> Answer<Number> {
        let now = self.s.now;
        if let Request::Load { id } = request {
            return Answer { now, outcome: Outcome::Loaded(self.s.shelf.row(now, id).cloned()) };
        }
        let answer = self.s.shelf.change(|shelf| shelf.carry_out(now, request));
        let memory = &self.s.memory;
        let newer = |row: &&Arc<Task<Number>>| {
            memory.history[task_number(row.id)].last().is_none_or(|last| last.revision < row.revision)
        };
        let stored: Vec<_> = self.s.shelf.rows().filter(newer).cloned().collect();
        for row in stored {
            self.remember(|memory| memory.history[task_number(row.id)].push(row));
        }
        answer
    }

    fn change(&mut self, lane: u8) {
        let made = self.remember(|memory| {
            memory.made[usize::from(lane)] += 1;
            memory.made[usize::from(lane)] - 1
        });
        let Change { task, here, deed } = self.scene.lanes[usize::from(lane)][usize::from(made)];
        let (id, by) = (task_id(task), Attempt::FIRST);
        let report = |command| Write::report(id, command);
        let after = match deed {
            Deed::Create => {
                let node = if self.scene.runs_here[usize::from(task)] { HERE } else { ELSEWHERE };
                self.drive(Create::new(draft(task, Who::Ann, node, false), None)).1
            }
            Deed::Progress(to) => self.drive(report(Command::Progress { by, message: to.to_string().into() })).1,
            Deed::Ask => self.drive(Write::question(id, Command::Ask { by, key: key(0), request: Number(1) })).1,
            Deed::Answer => self.drive(Write::answers(id, Who::Ann.caller(), [(key(0), Number(2))].into())).1,
            Deed::Complete => self.drive(Write::end(id, Command::Complete { by, result: Number(9), message: None })).1,
            Deed::Cancel => self.drive(Write::cancel(id, Who::Ann.caller())).1,
        };
        self.carry_out(after, here);
    }

    /// What the driver does once a change is stored: here it is read, and others may be told.
    fn carry_out(&mut self, after: Vec<After<Number>>, here: bool) {
        for After { id, seen, .. } in after {
            let revision = match &seen {
                Seen::Task(row) => Some(row.revision),
                Seen::Gone => None,
            };
            match here {
                true => self.send(Mail::Reading { id, seen }),
                false if self.scene.hints => self.send(Mail::Hint { id, revision }),
                false => {}
            }
        }
    }

    fn send(&mut self, mail: Mail) {
        self.s.mail.push(Hashed::new(mail));
    }

    fn read(&mut self, id: TaskId) {
        let Outcome::Loaded(row) = self.store(Request::Load { id }).outcome else { return };
        self.send(Mail::Reading { id, seen: row.map_or(Seen::Gone, Seen::Task) });
    }

    /// What a look at the store makes the node read: of its runs those that are behind, and what the table asks for.
    pub(super) fn to_read(&self, table: &Table<Number>) -> Vec<TaskId> {
        let now = self.s.now;
        let runs_here = |id| self.scene.runs_here[task_number(id)];
        let touched = self.s.shelf.rows().filter(|row| row.is_visible(now) && row.node == HERE);
        let behind = touched.filter(|row| table.is_behind(row.id, row.revision)).map(|row| row.id);
        // A run is there until it has noticed that its time is over.
        let lives = |id| self.s.memory.history[task_number(id)].last().is_some_and(|row| row.live().is_some());
        behind.chain(table.open(now, |id| runs_here(id) && lives(id))).collect()
    }

    fn deliver(&mut self, mail: &Mail) {
        match mail {
            Mail::Reading { id, seen } => self.observe(*id, seen),
            Mail::Hint { id, revision } => {
                if revision.is_none_or(|revision| self.s.table.is_behind(*id, revision)) {
                    self.read(*id);
                }
            }
        }
    }

    pub(super) fn observe(&mut self, id: TaskId, seen: &Seen<Number>) {
        let news = self.s.table.change(|table| table.observe(id, seen));
        if self.s.listeners.iter().any(|it| it.follows(id)) {
            self.remember(|memory| memory.read[task_number(id)].learn(seen));
        }
        for at in 0..self.s.listeners.len() as u8 {
            let it = &self.s.listeners[usize::from(at)];
            if news && it.sleeps && it.follows(id) {
                self.listener(at, |it| it.sleeps = false);
            }
        }
    }

    fn join(&mut self, at: u8) {
        let listener = &self.scene.listeners[usize::from(at)];
        let ids: Vec<_> = listener.tasks.iter().map(|task| task_id(*task)).collect();
        let caller = Arc::new(listener.who.caller());
        let me = FollowerId(at.into());
        self.s.table.change(|table| ids.iter().for_each(|id| table.join(*id, me, &caller)));
        let revision = |id: &TaskId| self.s.shelf.row(self.s.now, *id).map(|row| row.revision);
        let joined_at: Vec<Option<Revision>> = ids.iter().map(revision).collect();
        self.listener(at, |it| {
            it.stage = Stage::Reads;
            it.turns = Turns::new(ids);
            it.joined_at = joined_at;
        });
    }

    fn ask(&mut self, at: u8, nth: u8, well: bool) {
        let id = self.id(at, nth);
        let mut read = Read::<Number>::new(id, self.scene.listeners[usize::from(at)].who.caller());
        let Step::Store(request) = read.step(Input::Begin) else { unreachable!("it reads") };
        let answer = match well {
            true => self.store(request),
            false => {
                let unavailable = Unavailable { why: "the world wants it".into(), maybe_done: false };
                Answer { now: self.s.now, outcome: Outcome::Unavailable(unavailable) }
            }
        };
        self.listener(at, |it| it.asks[usize::from(nth)] = Ask::Asked(Hashed::new(answer)));
    }

    fn answer(&mut self, at: u8, nth: u8) {
        let id = self.id(at, nth);
        let Ask::Asked(answer) = self.s.listeners[usize::from(at)].asks[usize::from(nth)].clone() else { return };
        let mut read = Read::<Number>::new(id, self.scene.listeners[usize::from(at)].who.caller());
        read.step(Input::Begin);
        let Step::Done { reply, .. } = read.step(Input::Store(Answer::clone(&answer))) else {
            unreachable!("a read asks once")
        };
        self.judge_answered(at, id, &answer, &reply);
        match reply {
            Answered::Task(row) => self.observe(id, &Seen::Task(row)),
            Answered::Absent => {
                self.listener(at, |it| it.turns.leave(id));
                self.take_out(at, &[id]);
            }
            // It is told what it lacks, or that it may try again, and follows nothing.
            Answered::LacksScope { .. } | Answered::Unavailable(_) => return self.leave(at),
        }
        self.listener(at, |it| {
            it.asks[usize::from(nth)] = Ask::Answered;
            if it.asks.iter().all(|ask| *ask == Ask::Answered) {
                it.stage = Stage::Listens;
            }
        });
    }

    fn id(&self, at: u8, nth: u8) -> TaskId {
        task_id(self.scene.listeners[usize::from(at)].tasks[usize::from(nth)])
    }

    /// What a listener is owed next, as a subscription finds it out.
    fn next(&mut self, at: u8) -> Owed<Number> {
        let me = FollowerId(at.into());
        let (table, listener) = (&mut self.s.table, &mut self.s.listeners[usize::from(at)]);
        table.change(|table| {
            listener.change(|it| {
                it.turns.next(|id| {
                    let owed = table.next(id, me);
                    if owed == Owed::Over {
                        table.leave(id, me);
                    }
                    owed
                })
            })
        })
    }

    fn take(&mut self, at: u8) {
        let before = self.s.listeners[usize::from(at)].clone();
        let owed_before = self.owed(at);
        let owed = self.next(at);
        self.judge_taken(at, &before, &owed_before, &owed);
        match owed {
            Owed::Snapshot(row) => {
                let nth = nth(&self.scene.listeners[usize::from(at)], row.id);
                self.listener(at, |it| it.told[nth] = Some(row));
            }
            Owed::Nothing => self.listener(at, |it| it.sleeps = true),
            Owed::Over => self.over(at),
        }
        self.forget();
    }

    fn leave(&mut self, at: u8) {
        let open = self.s.listeners[usize::from(at)].turns.open().to_vec();
        self.take_out(at, &open);
        self.over(at);
        self.forget();
    }

    fn take_out(&mut self, at: u8, ids: &[TaskId]) {
        self.s.table.change(|table| ids.iter().for_each(|id| table.leave(*id, FollowerId(at.into()))));
        self.forget();
    }

    fn over(&mut self, at: u8) {
        let tasks = self.scene.listeners[usize::from(at)].tasks.len();
        self.s.listeners[usize::from(at)] =
            Hashed::new(Subscriber { stage: Stage::Over, asks: Vec::new(), ..Subscriber::new(tasks) });
    }

    /// What was known of a task that nobody follows any more is known no longer.
    fn forget(&mut self) {
        for task in 0..self.scene.runs_here.len() {
            let id = task_id(task as u8);
            if !self.s.listeners.iter().any(|it| it.follows(id)) && self.s.memory.read[task] != Reading::default() {
                self.remember(|memory| memory.read[task] = Reading::default());
            }
        }
    }
}
