//! A scene, and which things can happen in a state of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokkuri_core::host::{Host, Watch};
use tokkuri_core::id::NodeId;
use tokkuri_core::lease::{Due, Lease};
use tokkuri_core::procedure::Step;
use tokkuri_core::run::ProgressDue;
use tokkuri_core::store::{Load, Request, Shelf};
use tokkuri_core::task::Effect;

use crate::frame::action::{Action, Store};
use crate::frame::claim::{Broken, Claim, Told};
use crate::frame::hashed::{Aside, Hashed};
use crate::frame::look;
use crate::frame::payload::{Number, T0, lease, task_id};
use crate::frame::scene::{Do, Scene, What};
use crate::frame::state::{
    Begun, Flight, Heard, Mail, Memory, Node, Renewal, Running, Slot, State, TaskMemory, Then, Tool,
};
use crate::frame::turn::{Turn, mail_runs};

/// How many claims a world can have.
pub(crate) const MAX_CLAIMS: usize = 32;

/// A scene and the claims that are held against it.
#[derive(Debug)]
pub struct World {
    /// The scene.
    pub scene: Scene,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Claims that were found broken. stateright keeps the last counterexample that it is shown; the first is the shortest.
    found: AtomicU64,
    /// Premises that some step met. Two steps that lead to one state are one to the search, and only one of them may have met it.
    met: AtomicU64,
}

impl World {
    /// The scene with all claims of the frame.
    pub fn new(scene: Scene) -> Self {
        Self::with_claims(scene, crate::frame::claim::all())
    }

    /// The scene with these claims.
    ///
    /// # Panics
    /// If there are more than 32 claims.
    pub fn with_claims(scene: Scene, claims: Vec<Claim>) -> Self {
        assert!(claims.len() <= MAX_CLAIMS, "at most {MAX_CLAIMS} claims");
        Self { scene, claims, found: AtomicU64::new(0), met: AtomicU64::new(0) }
    }

    /// The one state that it begins in.
    pub fn beginning(&self) -> State {
        let scene = &self.scene;
        let node = |id| {
            let lease = scene.has_leases().then(|| lease(id));
            let lags = scene.lags.is_some_and(|node| u64::from(node) + 1 == id.0);
            Hashed::new(Node { id, host: Host::new(id), watch: Watch::new(id), lease, lags })
        };
        let mut tasks = vec![TaskMemory::default(); scene.tasks()];
        if scene.running {
            tasks[0].reply = Heard::Yes;
        }
        let state = State {
            now: T0,
            shelf: Hashed::new(Shelf::default()),
            nodes: (1..=u64::from(scene.nodes)).map(|id| node(NodeId(id))).collect(),
            flights: Vec::new(),
            mail: Vec::new(),
            renewals: Vec::new(),
            tools: Vec::new(),
            memory: Hashed::new(Memory {
                begun: Begun::default(),
                waited: 0,
                faults: scene.faults,
                sweeps: [0; 3],
                drains: [None; 3],
                operated: 0,
                tasks,
            }),
            broken: Broken::default(),
            why: Aside(None),
            reached: Aside(0),
        };
        Turn::new(scene, state).begins()
    }

    /// What can happen in a state. Not all of it changes something.
    pub fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        // What follows a broken claim is of no interest.
        if state.broken.any() {
            return;
        }
        self.requests(state, actions);
        self.steps(state, actions);
        for at in 0..state.mail.len() as u8 {
            actions.push(Action::Deliver(at));
            if state.memory.faults.double > 0 && state.mail[usize::from(at)].is_fragile() {
                actions.push(Action::Double(at));
            }
        }
        for (at, renewal) in (0..).zip(&state.renewals) {
            actions.push(match **renewal {
                Renewal::Asked { .. } => Action::Carry(at),
                Renewal::Answered { .. } => Action::Told(at),
            });
        }
        if self.scene.drain.is_some() && state.memory.operated < 1 + u8::from(self.scene.undrain) {
            actions.push(Action::Operate);
        }
        for tool in &state.tools {
            self.tool(state, tool, actions);
        }
        self.nodes(state, actions);
        if usize::from(state.memory.waited) < self.scene.waits.len() {
            actions.push(Action::Wait);
        }
    }

    fn requests(&self, state: &State, actions: &mut Vec<Action>) {
        let memory = &state.memory;
        for (at, request) in self.scene.requests.iter().enumerate() {
            let twin_waits = (0..at).any(|twin| !memory.begun.has(twin) && self.are_interchangeable(twin, at));
            if memory.begun.has(at) || twin_waits {
                continue;
            }
            let heard = |task: u8| memory.tasks[usize::from(task)].reply;
            let may = match request.what {
                What::Create { retries: Some(task), .. } => {
                    matches!(heard(task), Heard::Lost | Heard::Refused | Heard::Stranded)
                }
                What::Create { retries: None, .. } => true,
                // An id cannot be guessed: somebody has to have seen the task.
                What::Get { task }
                | What::Answer { task, .. }
                | What::AnswerUnknown { task }
                | What::Cancel { task } => heard(task) != Heard::No || state.row(task_id(task)).is_some(),
            };
            if may {
                actions.push(Action::Begin(at as u8, Store::Well));
                if memory.faults.away > 0 && !matches!(request.what, What::Create { .. }) {
                    actions.push(Action::Begin(at as u8, Store::Away));
                }
            }
        }
        for (task, memory) in (0..).zip(&memory.tasks) {
            if memory.reply == Heard::Pending {
                actions.push(Action::Hear(task));
                if self.scene.replies_get_lost {
                    actions.push(Action::Unheard(task));
                }
            }
        }
    }

    /// Requests that differ in nothing but their number begin in the order of their numbers: the other orders are the same
    /// with other names.
    fn are_interchangeable(&self, a: usize, b: usize) -> bool {
        let requests = &self.scene.requests;
        let (a, b) = (&requests[a], &requests[b]);
        let creates = |what| matches!(what, What::Create { retries: None, .. });
        // Creates are, while nothing else names the tasks.
        let all_creates = || requests.iter().all(|request| creates(request.what)) && !self.scene.running;
        (a.door, a.who) == (b.door, b.who)
            && (a.what == b.what || (creates(a.what) && creates(b.what) && all_creates()))
    }

    fn steps(&self, state: &State, actions: &mut Vec<Action>) {
        let faults = &state.memory.faults;
        for (slot, flight) in &state.flights {
            actions.push(Action::Step(*slot, Store::Well));
            if let Step::Store(request) = &flight.waits {
                let writes =
                    matches!(request, Request::Insert { .. } | Request::Commit { .. } | Request::Remove { .. });
                if faults.away > 0 {
                    actions.push(Action::Step(*slot, Store::Away));
                }
                if faults.mute > 0 && writes {
                    actions.push(Action::Step(*slot, Store::Mute));
                }
                if faults.unsure > 0 && writes {
                    actions.push(Action::Step(*slot, Store::Unsure));
                }
            }
            let creates = |at: u8| matches!(self.scene.requests[usize::from(at)].what, What::Create { .. });
            if faults.drop > 0 && matches!(slot, Slot::Request(at) if !creates(*at)) {
                actions.push(Action::Drop(*slot));
            }
        }
    }

    fn tool(&self, state: &State, tool: &Tool, actions: &mut Vec<Action>) {
        if tool.ending {
            return;
        }
        let (task, attempt) = (tool.task, tool.attempt);
        let node = &state.nodes[usize::from(tool.node)];
        let run = node.host.run(task_id(task)).filter(|run| run.attempt() == attempt);
        let Some(run) = run.filter(|run| run.stop().is_none()) else {
            actions.push(Action::Stop(task, attempt));
            return;
        };
        let busy = state.flight(Slot::Run(task, attempt)).is_some()
            || mail_runs(state, |then| matches!(then, Then::GoOn { .. }) && then.run() == Some((task, attempt)));
        let may = match self.scene.tool.get(usize::from(tool.at)) {
            Some(Do::Await { key }) => run.answer(&crate::frame::payload::key(*key)).is_some(),
            Some(Do::Ask { .. } | Do::Progress(_) | Do::Note(_) | Do::Complete | Do::Fail) => true,
            None => false,
        };
        if may && !busy {
            actions.push(Action::Act(task, attempt, Store::Well));
            let writes = !matches!(self.scene.tool[usize::from(tool.at)], Do::Await { .. } | Do::Progress(_));
            if state.memory.faults.away > 0 && writes {
                actions.push(Action::Act(task, attempt, Store::Away));
            }
        }
        let due = matches!(run.clone().progress_due(state.now), ProgressDue::Write(_));
        if due && state.flight(Slot::Progress(task, attempt)).is_none() {
            actions.push(Action::WriteProgress(task, attempt));
        }
    }

    fn nodes(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, node) in (0..).zip(&state.nodes) {
            if self.scene.looks && (!node.host.is_empty() || may_start(state, at)) {
                let (mut host, mut watch) = (node.host.clone(), node.watch.clone());
                look(&mut host, &mut watch, &state.shelf, state.now);
                if host != node.host || watch != node.watch {
                    actions.push(Action::Look(at));
                }
            }
            let due = || state.shelf.rows().any(|row| !row.is_visible(state.now));
            if self.scene.expiry[usize::from(at)] && state.flight(Slot::Expire(at)).is_none() && due() {
                actions.push(Action::Expire(at));
            }
            // A node renews its lease before it looks for orphans.
            // A node drives one sweep at a time: core asks for that.
            let idle = !state.flights.iter().any(|(slot, _)| matches!(slot, Slot::Sweep(node, _) if *node == at))
                && !state.mail.iter().any(|mail| mail.node() == at && !mail.is_fragile());
            let sweeps =
                idle && state.memory.sweeps[usize::from(at)] < self.scene.sweeps[usize::from(at)] && state.takes_up(at);
            if sweeps && !self.orphans(state).is_empty() {
                actions.push(Action::Sweep(at));
            }
            let due =
                |lease: &Lease| !matches!(lease.clone().due::<Number>(state.own(at), Load::default()), Due::At(_));
            if node.lease.as_ref().is_some_and(due) || state.draining(at) != node.host.draining() {
                actions.push(if self.scene.slow == Some(at) { Action::Beat(at) } else { Action::Renew(at) });
            }
            if state.memory.faults.crash > 0 {
                actions.push(Action::Crash(at));
            }
        }
    }

    fn orphans(&self, state: &State) -> Vec<Arc<tokkuri_core::task::Task<Number>>> {
        crate::frame::turn::orphans(&state.shelf, state.now)
    }

    /// What comes of an action; `None` if it changes nothing.
    pub fn carry_out(&self, state: &State, action: Action) -> Option<State> {
        let next = Turn::new(&self.scene, state.clone()).make(action);
        self.met.fetch_or(next.reached.0, Ordering::Relaxed);
        (next != *state).then_some(next)
    }

    /// Whether a claim, by its number, holds in a state. False once, and true from then on: the first counterexample is enough.
    pub(crate) fn holds(&self, at: usize, state: &State) -> bool {
        if self.found.load(Ordering::Relaxed) & 1 << at != 0 || self.claims[at].holds(&self.scene, state).is_ok() {
            return true;
        }
        self.found.fetch_or(1 << at, Ordering::Relaxed);
        false
    }

    /// Whether the premise of a claim, by its number, was reached by now.
    pub(crate) fn is_reached(&self, at: usize, state: &State) -> bool {
        match self.claims[at].told {
            Told::Judged(judged) => self.met.load(Ordering::Relaxed) & judged.bit() != 0,
            Told::OfState { premise, .. } => premise(&self.scene, state),
        }
    }
}

/// Whether something is under way that may start a run on the node.
fn may_start(state: &State, node: u8) -> bool {
    let starts = |flight: &Flight| matches!(flight.procedure, Running::Create(_) | Running::TakeOver(_));
    let start = |effect: &Effect<Number>| matches!(effect, Effect::Start { .. });
    state.flights.iter().any(|(_, flight)| flight.node == node && starts(flight))
        || state.mail.iter().any(|mail| {
            matches!(&**mail, Mail::After { node: to, after, .. } if *to == node && after.effects.iter().any(start))
        })
}
