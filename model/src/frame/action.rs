//! What can happen in a world, and how to say it.

use std::fmt::Write as _;

use tokkuri_core::id::Attempt;
use tokkuri_core::procedure::{Local, Seen, Step};
use tokkuri_core::store::{Outcome, Request as Ask};
use tokkuri_core::task::Task;

use crate::frame::payload::{Number, key, task_number};
use crate::frame::scene::{Do, Scene, What};
use crate::frame::state::{Mail, Renewal, Slot, State, Then};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client sends a request, and its first question to the store is answered. (What lies between the two is nobody's to see.)
    Begin(u8, Store),
    /// The reply to a create reaches its client.
    Hear(u8),
    /// The reply to a create does not reach its client, and the node notices: the task is to be cancelled.
    Unheard(u8),
    /// A request goes one step on.
    Step(Slot, Store),
    /// A client's request is dropped half-way.
    Drop(Slot),
    /// Mail arrives.
    Deliver(u8),
    /// Mail arrives, and will arrive again.
    Double(u8),
    /// A tool does the next thing that it does; if it writes, the first question to the store is answered.
    Act(u8, Attempt, Store),
    /// A tool notices that it has to stop.
    Stop(u8, Attempt),
    /// A run's progress is written.
    WriteProgress(u8, Attempt),
    /// A node looks at the store for its runs, and observes what it finds.
    Look(u8),
    /// A node looks for expired rows.
    Expire(u8),
    /// A node looks for orphans.
    Sweep(u8),
    /// A node renews its lease and is answered at once, or finds that it is lost.
    Renew(u8),
    /// The node whose renewals take their time does what is due about its lease.
    Beat(u8),
    /// The store carries a renewal out.
    Carry(u8),
    /// A node is told what came of its renewal.
    Told(u8),
    /// An operator drains a node, or takes that back.
    Operate,
    /// A node dies and comes back as another.
    Crash(u8),
    /// Time passes.
    Wait,
}

/// How the store takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// It carries it out.
    Well,
    /// It is not there.
    Away,
    /// It carries it out, and its answer is lost.
    Mute,
    /// It does not carry it out, and cannot say so.
    Unsure,
}

/// Says what happens, in plain words.
pub fn describe(scene: &Scene, state: &State, action: Action) -> String {
    match action {
        Action::Begin(request, store) => {
            let request = &scene.requests[usize::from(request)];
            let who = match request.who {
                crate::frame::payload::Who::Ann => "ann",
                crate::frame::payload::Who::AnnUnscoped => "ann (with a token that lacks the scope)",
                crate::frame::payload::Who::Bob => "bob",
            };
            format!("{who} sends to node {}: {}{}", request.door, what(request.what), how(store))
        }
        Action::Hear(task) => format!("the create reply of task {task} reaches its client"),
        Action::Unheard(task) => format!("the create reply of task {task} is lost: its node sets out to cancel it"),
        Action::Step(slot, store) => step(scene, state, slot, store),
        Action::Drop(slot) => format!("the client goes away: {} is dropped half-way", name(scene, slot)),
        Action::Deliver(at) => mail(&state.mail[usize::from(at)], "arrives"),
        Action::Double(at) => mail(&state.mail[usize::from(at)], "arrives, and will arrive again"),
        Action::Act(task, attempt, store) => {
            let tool = state.tools.iter().find(|tool| (tool.task, tool.attempt) == (task, attempt));
            let act = tool.and_then(|tool| scene.tool.get(usize::from(tool.at)));
            let act = match act {
                Some(Do::Ask { key: number, request }) => format!("asks {request} under the key {}", key(*number)),
                Some(Do::Await { key: number }) => format!("gets the answer to {}", key(*number)),
                Some(Do::Progress(progress)) => format!("reports progress {progress}"),
                Some(Do::Note(slot)) => format!("writes its slot: {slot}"),
                Some(Do::Complete) => "returns a result".to_owned(),
                Some(Do::Fail) => "returns an error".to_owned(),
                None => "does nothing".to_owned(),
            };
            format!("{} {act}{}", run(task, attempt), how(store))
        }
        Action::Stop(task, attempt) => format!("{} notices that it has to stop, and does", run(task, attempt)),
        Action::WriteProgress(task, attempt) => format!("the progress of {} is to be written", run(task, attempt)),
        Action::Look(node) => format!("node {node} looks at the store for its runs"),
        Action::Expire(node) => format!("node {node} sets out to remove what has expired"),
        Action::Sweep(node) => format!("node {node} sets out to take over orphans"),
        Action::Renew(node) => format!("node {node} renews its lease, or stops everything if it ran out"),
        Action::Beat(node) => format!("node {node} does what is due about its lease"),
        Action::Carry(at) => {
            let renewal = &state.renewals[usize::from(at)];
            format!("the store carries out what node {} asked about its lease", renewal.node())
        }
        Action::Told(at) => format!(
            "node {} is told of its lease: {}",
            state.renewals[usize::from(at)].node(),
            leased(&state.renewals[usize::from(at)])
        ),
        Action::Operate => match (scene.drain, state.memory.operated) {
            (Some((node, ms)), 0) => format!("an operator drains node {node}, with {ms} ms until it hands over"),
            (Some((node, _)), _) => format!("an operator takes the drain of node {node} back"),
            (None, _) => "nothing happens".to_owned(),
        },
        Action::Crash(node) => format!("node {node} dies and comes back as another"),
        Action::Wait => {
            let ms = scene.waits.get(usize::from(state.memory.waited)).copied().unwrap_or(0);
            format!("{ms} ms pass")
        }
    }
}

fn leased(renewal: &Renewal) -> &'static str {
    match renewal {
        Renewal::Answered { answer, .. } if answer.outcome == Outcome::LeaseLost => "it is lost",
        Renewal::Answered { .. } => "it holds",
        Renewal::Asked { .. } => "nothing yet",
    }
}

fn what(what: What) -> String {
    match what {
        What::Create { task, .. } => format!("create task {task}"),
        What::Get { task } => format!("read task {task}"),
        What::Answer { task, values } => {
            let mut text = format!("answer task {task}:");
            for (number, value) in (0..).zip(values) {
                if let Some(value) = value {
                    let _ = write!(text, " {} = {value}", key(number));
                }
            }
            text
        }
        What::AnswerUnknown { task } => format!("answer task {task}: a question that nobody asks"),
        What::Cancel { task } => format!("cancel task {task}"),
    }
}

/// The name of a request under way.
pub fn name(scene: &Scene, slot: Slot) -> String {
    match slot {
        Slot::Request(request) => {
            let it = &scene.requests[usize::from(request)];
            format!("{}'s request {request} ({})", it.who.name(), what(it.what))
        }
        Slot::Abandon(task) => format!("the cancel of the unheard-of task {task}"),
        Slot::Run(task, attempt) => format!("the write of {}", run(task, attempt)),
        Slot::Progress(task, attempt) => format!("the progress write of {}", run(task, attempt)),
        Slot::Expire(node) => format!("the expiry of node {node}"),
        Slot::Sweep(node, number) => format!("sweep {number} of node {node}"),
    }
}

fn run(task: u8, attempt: Attempt) -> String {
    format!("run {} of task {task}", attempt.0)
}

fn step(scene: &Scene, state: &State, slot: Slot, store: Store) -> String {
    let what = match state.flight(slot).map(|flight| &flight.waits) {
        Some(Step::Store(request)) => asks(request),
        Some(Step::Pause { ms }) => format!("waits {ms} ms"),
        Some(Step::Host(Local::Reserve { attempt, .. })) => format!("reserves a place for run {}", attempt.0),
        Some(Step::Host(Local::Abandon { attempt, .. })) => format!("gives back the place of run {}", attempt.0),
        Some(Step::Done { .. }) | None => "does nothing".to_owned(),
    };
    format!("{} {what}{}", name(scene, slot), how(store))
}

const fn how(store: Store) -> &'static str {
    match store {
        Store::Well => "",
        Store::Away => ", but the store is away",
        Store::Mute => ", which the store does, but its answer is lost",
        Store::Unsure => ", which the store does not do, but cannot say so",
    }
}

fn asks(request: &Ask<Number>) -> String {
    match request {
        Ask::Load { .. } => "loads the task".to_owned(),
        Ask::Insert { .. } => "inserts the task".to_owned(),
        Ask::Commit { expected, task } => {
            format!("commits {} over revision {}", says(task), expected.0)
        }
        Ask::Count { .. } => "counts the owner's live tasks".to_owned(),
        Ask::Due { .. } => "asks what is due".to_owned(),
        Ask::Remove { rows } => format!("removes {} rows", rows.len()),
        Ask::Orphans { .. } => "asks for orphans".to_owned(),
        Ask::TouchedSince { .. } => "asks what changed".to_owned(),
        Ask::Page { .. } => "asks for a page".to_owned(),
        Ask::Join { .. } => "joins".to_owned(),
        Ask::Renew { .. } => "renews the lease".to_owned(),
        Ask::Resign { .. } => "resigns".to_owned(),
        Ask::Nodes => "asks for the nodes".to_owned(),
        Ask::Drain { drain: Some(ms), .. } => format!("drains the node, with {ms} ms until it hands over"),
        Ask::Drain { drain: None, .. } => "takes the node's drain back".to_owned(),
    }
}

fn says(task: &Task<Number>) -> String {
    let mut text = format!("{} (revision {}, attempt {}", task.status().as_str(), task.revision.0, task.attempt.0);
    for (key, question) in task.live().into_iter().flat_map(|live| &live.questions) {
        let _ = match question.answer {
            Some(answer) => write!(text, ", {key}: {} answered {}", question.request.0, answer.0),
            None => write!(text, ", {key}: {} asked", question.request.0),
        };
    }
    text.push(')');
    text
}

fn mail(mail: &Mail, how: &str) -> String {
    let task = task_number(mail.task());
    let seen = |seen: &Seen<Number>| match seen {
        Seen::Task(task) => says(task),
        Seen::Gone => "gone".to_owned(),
    };
    match mail {
        Mail::After { node, after, then } => {
            let over = if matches!(then, Then::End(..)) { ", and the run is over" } else { "" };
            let effects = after.effects.len();
            let seen = seen(&after.seen);
            format!("node {node} carries out {effects} effects on task {task}, which is {seen}{over}")
        }
        Mail::Signal { node, revision: Some(revision), .. } => {
            format!("the signal to node {node} that task {task} has revision {} {how}", revision.0)
        }
        Mail::Signal { node, .. } => format!("the signal to node {node} that task {task} is gone {how}"),
        Mail::Seen { node, seen: it, .. } => format!("node {node}'s reading of task {task}, {}, {how}", seen(it)),
    }
}
