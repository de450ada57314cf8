//! A small world around the shipped machines: two nodes, one store, a wire that loses, doubles and reorders, and a clock that
//! only goes forward. No transition of a task is written again here; the world only carries out what procedures say and keeps
//! account of what was stored.
//!
//! What can happen is in `moves`, what is under way in `flight`, what nodes do by themselves in `nodes`, what must hold in
//! `assertions`.

pub(crate) mod assertions;
mod flight;
pub(crate) mod moves;
mod nodes;
#[path = "payload.rs"]
pub(crate) mod payload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flight::Op;
pub(crate) use flight::{Flight, Kind, Reply};
use moves::{How, Move, Store, key_name};
use payload::{Number, caller, draft};
use tokkuri_core::access::Caller;
use tokkuri_core::host::{Host, Watch};
use tokkuri_core::id::{Attempt, NodeId, Revision, TaskId};
use tokkuri_core::procedure::{After, Create, Expire, Input, Read, Seen, Step, TakeOver, Write};
use tokkuri_core::store::{Answer, Outcome, Request, Shelf, Unavailable};
use tokkuri_core::task::{Command, Effect, Fault, Task};
use tokkuri_core::time::Millis;

/// How many live tasks an owner may have.
pub(crate) const LIMIT: u32 = 2;
/// How long a node is thought alive after it said so.
pub(crate) const LEASE_MS: u64 = 15_000;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Millis,
    pub(crate) shelf: Shelf<Number>,
    pub(crate) nodes: [Node; 2],
    pub(crate) flights: Vec<Flight>,
    pub(crate) mail: Vec<Mail>,
    /// The tools that run, also those whose node has thought better of it: they do not know.
    pub(crate) runs: Vec<Tool>,
    /// Every state of every task that was ever stored, oldest first.
    pub(crate) history: BTreeMap<TaskId, Vec<Arc<Task<Number>>>>,
    /// Every task that somebody tried to create, with its owner.
    pub(crate) ids: Vec<(TaskId, Caller)>,
    /// Every attempt that was started.
    pub(crate) spawned: BTreeSet<(TaskId, Attempt)>,
    /// Tasks whose create met a store that did not know: they may stay until their time is over.
    pub(crate) ghosts: BTreeSet<TaskId>,
    /// How often something worth reaching was reached.
    pub(crate) reached: BTreeMap<&'static str, usize>,
    incarnations: u64,
}

/// One node: what a host keeps.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) host: Host<Number>,
    pub(crate) watch: Watch,
    /// Until when it may trust its lease.
    pub(crate) leased: Millis,
}

/// A tool that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) node: usize,
    pub(crate) incarnation: NodeId,
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
}

/// What is on its way to a node.
#[derive(Clone, Debug)]
pub(crate) enum Mail {
    /// The run that a node's own procedure wants started. It may be late, but it is never lost while the node lives.
    Start { node: usize, incarnation: NodeId, task: Arc<Task<Number>> },
    /// What a node's own procedure read.
    Seen { node: usize, id: TaskId, seen: Seen<Number> },
    /// A signal between nodes: the task has this revision now, or is gone.
    Signal { node: usize, id: TaskId, revision: Option<Revision> },
}

impl World {
    pub(crate) fn new() -> Self {
        let node =
            |n| Node { id: NodeId(n), host: Host::new(NodeId(n)), watch: Watch::new(NodeId(n)), leased: Millis(0) };
        let mut world = Self {
            now: Millis(1_000_000),
            shelf: Shelf::default(),
            nodes: [node(1), node(2)],
            flights: Vec::new(),
            mail: Vec::new(),
            runs: Vec::new(),
            history: BTreeMap::new(),
            ids: Vec::new(),
            spawned: BTreeSet::new(),
            ghosts: BTreeSet::new(),
            reached: BTreeMap::new(),
            incarnations: 2,
        };
        world.lease(0);
        world.lease(1);
        world
    }

    pub(crate) fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    /// One thing happens. What cannot happen now is passed over.
    pub(crate) fn make(&mut self, step: Move) {
        let node = |node: u8| usize::from(node) % 2;
        match step {
            Move::Create { node: n, who, restartable } => {
                let name = ["ann", "bob"][usize::from(who) % 2];
                let Ok(number) = u8::try_from(self.ids.len()) else { return };
                let draft = draft(number, name, self.nodes[node(n)].id, restartable);
                let id = draft.id;
                self.ids.push((id, caller(name)));
                self.begin(node(n), Kind::Create(id), Op::Create(Box::new(Create::new(draft, Some(LIMIT)))));
            }
            Move::Read { node: n, task, who } => {
                self.client(node(n), task, who, false, |id, caller| Op::Read(Read::new(id, caller)))
            }
            Move::Answer { node: n, task, who, key, value } => self.client(node(n), task, who, false, |id, caller| {
                let answers = BTreeMap::from([(key_name(key).into(), Number(value))]);
                Op::Write(Box::new(Write::answers(id, caller, answers)))
            }),
            Move::Cancel { node: n, task, who } => {
                self.client(node(n), task, who, true, |id, caller| Op::Write(Box::new(Write::cancel(id, caller))))
            }
            Move::Abandon { node: n, task } => {
                // Nobody can name a task before it is stored.
                if let Some((id, _)) = pick(&self.ids, task).filter(|(id, _)| self.history.contains_key(id)) {
                    self.begin(node(n), Kind::Abandon, Op::Write(Box::new(Write::abandon(id))));
                }
            }
            Move::Report { run, what } => {
                let Some(tool) = pick(&self.runs, run) else { return };
                let (by, value) = (tool.attempt, what / 4);
                let command = match what % 4 {
                    0 | 1 => Command::Ask { by, key: key_name(value).into(), request: Number(what) },
                    2 => Command::Progress { by, message: value.to_string().into() },
                    _ => Command::Note { by, slot: Number(value) },
                };
                let write = Op::Write(Box::new(Write::report(tool.id, command)));
                self.begin(tool.node, Kind::Run { tool, end: false }, write);
            }
            Move::End { run, ok } => {
                let Some(tool) = pick(&self.runs, run) else { return };
                let by = tool.attempt;
                let command = match ok {
                    true => Command::Complete { by, result: Number(9), message: None },
                    false => Command::Fail { by, fault: Fault::internal("broken") },
                };
                self.begin(tool.node, Kind::Run { tool, end: true }, Op::Write(Box::new(Write::end(tool.id, command))));
            }
            // One at a time, as `TakeOver` wants it.
            Move::Sweep { node: n, .. } if self.sweeps(node(n)) => {}
            Move::Sweep { node: n, heir } => {
                let heir = heir.then_some(self.nodes[node(n)].id);
                self.begin(
                    node(n),
                    Kind::Sweep,
                    Op::TakeOver(Box::new(TakeOver::new(heir, "its node was lost".into(), 3))),
                );
            }
            Move::Expire { node: n } => self.begin(node(n), Kind::Expire, Op::Expire(Expire::new(3))),
            Move::Step { request, store } => {
                if !self.flights.is_empty() {
                    self.go_on(usize::from(request) % self.flights.len(), store);
                }
            }
            Move::Deliver { message, how } => {
                if !self.mail.is_empty() {
                    self.deliver(usize::from(message) % self.mail.len(), how);
                }
            }
            Move::Look { node: n } => self.look(node(n)),
            Move::Renew { node: n } => self.renew(node(n)),
            Move::Crash { node: n } => self.crash(node(n)),
            Move::Wait { ms, asleep } => self.wait(ms, asleep.map(node)),
        }
    }

    /// Whether this incarnation of the node is sweeping. One that came back as another knows nothing of the old one's sweep.
    fn sweeps(&self, node: usize) -> bool {
        let id = self.nodes[node].id;
        self.flights.iter().any(|it| it.kind == Kind::Sweep && it.incarnation == id)
    }

    fn client(&mut self, node: usize, task: u8, who: u8, cancel: bool, op: impl FnOnce(TaskId, Caller) -> Op) {
        let Some((id, owner)) = pick(&self.ids, task) else { return };
        let caller = caller(["ann", "bob"][usize::from(who) % 2]);
        let own = caller == owner;
        self.begin(node, Kind::Client { id, own, cancel }, op(id, caller));
    }

    fn begin(&mut self, node: usize, kind: Kind, op: Op) {
        let incarnation = self.nodes[node].id;
        let mut flight = Flight { node, incarnation, op, waits: Step::Pause { ms: 0 }, kind };
        flight.waits = flight.op.step(Input::Begin);
        self.flights.push(flight);
    }

    /// Carries out what a procedure waits for, and tells it.
    fn go_on(&mut self, at: usize, store: Store) {
        let mut flight = self.flights.swap_remove(at);
        let input = match flight.waits.clone() {
            Step::Store(request) => Input::Store(self.ask(&flight, request, store)),
            Step::Pause { .. } => Input::Paused,
            Step::Host(local) => {
                // A node that came back as another has another table.
                if self.nodes[flight.node].id == flight.incarnation {
                    self.nodes[flight.node].host.local(local);
                }
                Input::Host
            }
            Step::Done { .. } => unreachable!("what is done is not under way"),
        };
        match flight.op.step(input) {
            Step::Done { reply, after } => self.done(&flight, &reply, after),
            waits => {
                flight.waits = waits;
                self.flights.push(flight);
            }
        }
    }

    fn ask(&mut self, flight: &Flight, request: Request<Number>, store: Store) -> Answer<Number> {
        let fault = |maybe_done| Outcome::Unavailable(Unavailable { why: "the world wants it".into(), maybe_done });
        let outcome = match store {
            Store::Away => fault(false),
            Store::Unsure => fault(true),
            Store::Conflict if matches!(request, Request::Commit { .. }) => Outcome::Conflict,
            Store::Mute => {
                self.carry_out(Some(flight), request);
                fault(true)
            }
            Store::Well | Store::Conflict => self.carry_out(Some(flight), request).outcome,
        };
        Answer { now: self.now, outcome }
    }

    /// Everything goes on, each after it was stored: that is what the assertions look at.
    fn done(&mut self, flight: &Flight, reply: &Reply, after: Vec<After<Number>>) {
        self.judge(flight, reply, &after);
        let node = flight.node;
        for After { id, seen, effects } in after {
            for effect in effects {
                match effect {
                    Effect::Start { node: on, .. } => {
                        let Seen::Task(task) = &seen else { panic!("what is gone is not started") };
                        assert!(task.live().is_some(), "what has ended is not started");
                        self.mail.push(Mail::Start { node, incarnation: on, task: Arc::clone(task) });
                    }
                    Effect::Signal { node: to, .. } => {
                        let revision = match &seen {
                            Seen::Task(task) => Some(task.revision),
                            Seen::Gone => None,
                        };
                        if let Some(to) = self.nodes.iter().position(|it| it.id == to) {
                            self.mail.push(Mail::Signal { node: to, id, revision });
                        }
                    }
                    Effect::Publish | Effect::Release { .. } => {}
                }
            }
            self.mail.push(Mail::Seen { node, id, seen });
        }
        if let Kind::Run { tool, end: true } = flight.kind {
            self.leave(tool);
        }
    }

    /// Carries out a request, and keeps account of what it stored.
    fn carry_out(&mut self, flight: Option<&Flight>, request: Request<Number>) -> Answer<Number> {
        let written = match &request {
            Request::Insert { draft, .. } => Some(draft.id),
            Request::Commit { task, .. } => Some(task.id),
            _ => None,
        };
        let answer = self.shelf.carry_out(self.now, request);
        if let (Some(id), Outcome::Inserted(_) | Outcome::Committed) = (written, &answer.outcome) {
            let row = Arc::clone(self.shelf.rows().find(|row| row.id == id).expect("it was just stored"));
            self.record(flight, row);
        }
        answer
    }

    /// Nothing goes wrong any more: requests under way come to their end, leases are renewed, orphans are taken over, the dead
    /// are removed, and each node looks at the store. But every signal that was not delivered yet is lost.
    pub(crate) fn settle(&mut self) {
        // The leases of dead nodes run out, those of living ones do not.
        for _ in 0..3 {
            self.renew(0);
            self.renew(1);
            self.now = self.now.after(LEASE_MS / 2);
        }
        for _ in 0..3 {
            while !self.flights.is_empty() || !self.mail.is_empty() {
                while !self.flights.is_empty() {
                    self.go_on(0, Store::Well);
                }
                self.mail.retain(|mail| matches!(mail, Mail::Start { .. }));
                while !self.mail.is_empty() {
                    self.deliver(0, How::Once);
                }
            }
            self.make(Move::Expire { node: 0 });
            self.make(Move::Expire { node: 1 });
            for _ in 0..self.ids.len() {
                self.make(Move::Sweep { node: 0, heir: true });
            }
            while !self.flights.is_empty() {
                self.go_on(0, Store::Well);
            }
            self.mail.retain(|mail| matches!(mail, Mail::Start { .. }));
            while !self.mail.is_empty() {
                self.deliver(0, How::Once);
            }
            self.look(0);
            self.look(1);
        }
    }
}

fn pick<T: Clone>(list: &[T], number: u8) -> Option<T> {
    (!list.is_empty()).then(|| list[usize::from(number) % list.len()].clone())
}
