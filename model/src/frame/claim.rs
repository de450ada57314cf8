//! What must always hold, by name.
//!
//! Some claims are about a state: each is a function of it. Others are about something that happens (a commit, a reply, a
//! reading): they are judged while it happens (`judge`), and what was broken is written into the state.

use tokkuri_core::id::NodeId;
use tokkuri_core::lease::Due;
use tokkuri_core::store::Load;
use tokkuri_core::task::{Phase, Task};

use crate::frame::look;
use crate::frame::payload::{Number, task_id, task_number};
use crate::frame::scene::Scene;
use crate::frame::state::{Heard, Mail, Slot, State, Tool};
use crate::frame::turn::orphans;

/// One claim, with what shows that it is not an empty one.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// The name of its premise, as a `sometimes`.
    pub premise: &'static str,
    /// How it is told.
    pub told: Told,
}

/// How a claim is told to hold.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// It was judged while things happened.
    Judged(Judged),
    /// It is a function of the state.
    OfState {
        /// Whether it holds, and if not, why.
        holds: fn(&Scene, &State) -> Result<(), String>,
        /// Whether its premise is met.
        premise: fn(&Scene, &State) -> bool,
    },
}

impl Claim {
    /// Whether it holds in a state, and if not, why.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn holds(&self, scene: &Scene, state: &State) -> Result<(), String> {
        match self.told {
            Told::Judged(judged) if state.broken.has(judged) => {
                Err(state.why.0.as_deref().unwrap_or(self.says).to_owned())
            }
            Told::Judged(_) => Ok(()),
            Told::OfState { holds, .. } => holds(scene, state),
        }
    }
}

/// Claims that are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken(u64);

impl Broken {
    /// Whether this one is.
    pub const fn has(self, judged: Judged) -> bool {
        self.0 & judged.bit() != 0
    }

    /// Whether any is.
    pub const fn any(self) -> bool {
        self.0 != 0
    }

    /// Breaks one.
    pub const fn add(&mut self, judged: Judged) {
        self.0 |= judged.bit();
    }
}

macro_rules! judged {
    ($($variant:ident $name:literal $says:literal if $premise:literal;)*) => {
        /// The claims that are judged while things happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Judged { $(#[doc = $says] $variant,)* }

        impl Judged {
            const CLAIMS: &[Claim] = &[$(Claim {
                name: $name,
                says: $says,
                premise: concat!($name, ", reached: ", $premise),
                told: Told::Judged(Self::$variant),
            },)*];

            /// The claim.
            pub fn claim(self) -> Claim {
                Self::CLAIMS[self as usize]
            }

            /// Its bit.
            pub const fn bit(self) -> u64 {
                1 << self as u64
            }
        }
    };
}

judged! {
    TerminalIsFinal "terminal_is_final"
        "once completed, failed or cancelled, a task's status, result and error never change"
        if "a task has ended and somebody still writes to it";
    CancelIsFinal "cancel_is_final"
        "after a cancel of a live task was acknowledged, every later read on every node says cancelled"
        if "a task is read after its cancel was acknowledged";
    OneOutcome "one_outcome"
        "a result, a cancel, an expiry and a take-over that race leave one outcome: one of them is told that it ended the task"
        if "an end comes second and is told so";
    FirstAnswerWins "first_answer_wins"
        "a key is answered at most once; later, duplicate, unknown or late answers change nothing and are acknowledged"
        if "an answer comes second, late, or to no question";
    KeyNeverReused "key_never_reused"
        "no two requests are ever surfaced under one key of one task; asking a key again returns the first answer"
        if "a key is asked again";
    InputRequiredIffPending "input_required_iff_pending"
        "status is input_required exactly when a question is outstanding and the task is live"
        if "a task with an outstanding question is read";
    CreatedIsDurable "created_is_durable"
        "a create reply implies a stored, readable task"
        if "a create is answered with a task";
    OneLiveAttempt "one_live_attempt"
        "at most one attempt of a task can write, and each is started once; a stale attempt's writes are refused"
        if "a stale attempt writes and is refused";
    QuotaHolds "quota_holds"
        "live tasks of one owner never exceed the limit, however many nodes admit at once"
        if "the last place of an owner is taken";
    QuotaFreedOnce "quota_freed_once"
        "every end of a task frees exactly one place: a create is refused only if the owner has as many live tasks as it may"
        if "a create is refused at the limit, or takes a place that an end has freed";
    RejectionIsInert "rejection_is_inert"
        "a refused command changes nothing and has no effects, unless it says that an earlier try may have been carried out"
        if "a command is refused";
    StrangerSeesNothing "stranger_sees_nothing"
        "to anyone but the owner a task is indistinguishable from one that never existed"
        if "a stranger asks for a task that is there";
    ScopeNeeded "scope_needed"
        "reading, answering and cancelling need the scopes that the tool needed when the task started"
        if "an owner without the scope asks for a task that is there";
    RevisionMonotonic "revision_monotonic"
        "revision and lastUpdatedAt never go back; neither a reader nor a run of a node sees an older state after a newer one"
        if "a reading arrives that is older than what is known";
    TtlNotEarly "ttl_not_early"
        "a task is readable until createdAt + ttlMs, and its outcome for a while; after it, every method gives the same not-found answer"
        if "a task is asked for after its time";
    EffectsAfterCommit "effects_after_commit"
        "no effect of a change happens before the change is stored"
        if "a change has effects";
    OrphanEnds "orphan_ends"
        "a task whose node's lease ran out is failed or run again by the next sweep"
        if "a sweep finds an orphan";
    LeaseStaysLost "lease_stays_lost"
        "a lease that ran out never holds again, and a node that lost it goes on as another"
        if "a node asks for a lease that has run out, or has lost it";
    DrainLosesNothing "drain_loses_nothing"
        "a node that drains takes nothing over, and what it hands over runs elsewhere"
        if "a task is handed over";
    RunsOnce "runs_once"
        "a tool that must not run twice is begun once, whatever becomes of its node"
        if "a tool that must not run twice was begun, and its node drains or is lost";
    StopIsTrue "stop_is_true"
        "a run is stopped only for a reason that the store confirms"
        if "a run is told to stop";
}

/// Every claim of the frame.
pub fn all() -> Vec<Claim> {
    Judged::CLAIMS.iter().chain(OF_STATE).copied().collect()
}

const OF_STATE: &[Claim] = &[
    Claim {
        name: "no_lost_wakeup",
        says: "whatever answer is stored, one look at the store later the run that waits for it has it, signal or not",
        premise: "no_lost_wakeup, reached: an answer is stored that its run does not know of",
        told: Told::OfState {
            holds: |_, state| owed(state, false),
            premise: |_, state| is_behind(state, |row| row.live().is_some()),
        },
    },
    Claim {
        name: "cancel_reaches_run",
        says: "the run of a task that was cancelled, expired or taken over is told to stop within one look, if every signal is lost",
        premise: "cancel_reaches_run, reached: a task has ended and its run does not know",
        told: Told::OfState {
            holds: |_, state| owed(state, true),
            premise: |_, state| is_behind(state, |row| matches!(row.phase, Phase::Cancelled)),
        },
    },
    Claim {
        name: "no_ghost",
        says: "a task whose create reply was lost, or could not be given, is cancelled",
        premise: "no_ghost, reached: a task that nobody heard of was cancelled",
        told: Told::OfState { holds: no_ghost, premise: |_, state| ghosts(state).next().is_some() },
    },
    Claim {
        name: "live_is_run",
        says: "a live task whose node lives is run by it: no run ends, is stopped or goes missing without an end of its task",
        premise: "live_is_run, reached: a task is run, and nothing is under way for it",
        told: Told::OfState { holds: live_is_run, premise: |_, state| !state.tools.is_empty() },
    },
    Claim {
        name: "lease_loss_stops_runs",
        says: "once a node's lease ran out in the store, the node knows by its own clock, and nothing of that incarnation runs on",
        premise: "lease_loss_stops_runs, reached: a lease has run out in the store, and a run of its node was not told yet",
        told: Told::OfState { holds: lease_loss_stops_runs, premise: |_, state| lost(state).next().is_some() },
    },
    Claim {
        name: "living_left_alone",
        says: "a task whose node's lease holds is never taken for an orphan",
        premise: "living_left_alone, reached: time has passed, and a task runs on a node that lives",
        told: Told::OfState {
            holds: living_left_alone,
            premise: |scene, state| {
                let lives = |row: &Task<Number>| row.live().is_some() && state.is_leased(row.node);
                scene.has_leases() && state.memory.waited > 0 && state.shelf.rows().any(|row| lives(row))
            },
        },
    },
    Claim {
        name: "drained_is_done",
        says: "a node that the store calls drained runs nothing and begins nothing: it can be stopped, and nothing is lost",
        premise: "drained_is_done, reached: a node is drained",
        told: Told::OfState { holds: drained_is_done, premise: |_, state| drained(state).next().is_some() },
    },
    Claim {
        name: "place_given_back",
        says: "a place that was reserved for a run which was not stored, or has ended, is given back",
        premise: "place_given_back, reached: a node has no run and nothing under way",
        told: Told::OfState {
            holds: place_given_back,
            premise: |_, state| {
                (0..).zip(&state.nodes).any(|(at, node)| node.host.is_empty() && is_quiet(state, at, None))
            },
        },
    },
];

/// After one look at the store, every tool that runs has what it is owed: stops if `stops`, else answers.
fn owed(state: &State, stops: bool) -> Result<(), String> {
    for tool in state.tools.iter().filter(|tool| !tool.ending) {
        let node = &state.nodes[usize::from(tool.node)];
        // A node whose lease ran out stops all its runs by its own clock.
        if node.id != tool.incarnation || !state.trusts(tool.node) {
            continue;
        }
        let id = task_id(tool.task);
        let row = state.shelf.row(state.now, id);
        let known = node.host.run(id).filter(|run| run.attempt() == tool.attempt);
        let up_to_date = match (row, known.and_then(|run| run.seen())) {
            (Some(row), Some(seen)) => row.revision == seen.revision,
            (_, None) | (None, _) => false,
        };
        let mut looked = None;
        if !up_to_date {
            let mut node = tokkuri_core::host::Host::clone(&node.host);
            look(&mut node, &mut state.nodes[usize::from(tool.node)].watch.clone(), &state.shelf, state.now);
            looked = Some(node);
        }
        let host = looked.as_ref().unwrap_or(&node.host);
        let run = host.run(id).filter(|run| run.attempt() == tool.attempt);
        let stop = match run {
            Some(run) => run.stop().is_some(),
            None => true,
        };
        let over = row.is_none_or(|row| row.live().is_none() || row.attempt != tool.attempt);
        if stops {
            if over && !stop {
                return Err(format!(
                    "run {} of task {} is not told to stop by a look at the store, though its task is {}",
                    tool.attempt.0,
                    tool.task,
                    row.map_or("gone", |row| row.status().as_str())
                ));
            }
        } else if let (Some(row), Some(run), false) = (row, run, over) {
            for (name, question) in row.live().into_iter().flat_map(|live| &live.questions) {
                if question.answer.is_some() && run.answer(name) != question.answer.as_ref() {
                    return Err(format!(
                        "run {} of task {} does not get the answer to {name}",
                        tool.attempt.0, tool.task
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The nodes that live and are called drained.
fn drained(state: &State) -> impl Iterator<Item = NodeId> {
    let nodes = state.nodes.iter().filter_map(|node| state.shelf.nodes().get(node.id));
    nodes.filter(|node| node.is_alive(state.now) && node.is_drained()).map(|node| node.node.id)
}

fn drained_is_done(_: &Scene, state: &State) -> Result<(), String> {
    for node in drained(state) {
        if let Some(tool) = state.tools.iter().find(|tool| tool.incarnation == node && tool.began) {
            return Err(format!(
                "node {} is drained, and run {} of task {} is alive",
                node.0, tool.attempt.0, tool.task
            ));
        }
    }
    Ok(())
}

/// Whether some tool's row is newer than what its monitor knows.
fn is_behind(state: &State, also: impl Fn(&tokkuri_core::task::Task<Number>) -> bool) -> bool {
    state.tools.iter().any(|tool| {
        let run = state.nodes[usize::from(tool.node)].host.run(task_id(tool.task));
        let known = run.and_then(|run| run.seen()).map(|seen| seen.revision);
        state.row(task_id(tool.task)).is_some_and(|row| known.is_some_and(|known| known < row.revision) && also(row))
    })
}

/// Tasks that nobody heard of and that nothing is under way for any more.
fn ghosts(state: &State) -> impl Iterator<Item = u8> {
    (0..).zip(&state.memory.tasks).filter_map(|(task, memory)| {
        let over = state.flight(Slot::Abandon(task)).is_none();
        (memory.reply == Heard::Lost && over && state.row(task_id(task)).is_some()).then_some(task)
    })
}

fn no_ghost(_: &Scene, state: &State) -> Result<(), String> {
    for task in ghosts(state) {
        if state.shelf.row(state.now, task_id(task)).is_some_and(|row| row.live().is_some()) {
            return Err(format!("nobody was told of task {task}, and it lives on"));
        }
    }
    Ok(())
}

/// Whether nothing of the node's own is under way (for one task, if given) that may still start or end a run.
fn is_quiet(state: &State, node: u8, task: Option<u8>) -> bool {
    let flights = state.flights.iter().any(|(slot, flight)| {
        flight.node == node
            && match slot {
                Slot::Request(_) => true,
                Slot::Sweep(..) => true,
                Slot::Run(it, _) => task.is_none_or(|task| task == *it),
                Slot::Abandon(_) | Slot::Progress(..) | Slot::Expire(_) => false,
            }
    });
    let mail = state.mail.iter().any(|mail| {
        matches!(&**mail, Mail::After { node: to, after, .. }
            if *to == node && task.is_none_or(|task| after.id == task_id(task)))
    });
    !flights && !mail
}

fn live_is_run(_: &Scene, state: &State) -> Result<(), String> {
    for row in state.shelf.rows().filter(|row| row.live().is_some() && row.is_visible(state.now)) {
        let Some((at, _)) = (0..).zip(&state.nodes).find(|(_, node)| node.id == row.node) else { continue };
        let task = task_number(row.id) as u8;
        let is_run = state.tools.iter().any(|tool| (tool.task, tool.attempt) == (task, row.attempt));
        // Nobody can name it, and the store failed while it was to be cancelled: its time to live ends it.
        let stranded = state.memory.tasks[usize::from(task)].reply == Heard::Stranded;
        if !is_run && !stranded && state.trusts(at) && is_quiet(state, at, Some(task)) {
            return Err(format!("task {task} is {}, its node {at} lives, and nobody runs it", row.status().as_str()));
        }
    }
    Ok(())
}

/// Tools of incarnations that have lost their lease, and were not told so.
fn lost(state: &State) -> impl Iterator<Item = &Tool> {
    let has_leases = state.nodes.iter().all(|node| node.lease.is_some());
    state.tools.iter().filter(move |tool| {
        let run = || state.nodes[usize::from(tool.node)].host.run(task_id(tool.task));
        has_leases
            && !tool.ending
            && !state.is_leased(tool.incarnation)
            && run().is_some_and(|run| run.attempt() == tool.attempt && run.stop().is_none())
    })
}

/// The node does what is due about its lease, whatever the store answers: then the runs are stopped.
fn lease_loss_stops_runs(_: &Scene, state: &State) -> Result<(), String> {
    for tool in lost(state) {
        let node = &state.nodes[usize::from(tool.node)];
        let mut lease = node.lease.clone();
        let due = lease.as_mut().map(|lease| lease.due::<Number>(state.own(tool.node), Load::default()));
        let mut host = node.host.clone();
        if due == Some(Due::Lost) {
            host.rejoin(NodeId(u64::MAX));
        }
        if host.run(task_id(tool.task)).is_some_and(|run| run.stop().is_none()) {
            return Err(format!(
                "the lease of node {} has run out, and it lets run {} of task {} go on",
                tool.node, tool.attempt.0, tool.task
            ));
        }
    }
    Ok(())
}

fn living_left_alone(scene: &Scene, state: &State) -> Result<(), String> {
    if !scene.has_leases() {
        return Ok(());
    }
    match orphans(&state.shelf, state.now).iter().find(|orphan| state.is_leased(orphan.node)) {
        Some(orphan) => Err(format!("task {} counts as lost while its node lives", task_number(orphan.id))),
        None => Ok(()),
    }
}

fn place_given_back(_: &Scene, state: &State) -> Result<(), String> {
    for (at, node) in (0..).zip(&state.nodes) {
        if node.host.is_empty() || !is_quiet(state, at, None) {
            continue;
        }
        for (id, run) in node.host.runs() {
            let is_run = state
                .tools
                .iter()
                .any(|tool| (task_id(tool.task), tool.attempt) == (*id, run.attempt()) && tool.node == at);
            if !is_run {
                let task = task_number(*id);
                return Err(format!(
                    "node {at} keeps a place for run {} of task {task}, which it does not run",
                    run.attempt().0
                ));
            }
        }
    }
    Ok(())
}
