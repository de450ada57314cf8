//! A tool that asks on the request itself: core's [`Replay`], round after round, with a client that answers what it likes.
//!
//! The tool: `prepare` asks `a`; the body asks `a` as well, which it may not, then `b`, then `b` again for something else, then
//! `c`. Each round the client sends any answers it likes, to questions that it was asked or not, and brings back the answers
//! that the last reply told it to.

use std::collections::BTreeMap;

use tokkuri_core::id::Key;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::replay::{Asked, Refused, Replay};

use crate::frame::payload::Number;
use crate::small::{Claim, Small, Verdict, claims};

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
    verdict: Verdict,
}

/// The answers of one round, by key.
pub type Answers = [Option<u8>; 3];

claims! {
    FirstAnswerWins "first_answer_wins"
        "a tool that is run again gets the first answer under each key, whatever comes later"
        if "an answer is used again";
    KeyNeverReused "key_never_reused"
        "no two requests are ever surfaced under one key, and one that was answered is not asked again"
        if "a key is asked again";
}

impl Between {
    /// The tool asks. `None` if the round is over for it.
    fn ask(&mut self, replay: &mut Replay<Number>, name: usize, request: Number) -> Option<()> {
        let key = Key::new_static(NAMES[name]);
        match replay.ask(&key, request) {
            Ok(Asked::Answered(answer)) => {
                if let Some(first) = self.first[name] {
                    self.verdict.holds(Judged::FirstAnswerWins, first == answer, || {
                        format!("{key} was answered {}, and now it is {}", first.0, answer.0)
                    });
                }
                self.first[name].get_or_insert(answer);
                Some(())
            }
            Ok(Asked::Open) => {
                if self.first[name].is_some() {
                    let why = || format!("{key} was answered, and is asked again");
                    self.verdict.holds(Judged::KeyNeverReused, false, why);
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
        let refused = matches!(taken, Err(Refused::KeyTaken { .. }));
        let why = || "the body may ask under a key of prepare's".to_owned();
        self.verdict.holds(Judged::KeyNeverReused, refused, why);
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
            next.verdict.holds(Judged::KeyNeverReused, first == *request, || {
                format!("{key} was {}, and now it is {}", first.0, request.0)
            });
        }
        next.given.clone_from(replay.given());
        next
    }
}

impl Small for Inline {
    type State = Between;
    type Action = Answers;

    const CLAIMS: &'static [Claim] = CLAIMS;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn reaches(&self) -> &'static [&'static str] {
        &["first_answer_wins", "key_never_reused"]
    }

    fn beginning(&self) -> Between {
        Between {
            rounds: 0,
            given: BTreeMap::new(),
            surfaced: [None; 3],
            first: [None; 3],
            done: false,
            verdict: Verdict::default(),
        }
    }

    fn possible(&self, state: &Between, actions: &mut Vec<Answers>) {
        if state.done || state.rounds >= self.rounds {
            return;
        }
        let choices: Vec<Option<u8>> = std::iter::once(None).chain(self.values.iter().copied().map(Some)).collect();
        for &a in &choices {
            for &b in &choices {
                actions.extend(choices.iter().map(|&c| [a, b, c]));
            }
        }
    }

    fn carry_out(&self, state: &Between, action: Answers) -> Between {
        Self::round(state, action)
    }

    fn verdict(state: &Between) -> &Verdict {
        &state.verdict
    }

    fn kind(_: Answers) -> &'static str {
        "a call is sent again"
    }

    /// What a round is, in words.
    fn say(&self, _: &Between, answers: Answers) -> String {
        let said = NAMES.iter().zip(answers).filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
        let said: Vec<_> = said.collect();
        format!(
            "the call is sent again with {}",
            if said.is_empty() { "no answers".to_owned() } else { said.join(", ") }
        )
    }
}
