//! A tool that asks on the request itself, by being run again.
//!
//! Outside a task nobody can wait: a client of the modern era gets the questions as the reply (`input_required`) and sends the
//! call again with the answers (MCP 2026-07-28, MRTR). So the tool's `prepare`, and its body when it runs in the request, are
//! run from the start on every round, and each key gives its recorded answer until one is missing. What this machine decides is
//! which answer a key gets, and which questions and answers go into the reply.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::id::Key;
use crate::payload::{Capabilities, Payload};

/// One round of a call that may ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replay<P> {
    capabilities: Capabilities,
    /// What came with the request: answers of earlier rounds, and of this one.
    answers: BTreeMap<Key, P>,
    /// Answers that a question was asked for: they travel on in `requestState`.
    given: BTreeMap<Key, P>,
    /// Questions without an answer: the reply.
    open: BTreeMap<Key, P>,
    /// Keys that `prepare` used, once it is over.
    prepared: BTreeSet<Key>,
}

/// What a question gets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Asked<P> {
    /// Its recorded answer.
    Answered(P),
    /// Nothing in this round: it goes into the reply.
    Open,
}

/// Why a question cannot be asked, or its answer not be taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The request did not declare what it needs.
    #[error("the client did not declare what this question needs")]
    Undeclared {
        /// What was missing.
        missing: Capabilities,
    },
    /// The tool's `prepare` used this key.
    #[error("the key {key:?} was used by the tool's prepare")]
    KeyTaken {
        /// Which key.
        key: Key,
    },
    /// The answer that came with the request does not fit.
    #[error("the answer to {key:?} does not fit its question: {reason}")]
    Misfit {
        /// Which question.
        key: Key,
        /// What is wrong.
        reason: String,
    },
}

impl<P: Payload> Replay<P> {
    /// A round. `earlier` are the answers out of `requestState`, `now` those that came with this request; an answer that was
    /// recorded earlier stays.
    pub fn new(capabilities: Capabilities, earlier: BTreeMap<Key, P>, now: BTreeMap<Key, P>) -> Self {
        let (earlier, now) = if mutant!(LaterRoundWins) { (now, earlier) } else { (earlier, now) };
        let mut answers = now;
        answers.extend(earlier);
        Self { capabilities, answers, given: BTreeMap::new(), open: BTreeMap::new(), prepared: BTreeSet::new() }
    }

    /// The tool asks. Answers under keys that nothing asks for are never looked at.
    ///
    /// # Errors
    /// [`Refused`] says why it cannot be asked, or its answer not be taken.
    pub fn ask(&mut self, key: &Key, request: P) -> Result<Asked<P>, Refused> {
        if self.prepared.contains(key) && !mutant!(PreparedKeyIsFree) {
            return Err(Refused::KeyTaken { key: key.clone() });
        }
        if let Some(answer) = self.given.get(key) {
            return Ok(Asked::Answered(answer.clone()));
        }
        if let Some(answer) = self.answers.get(key) {
            return match request.accepts(answer) {
                Ok(()) if mutant!(GivenNotKept) => Ok(Asked::Answered(answer.clone())),
                Ok(()) => {
                    self.given.insert(key.clone(), answer.clone());
                    Ok(Asked::Answered(answer.clone()))
                }
                Err(misfit) => Err(Refused::Misfit { key: key.clone(), reason: misfit.0 }),
            };
        }
        if let Some(missing) = request.needs().missing_from(self.capabilities) {
            return Err(Refused::Undeclared { missing });
        }
        // Asked twice in one round: the first question stands.
        self.open.entry(key.clone()).or_insert(request);
        Ok(Asked::Open)
    }

    /// The answer to an open question came by another way than the next round: the client was asked directly (earlier era). An
    /// answer that was there first stays.
    ///
    /// # Errors
    /// [`Refused::Misfit`]; the question stays open then, and asking again may bring a better one.
    pub fn answer(&mut self, key: &Key, answer: P) -> Result<(), Refused> {
        let Some(request) = self.open.get(key) else { return Ok(()) };
        request.accepts(&answer).map_err(|misfit| Refused::Misfit { key: key.clone(), reason: misfit.0 })?;
        self.open.remove(key);
        self.given.insert(key.clone(), answer);
        Ok(())
    }

    /// `prepare` is over: its keys are not the body's.
    pub fn prepared(&mut self) {
        self.prepared = self.given.keys().cloned().collect();
    }

    /// The questions of the reply; empty if nothing is missing.
    pub const fn open(&self) -> &BTreeMap<Key, P> {
        &self.open
    }

    /// The answers that have to come back with the next round.
    pub const fn given(&self) -> &BTreeMap<Key, P> {
        &self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::samples::Number;

    const FORM: Capabilities = Capabilities {
        form: true,
        url: false,
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        roots: false,
    };

    fn answers<const N: usize>(answers: [(&str, u8); N]) -> BTreeMap<Key, Number> {
        answers.into_iter().map(|(key, value)| (key.into(), Number(value))).collect()
    }

    #[test]
    fn each_round_gives_what_was_recorded_until_something_is_missing() {
        let mut round = Replay::new(FORM, answers([("a", 1)]), answers([("b", 2), ("unknown", 255)]));
        assert_eq!(round.ask(&"a".into(), Number(9)), Ok(Asked::Answered(Number(1))));
        assert_eq!(round.ask(&"b".into(), Number(9)), Ok(Asked::Answered(Number(2))));
        assert_eq!(round.ask(&"c".into(), Number(9)), Ok(Asked::Open));
        assert_eq!(round.open(), &answers([("c", 9)]));
        assert_eq!(round.given(), &answers([("a", 1), ("b", 2)]));
    }

    #[test]
    fn an_answer_of_an_earlier_round_stays() {
        let mut round = Replay::new(FORM, answers([("a", 1)]), answers([("a", 2)]));
        assert_eq!(round.ask(&"a".into(), Number(9)), Ok(Asked::Answered(Number(1))));
    }

    #[test]
    fn what_was_not_declared_is_not_asked_and_what_does_not_fit_is_refused() {
        let mut round = Replay::new(FORM, BTreeMap::new(), answers([("a", 255)]));
        assert!(matches!(round.ask(&"a".into(), Number(9)), Err(Refused::Misfit { .. })));
        assert!(matches!(round.ask(&"u".into(), Number::URL), Err(Refused::Undeclared { .. })));
        assert!(round.open().is_empty() && round.given().is_empty());
    }

    #[test]
    fn the_body_has_keys_of_its_own() {
        let mut round = Replay::new(FORM, answers([("a", 1)]), BTreeMap::new());
        round.ask(&"a".into(), Number(9)).unwrap();
        round.prepared();
        assert_eq!(round.ask(&"a".into(), Number(9)), Err(Refused::KeyTaken { key: "a".into() }));
    }
}
