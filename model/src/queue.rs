//! The places of a node's runs: core's [`Queue`], with runs that come, are called, start and go at any moment.
//!
//! What a run is told is all that the world believes: a list of what has a place and of who came when, beside the machine.

use tokkuri_core::queue::{Admitted, Queue};

use crate::frame::hashed::Hashed;
use crate::small::{Claim, Small, Verdict, claims};

/// A node with so many places, and the runs that may come to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// How many runs may have a place.
    pub limit: u8,
    /// The owner of each run.
    pub owners: Vec<u8>,
    /// How often a run that is here may come once more, or one that has gone may go once more.
    pub again: u8,
    /// How often a run that has gone may come back, as another attempt.
    pub back: u8,
    /// The claims whose premise it has to reach.
    pub reaches: &'static [&'static str],
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    queue: Hashed<Queue<u8, u8>>,
    /// Where each run is.
    runs: Vec<Run>,
    /// The runs that wait, in the order in which they came.
    line: Vec<u8>,
    /// For each owner that waits: which owners were served since it last was, or began to wait.
    served: Vec<Option<Vec<u8>>>,
    again: u8,
    back: u8,
    verdict: Verdict,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Run {
    Away,
    Waits,
    /// It has a place and was not told yet.
    Called,
    Runs,
    Gone,
}

impl Run {
    const fn has_a_place(self) -> bool {
        matches!(self, Self::Called | Self::Runs)
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A run comes, or comes once more.
    Come(u8),
    /// A run notices that it was called.
    Start(u8),
    /// A run goes: it is over, or is not wanted any more.
    Go(u8),
}

claims! {
    LimitHolds "limit_holds"
        "no more runs have a place than there are places"
        if "all places are taken";
    NoPlaceIdles "no_place_idles"
        "no run waits while a place is free"
        if "a run waits";
    TurnsGoRound "turns_go_round"
        "while an owner waits for its turn, no other owner has more than one"
        if "an owner is served while another one waits";
    FirstComeFirst "first_come_first"
        "the runs of one owner start in the order in which they came"
        if "a run starts while another one of its owner's waits";
    PlaceFreedOnce "place_freed_once"
        "a run that goes frees its own place, if it has one, for one other; one that has gone never starts"
        if "a run goes while it waits, or after it was called";
    HereOnce "here_once"
        "a run that comes once more stays where it is"
        if "a run that is here comes once more";
    NothingLeftBehind "nothing_left_behind"
        "a queue that everybody has left is as good as new"
        if "all have gone";
}

impl Small for Places {
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
        let owners = self.owners.iter().max().map_or(0, |most| usize::from(*most) + 1);
        State {
            queue: Hashed::new(Queue::new(self.limit.into())),
            runs: vec![Run::Away; self.owners.len()],
            line: Vec::new(),
            served: vec![None; owners],
            again: self.again,
            back: self.back,
            verdict: Verdict::default(),
        }
    }

    fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for (run, is) in (0..).zip(&state.runs) {
            match is {
                Run::Away => {
                    // The runs of one owner differ in nothing but their number: they come in the order of their numbers.
                    let twin =
                        |it: &usize| self.owners[*it] == self.owners[usize::from(run)] && state.runs[*it] == Run::Away;
                    if !(0..usize::from(run)).any(|it| twin(&it)) {
                        actions.push(Action::Come(run));
                    }
                }
                Run::Waits | Run::Called | Run::Runs => {
                    actions.push(Action::Go(run));
                    if *is == Run::Called {
                        actions.push(Action::Start(run));
                    }
                    if state.again > 0 {
                        actions.push(Action::Come(run));
                    }
                }
                Run::Gone => {
                    if state.again > 0 {
                        actions.push(Action::Go(run));
                    }
                    if state.back > 0 {
                        actions.push(Action::Come(run));
                    }
                }
            }
        }
    }

    fn carry_out(&self, state: &State, action: Action) -> State {
        let mut next = state.clone();
        match action {
            Action::Come(run) => self.come(&mut next, run),
            Action::Start(run) => next.runs[usize::from(run)] = Run::Runs,
            Action::Go(run) => self.go(&mut next, run),
        }
        self.judge(&mut next);
        next
    }

    fn verdict(state: &State) -> &Verdict {
        &state.verdict
    }

    fn kind(action: Action) -> &'static str {
        match action {
            Action::Come(_) => "a run comes to the queue",
            Action::Start(_) => "a run that was called starts",
            Action::Go(_) => "a run leaves the queue",
        }
    }

    fn say(&self, state: &State, action: Action) -> String {
        let name = |run: u8| format!("run {run} of owner {}", self.owners[usize::from(run)]);
        match action {
            Action::Come(run) => match state.runs[usize::from(run)] {
                Run::Away => format!("{} comes", name(run)),
                Run::Gone => format!("{} comes back", name(run)),
                Run::Waits | Run::Called | Run::Runs => format!("{} comes once more", name(run)),
            },
            Action::Start(run) => format!("{} starts", name(run)),
            Action::Go(run) => format!("{} goes", name(run)),
        }
    }
}

impl Places {
    fn come(&self, s: &mut State, run: u8) {
        let (at, owner) = (usize::from(run), self.owners[usize::from(run)]);
        let admitted = s.queue.change(|queue| queue.admit(run, owner));
        match s.runs[at] {
            was @ (Run::Waits | Run::Called | Run::Runs) => {
                s.again -= 1;
                let same = (admitted == Admitted::Waits) == (was == Run::Waits);
                s.verdict
                    .holds(Judged::HereOnce, same, || format!("run {run} is here ({was:?}), and now {admitted:?}"));
            }
            was @ (Run::Away | Run::Gone) => {
                s.back -= u8::from(was == Run::Gone);
                s.runs[at] = match admitted {
                    Admitted::Starts => Run::Runs,
                    Admitted::Waits => {
                        s.line.push(run);
                        s.served[usize::from(owner)].get_or_insert_default();
                        Run::Waits
                    }
                };
            }
        }
    }

    fn go(&self, s: &mut State, run: u8) {
        let at = usize::from(run);
        let was = std::mem::replace(&mut s.runs[at], Run::Gone);
        s.again -= u8::from(was == Run::Gone);
        let next = s.queue.change(|queue| queue.leave(&run));
        s.line.retain(|waiting| *waiting != run);
        self.wait_on(s, self.owners[at]);
        if matches!(was, Run::Waits | Run::Called) {
            s.verdict.reach(Judged::PlaceFreedOnce);
        }
        let Some(next) = next else { return };
        s.verdict.holds(Judged::PlaceFreedOnce, was.has_a_place(), || {
            format!("run {run} had no place ({was:?}), and run {next} has it now")
        });
        let waited = s.runs[usize::from(next)];
        s.verdict.holds(Judged::PlaceFreedOnce, waited == Run::Waits, || format!("run {next} is called: {waited:?}"));
        s.runs[usize::from(next)] = Run::Called;
        self.called(s, next);
    }

    /// A run has its turn.
    fn called(&self, s: &mut State, run: u8) {
        let owner = self.owners[usize::from(run)];
        let earlier = s.line.iter().find(|it| self.owners[usize::from(**it)] == owner).copied();
        if s.line.iter().any(|it| *it != run && self.owners[usize::from(*it)] == owner) {
            s.verdict.holds(Judged::FirstComeFirst, earlier == Some(run), || {
                format!("run {run} starts before run {earlier:?}, which came earlier")
            });
        }
        s.line.retain(|waiting| *waiting != run);
        s.served[usize::from(owner)] = None;
        for (other, served) in (0..).zip(&mut s.served) {
            let Some(served) = served else { continue };
            let again = served.contains(&owner);
            s.verdict.holds(Judged::TurnsGoRound, !again, || {
                format!("owner {owner} has two turns while owner {other} waits for one")
            });
            served.push(owner);
            served.sort_unstable();
        }
        self.wait_on(s, owner);
    }

    /// The owner begins to wait for its turn, or waits no more.
    fn wait_on(&self, s: &mut State, owner: u8) {
        let waits = s.line.iter().any(|run| self.owners[usize::from(*run)] == owner);
        let served = &mut s.served[usize::from(owner)];
        if waits {
            served.get_or_insert_default();
        } else {
            *served = None;
        }
    }

    fn judge(&self, s: &mut State) {
        let taken = s.runs.iter().filter(|run| run.has_a_place()).count();
        let (limit, waiting) = (usize::from(self.limit), s.line.len());
        if taken >= limit {
            s.verdict.holds(Judged::LimitHolds, taken == limit, || format!("{taken} runs have one of {limit} places"));
        }
        if waiting > 0 {
            s.verdict.holds(Judged::NoPlaceIdles, taken >= limit, || {
                format!("{waiting} wait, and {taken} of {limit} places are taken")
            });
        }
        if taken + waiting == 0 && !s.runs.contains(&Run::Away) {
            let as_new = *s.queue == Queue::new(limit);
            s.verdict.holds(Judged::NothingLeftBehind, as_new, || format!("all have left: {:?}", *s.queue));
        }
    }
}
