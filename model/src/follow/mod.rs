//! Who follows a task, and what they are shown of it: core's [`Table`](tokkuri_core::follow::Table) and
//! [`Turns`](tokkuri_core::follow::Turns) beside the shipped store and procedures.
//!
//! One node, where tasks run and are followed, and everybody else, who changes the same rows. A change that is made here is read
//! here, sooner or later; one that is made elsewhere may be hinted at, and is otherwise found by a look at the store. Readings
//! arrive in any order. Whoever follows joins first and reads then, as the engine does it, and takes what it is owed whenever it
//! likes. That two writers meet is the frame's business: a change is one step here.

mod judge;
mod scene;
mod state;
mod turn;

pub use judge::{CLAIMS, Judged};
pub use scene::{Change, Deed, Listener, Listeners};
pub use state::State;

use tokkuri_core::id::NodeId;
use tokkuri_core::store::{Outcome, Request, Shelf};

use crate::follow::state::{Ask, Mail, Memory, Reading, Stage, Subscriber};
use crate::follow::turn::Turn;
use crate::frame::hashed::Hashed;
use crate::frame::payload::{Number, T0, Who, draft, task_id, task_number};
use crate::small::{Claim, Small, Verdict};

/// The node that the world is about.
const HERE: NodeId = NodeId(1);
/// Any other.
const ELSEWHERE: NodeId = NodeId(2);

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The next change of a lane is made.
    Change(u8),
    /// A listener follows its tasks.
    Join(u8),
    /// It reads one of them from the store.
    Ask(u8, u8),
    /// The store is not there when it does.
    AskInVain(u8, u8),
    /// What it read arrives.
    Answer(u8, u8),
    /// It can take something.
    Take(u8),
    /// It goes.
    Leave(u8),
    /// Mail arrives.
    Deliver(u8),
    /// Mail arrives, and will arrive again.
    Double(u8),
    /// The node looks at the store. What it reads is on its way.
    Look,
    /// What has expired is removed; on this node, or elsewhere.
    Expire(bool),
    /// Time passes.
    Wait,
}

impl Small for Listeners {
    type State = State;
    type Action = Action;

    const CLAIMS: &'static [Claim] = CLAIMS;

    fn name(&self) -> &'static str {
        self.name
    }

    fn reaches(&self) -> &'static [&'static str] {
        self.reaches
    }

    fn beginning(&self) -> State {
        let mut shelf = Shelf::<Number>::default();
        let tasks = self.runs_here.len();
        let mut history = vec![Vec::new(); tasks];
        for (task, here) in (0..).zip(&self.runs_here) {
            // What a lane creates is not there yet.
            if !self.lanes.iter().flatten().any(|change| (change.task, change.deed) == (task, Deed::Create)) {
                let draft = Box::new(draft(task, Who::Ann, if *here { HERE } else { ELSEWHERE }, false));
                let inserted = shelf.carry_out(T0, Request::Insert { draft, limit: None });
                let Outcome::Inserted(row) = inserted.outcome else { unreachable!("the shelf was empty") };
                history[usize::from(task)].push(row);
            }
        }
        State {
            now: T0,
            shelf: Hashed::new(shelf),
            table: Hashed::new(tokkuri_core::follow::Table::default()),
            mail: Vec::new(),
            listeners: self.listeners.iter().map(|it| Hashed::new(Subscriber::new(it.tasks.len()))).collect(),
            memory: Hashed::new(Memory {
                made: vec![0; self.lanes.len()],
                waited: 0,
                doubles: self.doubles,
                away: self.away,
                history,
                read: vec![Reading::default(); tasks],
            }),
            verdict: Verdict::default(),
        }
    }

    fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for (lane, made) in (0..).zip(&state.memory.made) {
            if usize::from(*made) < self.lanes[usize::from(lane)].len() {
                actions.push(Action::Change(lane));
            }
        }
        for at in 0..self.listeners.len() as u8 {
            self.of_listener(state, at, actions);
        }
        for at in 0..state.mail.len() as u8 {
            actions.push(Action::Deliver(at));
            if state.memory.doubles > 0 {
                actions.push(Action::Double(at));
            }
        }
        if !state.table.is_empty() {
            actions.push(Action::Look);
        }
        if state.shelf.rows().any(|row| !row.is_visible(state.now)) {
            actions.extend(
                [false, true]
                    .into_iter()
                    .zip(self.expiry)
                    .filter_map(|(here, may)| may.then_some(Action::Expire(here))),
            );
        }
        if usize::from(state.memory.waited) < self.waits.len() {
            actions.push(Action::Wait);
        }
    }

    fn carry_out(&self, state: &State, action: Action) -> State {
        Turn::new(self, state.clone()).make(action)
    }

    fn verdict(state: &State) -> &Verdict {
        &state.verdict
    }

    fn kind(action: Action) -> &'static str {
        match action {
            Action::Change(_) => "a followed task changes",
            Action::Join(_) => "somebody follows tasks",
            Action::Ask(..) | Action::AskInVain(..) | Action::Answer(..) => "a follower's first reading goes on",
            Action::Take(_) => "a follower takes what it is owed",
            Action::Leave(_) => "a follower goes",
            Action::Deliver(_) => "a reading for followers arrives",
            Action::Double(_) => "a reading for followers arrives twice",
            Action::Look => "a node looks at the store for its followers",
            Action::Expire(_) => "followed tasks that have expired are removed",
            Action::Wait => "time passes for followers",
        }
    }

    fn say(&self, state: &State, action: Action) -> String {
        let who = |at: u8| {
            let who = match self.listeners[usize::from(at)].who {
                Who::Ann => "ann",
                Who::AnnUnscoped => "ann without the scope",
                Who::Bob => "bob",
            };
            format!("listener {at} ({who})")
        };
        let task = |at: u8, nth: u8| self.listeners[usize::from(at)].tasks[usize::from(nth)];
        match action {
            Action::Change(lane) => {
                let change = self.lanes[usize::from(lane)][usize::from(state.memory.made[usize::from(lane)])];
                let place = if change.here { "here" } else { "elsewhere" };
                format!("{place}: {:?} task {}", change.deed, change.task)
            }
            Action::Join(at) => format!("{} follows {:?}", who(at), self.listeners[usize::from(at)].tasks),
            Action::Ask(at, nth) => format!("{} reads task {}", who(at), task(at, nth)),
            Action::AskInVain(at, nth) => format!("{} reads task {}, and the store is away", who(at), task(at, nth)),
            Action::Answer(at, nth) => format!("what {} read of task {} arrives", who(at), task(at, nth)),
            Action::Take(at) => format!("{} takes what it is owed", who(at)),
            Action::Leave(at) => format!("{} goes", who(at)),
            Action::Deliver(at) => format!("{} arrives", mail(&state.mail[usize::from(at)])),
            Action::Double(at) => format!("{} arrives, and will arrive again", mail(&state.mail[usize::from(at)])),
            Action::Look => "the node looks at the store".to_owned(),
            Action::Expire(true) => "the node removes what has expired".to_owned(),
            Action::Expire(false) => "another node removes what has expired".to_owned(),
            Action::Wait => format!("{} ms pass", self.waits[usize::from(state.memory.waited)]),
        }
    }
}

impl Listeners {
    fn of_listener(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let listener = &self.listeners[usize::from(at)];
        let it = &state.listeners[usize::from(at)];
        match it.stage {
            Stage::Away => {
                // Listeners that differ in nothing but their number come in the order of their numbers.
                let twin =
                    |other: usize| self.listeners[other] == *listener && state.listeners[other].stage == Stage::Away;
                // An id cannot be guessed: somebody has to have seen the task.
                let known = listener.tasks.iter().all(|task| !state.memory.history[usize::from(*task)].is_empty());
                if known && !(0..usize::from(at)).any(twin) {
                    actions.push(Action::Join(at));
                }
                return;
            }
            Stage::Over => return,
            Stage::Reads | Stage::Listens => {}
        }
        for (nth, ask) in (0..).zip(&it.asks) {
            match ask {
                Ask::Not => {
                    actions.push(Action::Ask(at, nth));
                    if state.memory.away > 0 {
                        actions.push(Action::AskInVain(at, nth));
                    }
                }
                Ask::Asked(_) => actions.push(Action::Answer(at, nth)),
                Ask::Answered => {}
            }
        }
        if (it.stage == Stage::Listens || listener.eager) && !it.sleeps {
            actions.push(Action::Take(at));
        }
        if listener.leaves {
            actions.push(Action::Leave(at));
        }
    }
}

fn mail(mail: &Mail) -> String {
    let task = task_number(mail.id());
    match mail {
        Mail::Hint { revision: Some(revision), .. } => format!("the hint that task {task} has revision {}", revision.0),
        Mail::Hint { revision: None, .. } => format!("the hint that task {task} is gone"),
        Mail::Reading { seen: tokkuri_core::procedure::Seen::Gone, .. } => {
            format!("the reading that task {task} is gone")
        }
        Mail::Reading { seen: tokkuri_core::procedure::Seen::Task(row), .. } => {
            format!("the reading of task {task}, {} at revision {},", row.status().as_str(), row.revision.0)
        }
    }
}

/// The place of a task among those of a listener.
fn nth(listener: &Listener, id: tokkuri_core::id::TaskId) -> usize {
    listener.tasks.iter().position(|task| task_id(*task) == id).expect("it follows it")
}
