//! What the tasks of these tests carry, and the drafts they start from.

use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::payload::{Capabilities, Misfit, Payload};
use tokkuri_core::task::Draft;

/// A payload that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Number(pub(crate) u8);

impl Number {
    /// An answer that fits no question.
    pub(crate) const JUNK: Self = Self(255);
    /// A question that needs url elicitation, which no task of these tests declares.
    #[allow(dead_code, reason = "each test binary uses what it needs")]
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

/// How long tasks live, and how long their results stay readable.
pub(crate) const TTL_MS: u64 = 60_000;
pub(crate) const KEEP_MS: u64 = 5_000;
pub(crate) const MAX_QUESTIONS: u32 = 2;

/// Somebody, with all scopes.
pub(crate) fn caller(name: &str) -> Caller {
    let none = String::new;
    let owner = Owner { principal: name.into(), server: none().into(), client: none().into(), resource: none().into() };
    Caller { owner, scopes: Scopes::Unrestricted }
}

/// The draft of the task with this number.
pub(crate) fn draft(number: u8, owner: &str, node: NodeId, restartable: bool) -> Draft<Number> {
    Draft {
        capabilities: Capabilities { form: true, ..Capabilities::default() },
        restartable,
        ttl_ms: TTL_MS,
        keep_ms: KEEP_MS,
        max_questions: MAX_QUESTIONS,
        ..Draft::new(TaskId::from_bytes([number; 18]), caller(owner).owner, "tool", Number(0), node)
    }
}
