//! Small tasks for the tests of the machines.

use crate::Text;
use crate::access::Owner;
use crate::id::{Key, NodeId, TaskId};
use crate::payload::{Capabilities, Misfit, Payload};
use crate::task::{Command, Draft, Task};
use crate::time::Millis;

pub(crate) const T0: Millis = Millis(1_000);
pub(crate) const TTL_MS: u64 = 100;
pub(crate) const KEEP_MS: u64 = 50;

/// A payload that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Number(pub(crate) u8);

impl Number {
    /// An answer that fits no question.
    pub(crate) const JUNK: Self = Self(255);
    /// A question that needs url elicitation.
    pub(crate) const URL: Self = Self(254);
}

impl Payload for Number {
    fn needs(&self) -> Capabilities {
        let url = *self == Self::URL;
        Capabilities { form: !url, url, ..Capabilities::default() }
    }

    fn accepts(&self, answer: &Self) -> Result<(), Misfit> {
        if *answer == Self::JUNK { Err(Misfit("junk".into())) } else { Ok(()) }
    }
}

pub(crate) fn owner(principal: &str) -> Owner {
    Owner { principal: principal.into(), server: Text::default(), client: Text::default(), resource: Text::default() }
}

pub(crate) fn draft(id: u8) -> Draft<Number> {
    Draft {
        capabilities: Capabilities { form: true, ..Capabilities::default() },
        ttl_ms: TTL_MS,
        poll_interval_ms: 10,
        keep_ms: KEEP_MS,
        max_questions: 3,
        ..Draft::new(TaskId::from_bytes([id; 18]), owner("a"), "t", Number(0), NodeId(1))
    }
}

pub(crate) fn task() -> Task<Number> {
    draft(1).created(T0)
}

pub(crate) fn restartable() -> Task<Number> {
    Draft { restartable: true, ..draft(1) }.created(T0)
}

pub(crate) fn ask(key: &str) -> Command<Number> {
    Command::Ask { by: crate::id::Attempt::FIRST, key: key.into(), request: Number(1) }
}

pub(crate) fn answer<const N: usize>(answers: [(&str, Number); N]) -> Command<Number> {
    Command::Answer { answers: answers.into_iter().map(|(key, value)| (Key::from(key), value)).collect() }
}
