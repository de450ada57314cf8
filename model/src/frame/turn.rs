//! One thing happens: what it changes. Only what lies between the machines is here: the store is asked, the wire carries, the
//! driver does what a procedure wants.

use std::sync::Arc;

use tokkuri_core::host::{Host, Watch};
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::lease::{Due, Sent};
use tokkuri_core::procedure::{After, Create, Expire, Input, Local, Read, Seen, Step, TakeOver, Write};
use tokkuri_core::store::{Answer, Load, Outcome, Request, Shelf, Unavailable};
use tokkuri_core::task::{Effect, Task};
use tokkuri_core::time::Millis;

use crate::frame::action::{Action, Store};
use crate::frame::hashed::{Aside, Hashed};
use crate::frame::look;
use crate::frame::payload::{Number, Who, draft, key, lease, task_id};
use crate::frame::scene::{Scene, What};
use crate::frame::state::{Flight, Heard, Mail, Memory, Node, Renewal, Running, Slot, State, Then};

/// How many rows a sweep takes at a time: all of them.
const SWEEP: u32 = 8;

/// A state that is being changed.
pub(super) struct Turn<'a> {
    pub(super) scene: &'a Scene,
    pub(super) s: State,
}

impl<'a> Turn<'a> {
    pub(super) fn new(scene: &'a Scene, state: State) -> Self {
        Self { scene, s: state }
    }

    /// What is there before anything happens: nodes that have joined, and the task that runs, if one does.
    pub(super) fn begins(mut self) -> State {
        for at in 0..self.s.nodes.len() as u8 {
            self.renew(at);
        }
        if self.scene.running {
            let node = self.s.nodes[0].id;
            let draft = Box::new(draft(0, Who::Ann, node, self.scene.restartable));
            let Outcome::Inserted(task) = self.store(None, Request::Insert { draft, limit: None }) else {
                unreachable!("the shelf was empty")
            };
            self.node(0, |node| {
                node.host.local(Local::Reserve { id: task.id, attempt: task.attempt });
                node.host.start(&task)
            });
            self.spawn(0, &task);
        }
        self.s.reached = Aside(0);
        self.s
    }

    /// Makes the action happen.
    pub(super) fn make(mut self, action: Action) -> State {
        match action {
            Action::Begin(request, store) => self.request(request, store),
            Action::Hear(task) => self.remember(|memory| memory.tasks[usize::from(task)].reply = Heard::Yes),
            Action::Unheard(task) => {
                self.remember(|memory| memory.tasks[usize::from(task)].reply = Heard::Lost);
                let node = self.creator(task);
                let abandon = Running::Write(Box::new(Write::abandon(task_id(task))));
                self.begin(Slot::Abandon(task), node, abandon, Store::Well);
            }
            Action::Step(slot, store) => self.step(slot, store),
            Action::Drop(slot) => {
                self.remember(|memory| memory.faults.drop -= 1);
                self.take(slot);
            }
            Action::Deliver(at) => {
                let mail = self.s.mail.remove(usize::from(at));
                self.deliver(&mail);
            }
            Action::Double(at) => {
                self.remember(|memory| memory.faults.double -= 1);
                let mail = self.s.mail[usize::from(at)].clone();
                self.deliver(&mail);
            }
            Action::Act(task, attempt, store) => self.act(task, attempt, store),
            Action::Stop(task, attempt) => self.stop(task, attempt),
            Action::WriteProgress(task, attempt) => self.write_progress(task, attempt),
            Action::Look(at) => {
                let (shelf, now) = (self.s.shelf.clone(), self.s.now);
                self.node(at, |node| look(&mut node.host, &mut node.watch, &shelf, now));
            }
            Action::Expire(at) => {
                self.begin(Slot::Expire(at), at, Running::Expire(Expire::new(SWEEP)), Store::Well);
            }
            Action::Sweep(at) => {
                self.judge_sweep(at);
                let number = self.s.memory.sweeps[usize::from(at)];
                self.remember(|memory| memory.sweeps[usize::from(at)] += 1);
                let heir = Some(self.s.nodes[usize::from(at)].id);
                let sweep = TakeOver::new(heir, "its node was lost".into(), SWEEP);
                self.begin(Slot::Sweep(at, number), at, Running::TakeOver(Box::new(sweep)), Store::Well);
            }
            Action::Renew(at) => self.renew(at),
            Action::Beat(at) => self.beat(at),
            Action::Carry(at) => self.carry(at),
            Action::Told(at) => self.told(at),
            Action::Operate => self.operate(),
            Action::Crash(at) => self.crash(at),
            Action::Wait => {
                let ms = self.scene.waits[usize::from(self.s.memory.waited)];
                self.remember(|memory| memory.waited += 1);
                self.s.now = self.s.now.after(ms);
            }
        }
        self.s.mail.sort_unstable_by_key(Hashed::hash_code);
        self.s.renewals.sort_unstable_by_key(Hashed::hash_code);
        self.s.tools.sort_unstable();
        self.s
    }

    pub(super) fn remember<R>(&mut self, change: impl FnOnce(&mut Memory) -> R) -> R {
        self.s.memory.change(change)
    }

    fn creator(&self, task: u8) -> u8 {
        let creates = |what| matches!(what, What::Create { task: it, .. } if it == task);
        self.scene.requests.iter().find(|request| creates(request.what)).map_or(0, |request| request.door)
    }

    fn request(&mut self, at: u8, store: Store) {
        let request = self.scene.requests[usize::from(at)];
        self.remember(|memory| memory.begun.add(usize::from(at)));
        let (caller, node) = (request.who.caller(), self.s.nodes[usize::from(request.door)].id);
        let id = task_id(request.what.task());
        let procedure = match request.what {
            // A node that drains, or holds no lease, creates nothing, and says so.
            What::Create { task, .. } if !self.s.takes_up(request.door) => {
                self.remember(|memory| memory.tasks[usize::from(task)].reply = Heard::Refused);
                return;
            }
            What::Create { task, .. } => {
                let draft = draft(task, request.who, node, self.scene.restartable);
                Running::Create(Box::new(Create::new(draft, Some(self.scene.limit))))
            }
            What::Get { .. } => Running::Read(Read::new(id, caller)),
            What::Answer { values, .. } => {
                let answers = (0..).zip(values).filter_map(|(name, value)| Some((key(name), Number(value?)))).collect();
                Running::Write(Box::new(Write::answers(id, caller, answers)))
            }
            What::AnswerUnknown { .. } => {
                Running::Write(Box::new(Write::answers(id, caller, [("unknown".into(), Number(1))].into())))
            }
            What::Cancel { .. } => Running::Write(Box::new(Write::cancel(id, caller))),
        };
        self.begin(Slot::Request(at), request.door, procedure, store);
    }

    /// Begins a procedure. If it reads first, that is done at once: to begin and to wait is nobody's to see.
    pub(super) fn begin(&mut self, slot: Slot, node: u8, mut procedure: Running, store: Store) {
        let waits = procedure.step(Input::Begin);
        let flight = Flight { node, procedure, waits, stored: false, failures: 0, orphans: Vec::new() };
        match flight.waits {
            Step::Store(_) => self.step_of(slot, flight, store),
            Step::Host(_) | Step::Pause { .. } | Step::Done { .. } => self.go_on(slot, flight),
        }
    }

    /// Takes a request out.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Hashed<Flight>> {
        let at = self.s.flights.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(self.s.flights.remove(at).1)
    }

    /// What a procedure wants of its own node is done at once: a driver does not wait in between.
    fn go_on(&mut self, slot: Slot, mut flight: Flight) {
        while let Step::Host(local) = flight.waits {
            self.node(flight.node, |node| node.host.local(local));
            flight.waits = flight.procedure.step(Input::Host);
        }
        if let Step::Done { reply, after } = &flight.waits {
            let (reply, after) = (reply.clone(), after.clone());
            self.judge_reply(slot, &flight, &reply, &after);
            self.done(slot, flight.node, &reply, after);
            return;
        }
        let at = self.s.flights.binary_search_by_key(&slot, |(slot, _)| *slot).expect_err("the slot is free");
        self.s.flights.insert(at, (slot, Hashed::new(flight)));
    }

    fn step(&mut self, slot: Slot, store: Store) {
        if let Some(flight) = self.take(slot) {
            self.step_of(slot, Flight::clone(&flight), store);
        }
    }

    fn step_of(&mut self, slot: Slot, mut flight: Flight, store: Store) {
        let input = match flight.waits.clone() {
            Step::Store(request) => {
                if store != Store::Well {
                    flight.failures += 1;
                }
                Input::Store(self.ask(slot, &mut flight, request, store))
            }
            Step::Pause { .. } => Input::Paused,
            Step::Host(_) | Step::Done { .. } => unreachable!("that is done at once"),
        };
        flight.waits = flight.procedure.step(input);
        self.go_on(slot, flight);
    }

    fn ask(&mut self, slot: Slot, flight: &mut Flight, request: Request<Number>, store: Store) -> Answer<Number> {
        let fault = |maybe_done| Outcome::Unavailable(Unavailable { why: "the world wants it".into(), maybe_done });
        let outcome = match store {
            Store::Well => {
                let outcome = self.store(Some((slot, flight)), request);
                if let Outcome::Orphans(orphans) = &outcome {
                    flight.orphans = orphans.iter().map(|task| (task.id, task.attempt)).collect();
                }
                outcome
            }
            Store::Away => {
                self.remember(|memory| memory.faults.away -= 1);
                fault(false)
            }
            Store::Mute => {
                self.remember(|memory| memory.faults.mute -= 1);
                self.store(Some((slot, flight)), request);
                fault(true)
            }
            Store::Unsure => {
                self.remember(|memory| memory.faults.unsure -= 1);
                fault(true)
            }
        };
        Answer { now: self.s.now, outcome }
    }

    /// Carries out a request, and holds what it stores against the claims.
    pub(super) fn store(&mut self, by: Option<(Slot, &mut Flight)>, request: Request<Number>) -> Outcome<Number> {
        let now = self.s.now;
        if let Request::Load { id } = request {
            return Outcome::Loaded(self.s.shelf.row(now, id).cloned());
        }
        let id = match &request {
            Request::Insert { draft, .. } => Some(draft.id),
            Request::Commit { task, .. } => Some(task.id),
            Request::Load { .. }
            | Request::Count { .. }
            | Request::Due { .. }
            | Request::Remove { .. }
            | Request::Orphans { .. }
            | Request::TouchedSince { .. }
            | Request::Page { .. }
            | Request::Join { .. }
            | Request::Renew { .. }
            | Request::Resign { .. }
            | Request::Nodes
            | Request::Drain { .. } => None,
        };
        let before = self.s.shelf.clone();
        let outcome = self.s.shelf.change(|shelf| shelf.carry_out(now, request.clone()).outcome);
        self.judge_store(by, &before, &request, id, &outcome);
        outcome
    }

    /// A procedure is done: what it wants to have happen is on its way, to happen in some order.
    fn done(&mut self, slot: Slot, node: u8, reply: &crate::frame::state::Reply, after: Vec<After<Number>>) {
        let then = self.then(slot, reply);
        if after.is_empty() {
            self.after_all(then);
            return;
        }
        let here = self.s.nodes[usize::from(node)].id;
        for after in after {
            // What a node reads of other nodes' tasks is nothing to it, unless it may come to run them.
            let idle = match &after.seen {
                Seen::Task(task) => !self.scene.has_leases() && task.node != here,
                Seen::Gone => !self.scene.has_leases() && self.s.nodes[usize::from(node)].host.run(after.id).is_none(),
            };
            if idle && then == Then::Nothing {
                self.carry_out_after(node, &after);
            } else {
                self.s.mail.push(Hashed::new(Mail::After { node, after, then }));
            }
        }
    }

    fn deliver(&mut self, mail: &Mail) {
        match mail {
            Mail::After { node, after, then } => {
                self.carry_out_after(*node, after);
                self.after_all(*then);
            }
            Mail::Signal { node, id, revision } => {
                let host = &self.s.nodes[usize::from(*node)].host;
                if revision.is_none_or(|revision| host.is_behind(*id, revision))
                    && let Outcome::Loaded(task) = self.store(None, Request::Load { id: *id })
                {
                    let seen = task.map_or(Seen::Gone, Seen::Task);
                    self.s.mail.push(Hashed::new(Mail::Seen { node: *node, id: *id, seen }));
                }
            }
            Mail::Seen { node, id, seen } => self.observe(*node, *id, seen),
        }
    }

    /// What the driver does with the effects of a stored change.
    fn carry_out_after(&mut self, at: u8, after: &After<Number>) {
        let here = self.s.nodes[usize::from(at)].id;
        for effect in &after.effects {
            match (effect, &after.seen) {
                (Effect::Start { .. }, Seen::Task(task)) => {
                    if self.node(at, |node| node.host.start(task)) {
                        self.spawn(at, task);
                    }
                }
                (Effect::Signal { node, .. }, seen) if *node != here => {
                    let revision = match seen {
                        Seen::Task(task) => Some(task.revision),
                        Seen::Gone => None,
                    };
                    if let Some(to) = self.s.nodes.iter().position(|it| it.id == *node) {
                        self.s.mail.push(Hashed::new(Mail::Signal { node: to as u8, id: after.id, revision }));
                    }
                }
                (Effect::Start { .. } | Effect::Signal { .. } | Effect::Publish | Effect::Release { .. }, _) => {}
            }
        }
        self.observe(at, after.id, &after.seen);
    }

    fn observe(&mut self, at: u8, id: TaskId, seen: &Seen<Number>) {
        if self.s.nodes[usize::from(at)].host.run(id).is_some() {
            self.node(at, |node| {
                node.host.observe(id, seen);
            });
        }
    }

    /// Changes a node, and holds what its runs were told against the claims.
    pub(super) fn node<R>(&mut self, at: u8, change: impl FnOnce(&mut Node) -> R) -> R {
        let before = self.s.nodes[usize::from(at)].clone();
        let outcome = self.s.nodes[usize::from(at)].change(change);
        self.judge_runs(at, &before);
        outcome
    }

    /// The node does what is due about its lease, and is answered at once.
    fn renew(&mut self, at: u8) {
        while let Some(Renewal::Asked { request, sent, .. }) = self.due(at) {
            let answer = Answer { now: self.s.now, outcome: self.store(None, request) };
            self.answered(at, sent, &answer);
        }
        self.heed(at);
    }

    /// The node does what is due about its lease; what it asks is on its way.
    fn beat(&mut self, at: u8) {
        while let Some(asked) = self.due(at) {
            self.s.renewals.push(Hashed::new(asked));
        }
        self.heed(at);
    }

    /// What the node asks about its lease now, if anything. If its lease is lost, it has stopped everything by then.
    fn due(&mut self, at: u8) -> Option<Renewal> {
        loop {
            let (own, load) = (self.s.own(at), self.load(at));
            let due = self.s.nodes[usize::from(at)].change(|node| Some(node.lease.as_mut()?.due(own, load)));
            match due? {
                Due::Ask(request, sent) => return Some(Renewal::Asked { node: at, request: *request, sent }),
                Due::At(_) => return None,
                Due::Lost => {
                    let lost = self.s.nodes[usize::from(at)].id;
                    self.rejoin(at);
                    // One that did not become another would ask for ever.
                    if self.s.nodes[usize::from(at)].id == lost {
                        return None;
                    }
                }
            }
        }
    }

    /// What the node has to do. Nothing asks for it where no node drains.
    fn load(&self, at: u8) -> Load {
        let runs = self.s.nodes[usize::from(at)].host.len();
        let told = self.scene.drain.is_some();
        Load { runs: if told { runs as u32 } else { 0 }, ..Load::default() }
    }

    fn carry(&mut self, at: u8) {
        let renewal = self.s.renewals.remove(usize::from(at));
        if let Renewal::Asked { node, request, sent } = Renewal::clone(&renewal) {
            let answer = Answer { now: self.s.now, outcome: self.store(None, request) };
            self.s.renewals.push(Hashed::new(Renewal::Answered { node, sent, answer }));
        }
    }

    fn told(&mut self, at: u8) {
        let renewal = self.s.renewals.remove(usize::from(at));
        if let Renewal::Answered { node, sent, answer } = &*renewal {
            self.answered(*node, *sent, answer);
            self.heed(*node);
        }
    }

    fn answered(&mut self, at: u8, sent: Sent, answer: &Answer<Number>) {
        let own = self.s.own(at);
        self.s.nodes[usize::from(at)].change(|node| {
            if let Some(lease) = &mut node.lease {
                lease.answered(own, sent, answer);
            }
        });
        if let Outcome::Leased { drain, .. } = answer.outcome {
            self.remember(|memory| memory.drains[usize::from(at)] = drain);
        }
    }

    /// Runs are told whether the node drains.
    fn heed(&mut self, at: u8) {
        let draining = self.s.draining(at);
        if draining != self.s.nodes[usize::from(at)].host.draining() {
            self.node(at, |node| node.host.drain(draining));
        }
    }

    /// The node's lease is lost: everything stops, and it goes on as another.
    fn rejoin(&mut self, at: u8) {
        let id = NodeId(self.s.nodes[usize::from(at)].id.0 + u64::from(self.scene.nodes));
        self.node(at, |node| {
            node.host.rejoin(id);
            if let Some(lease) = &mut node.lease {
                lease.begin_again(id);
                node.id = lease.node();
            }
            node.watch = Watch::new(node.id);
        });
        self.remember(|memory| memory.drains[usize::from(at)] = None);
        self.judge_rejoin(at, id);
    }

    fn operate(&mut self) {
        let Some((at, ms)) = self.scene.drain else { return };
        let drain = (self.s.memory.operated == 0).then_some(ms);
        let node = self.s.nodes[usize::from(at)].id;
        self.remember(|memory| memory.operated += 1);
        self.store(None, Request::Drain { node, drain });
    }

    /// Everything in the node's memory is gone.
    fn crash(&mut self, at: u8) {
        self.remember(|memory| memory.faults.crash -= 1);
        for task in 0..self.s.memory.tasks.len() as u8 {
            let create = |slot: &Slot| {
                matches!(slot, Slot::Request(request) if matches!(
                self.scene.requests[usize::from(*request)].what, What::Create { task: it, .. } if it == task))
            };
            let died = self
                .s
                .flights
                .iter()
                .any(|(slot, flight)| flight.node == at && (create(slot) || *slot == Slot::Abandon(task)));
            let pending = self.creator(task) == at && self.s.memory.tasks[usize::from(task)].reply == Heard::Pending;
            if died || pending {
                self.remember(|memory| memory.tasks[usize::from(task)].reply = Heard::Stranded);
            }
        }
        self.s.flights.retain(|(_, flight)| flight.node != at);
        self.s.mail.retain(|mail| mail.node() != at);
        self.s.renewals.retain(|renewal| renewal.node() != at);
        self.s.tools.retain(|tool| tool.node != at);
        let id = NodeId(self.s.nodes[usize::from(at)].id.0 + u64::from(self.scene.nodes));
        let lease = self.scene.has_leases().then(|| lease(id));
        let lags = self.s.nodes[usize::from(at)].lags;
        self.s.nodes[usize::from(at)] =
            Hashed::new(Node { id, host: Host::new(id), watch: Watch::new(id), lease, lags });
        self.remember(|memory| memory.drains[usize::from(at)] = None);
        self.renew(at);
    }
}

/// Live tasks whose node holds no lease.
pub(super) fn orphans(shelf: &Shelf<Number>, now: Millis) -> Vec<Arc<Task<Number>>> {
    match shelf.clone().carry_out(now, Request::Orphans { limit: SWEEP }).outcome {
        Outcome::Orphans(orphans) => orphans,
        other => unreachable!("asked for orphans, the store answered {other:?}"),
    }
}

/// Whether some procedure's effects are on their way for which this is so.
pub(super) fn mail_runs(state: &State, is: impl Fn(Then) -> bool) -> bool {
    state.mail.iter().any(|mail| matches!(&**mail, Mail::After { then, .. } if is(*then)))
}
