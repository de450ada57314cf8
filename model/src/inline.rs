//! A tool that asks on the request itself: core's [`Replay`], round after round, with a client that answers what it likes.
//!
//! The tool: `prepare` asks `a`; the body asks `a` as well, which it may not, then `b`, then `b` again for something else, then
//! `c`. Each round the client sends any answers it likes, to questions that it was asked or not, and brings back the answers
//! that the last reply told it to.

use std::collections::BTreeMap;
use std::sync::Arc;

use stateright::{Expectation, Model, Property};
use tokkuri_core::id::Key;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::replay::{Asked, Refused, Replay};

use crate::frame::claim::{Broken, Judged};
use crate::frame::hashed::Aside;
use crate::frame::payload::Number;

/// The names of the questions.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A call that may ask, for so many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// How many rounds at most.
    pub rounds: u8,
    /// The answers that the client chooses from.
    pub values: &'static [u8],
}

/// Between two rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    rounds: u8,
    /// What has to come back with the next round.
    given: BTreeMap<Key, Number>,
    /// The request that was surfaced first under each key.
    surfaced: [Option<Number>; 3],
    /// The first answer that the tool got under each key.
    first: [Option<Number>; 3],
    done: bool,
    /// What is broken.
    pub broken: Broken,
    /// Why.
    pub why: Aside<Option<Arc<str>>>,
    reached: Aside<u64>,
}

/// The answers of one round, by key.
pub type Answers = [Option<u8>; 3];

/// The claims that are judged here.
pub const CLAIMS: [Judged; 2] = [Judged::FirstAnswerWins, Judged::KeyNeverReused];

impl Between {
    fn breaks(&mut self, judged: Judged, why: String) {
        self.broken.add(judged);
        self.why.0.get_or_insert_with(|| why.into());
    }

    /// The tool asks. `None` if the round is over for it.
    fn ask(&mut self, replay: &mut Replay<Number>, name: usize, request: Number) -> Option<()> {
        let key = Key::new_static(NAMES[name]);
        match replay.ask(&key, request) {
            Ok(Asked::Answered(answer)) => {
                if let Some(first) = self.first[name] {
                    self.reached.0 |= Judged::FirstAnswerWins.bit();
                    if first != answer {
                        let why = format!("{key} was answered {}, and now it is {}", first.0, answer.0);
                        self.breaks(Judged::FirstAnswerWins, why);
                    }
                }
                self.first[name].get_or_insert(answer);
                Some(())
            }
            Ok(Asked::Open) => {
                if self.first[name].is_some() {
                    self.breaks(Judged::KeyNeverReused, format!("{key} was answered, and is asked again"));
                }
                None
            }
            Err(Refused::Misfit { .. } | Refused::Undeclared { .. } | Refused::KeyTaken { .. }) => None,
        }
    }

    /// The whole of the tool, from the start.
    fn run(&mut self, replay: &mut Replay<Number>) -> Option<()> {
        self.ask(replay, 0, Number(1))?;
        replay.prepared();
        let taken = replay.ask(&Key::new_static("a"), Number(9));
        self.reached.0 |= Judged::KeyNeverReused.bit();
        if !matches!(taken, Err(Refused::KeyTaken { .. })) {
            self.breaks(Judged::KeyNeverReused, "the body may ask under a key of prepare's".to_owned());
        }
        self.ask(replay, 1, Number(2))?;
        self.ask(replay, 1, Number(8))?;
        self.ask(replay, 2, Number(3))
    }
}

impl Inline {
    /// The name of the scene.
    pub const NAME: &'static str = "inline";
    /// What it is about.
    pub const ABOUT: &'static str =
        "a call that asks on the request is run again each round; answers early, double, changed and junk";

    /// What a round is, in words.
    pub fn say(answers: Answers) -> String {
        let said = NAMES.iter().zip(answers).filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
        let said: Vec<_> = said.collect();
        format!(
            "the call is sent again with {}",
            if said.is_empty() { "no answers".to_owned() } else { said.join(", ") }
        )
    }

    fn round(before: &Between, answers: Answers) -> Between {
        let mut next = before.clone();
        next.rounds += 1;
        let now = NAMES.iter().zip(answers).filter_map(|(name, value)| Some((Key::new_static(name), Number(value?))));
        let declared = Capabilities { form: true, ..Capabilities::default() };
        let mut replay = Replay::new(declared, before.given.clone(), now.collect());
        next.done = next.run(&mut replay).is_some();
        for (key, request) in replay.open() {
            let name = NAMES.iter().position(|name| name == key).unwrap_or_default();
            let first = *next.surfaced[name].get_or_insert(*request);
            if first != *request {
                next.breaks(Judged::KeyNeverReused, format!("{key} was {}, and now it is {}", first.0, request.0));
            }
        }
        next.given.clone_from(replay.given());
        next
    }
}

impl Model for Inline {
    type State = Between;
    type Action = Answers;

    fn init_states(&self) -> Vec<Between> {
        vec![Between {
            rounds: 0,
            given: BTreeMap::new(),
            surfaced: [None; 3],
            first: [None; 3],
            done: false,
            broken: Broken::default(),
            why: Aside(None),
            reached: Aside(0),
        }]
    }

    fn actions(&self, state: &Between, actions: &mut Vec<Answers>) {
        if state.done || state.rounds >= self.rounds || state.broken.any() {
            return;
        }
        let choices: Vec<Option<u8>> = std::iter::once(None).chain(self.values.iter().copied().map(Some)).collect();
        for &a in &choices {
            for &b in &choices {
                actions.extend(choices.iter().map(|&c| [a, b, c]));
            }
        }
    }

    fn next_state(&self, last: &Between, action: Answers) -> Option<Between> {
        Some(Self::round(last, action))
    }

    fn format_step(&self, _: &Between, action: Answers) -> Option<String> {
        Some(Self::say(action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always("first_answer_wins", |_, state| !state.broken.has(Judged::FirstAnswerWins)),
            always("key_never_reused", |_, state| !state.broken.has(Judged::KeyNeverReused)),
            sometimes("first_answer_wins, reached: an answer is used again", |_, state| {
                state.reached.0 & Judged::FirstAnswerWins.bit() != 0
            }),
            sometimes("key_never_reused, reached: a key is asked again", |_, state| {
                state.reached.0 & Judged::KeyNeverReused.bit() != 0
            }),
        ]
    }
}

type Condition = fn(&Inline, &Between) -> bool;

const fn always(name: &'static str, condition: Condition) -> Property<Inline> {
    Property { expectation: Expectation::Always, name, condition }
}

const fn sometimes(name: &'static str, condition: Condition) -> Property<Inline> {
    Property { expectation: Expectation::Sometimes, name, condition }
}
