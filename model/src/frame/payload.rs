//! What the tasks of a world carry, and the drafts they start from.

use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::id::{Key, NodeId, TaskId};
use tokkuri_core::lease::Lease;
use tokkuri_core::payload::{Capabilities, Misfit, Payload};
use tokkuri_core::store::Node;
use tokkuri_core::task::Draft;
use tokkuri_core::time::Millis;

/// A payload that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u8);

impl Number {
    /// An answer that fits no question.
    pub const JUNK: Self = Self(255);
}

impl Payload for Number {
    fn needs(&self) -> Capabilities {
        Capabilities { form: true, ..Capabilities::default() }
    }

    fn accepts(&self, answer: &Self) -> Result<(), Misfit> {
        if *answer == Self::JUNK { Err(Misfit("junk".into())) } else { Ok(()) }
    }
}

/// When a world begins.
pub const T0: Millis = Millis(1_000_000);
/// How long tasks live.
pub const TTL_MS: u64 = 60_000;
/// How long a result stays readable.
pub const KEEP_MS: u64 = 5_000;
/// How many questions a task may ask.
pub const MAX_QUESTIONS: u32 = 2;
/// For how long a node is thought alive after it said so.
pub const LEASE_MS: u64 = 15_000;
/// The scope that every tool here requires.
pub const SCOPE: &str = "use";

/// The id of the task with this number.
pub const fn task_id(task: u8) -> TaskId {
    TaskId::from_bytes([task + 1; 18])
}

/// The number of a task.
pub const fn task_number(id: TaskId) -> usize {
    id.to_bytes()[0] as usize - 1
}

/// The name of a question.
pub fn key(number: u8) -> Key {
    if number == 0 { Key::new_static("a") } else { Key::new_static("b") }
}

/// The number of a question.
pub fn key_number(key: &Key) -> usize {
    usize::from(*key != "a")
}

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// The owner of the task, with all scopes.
    Ann,
    /// The same person, with a token that lacks the tool's scope.
    AnnUnscoped,
    /// Somebody else, with all scopes.
    Bob,
}

impl Who {
    /// The name of the person.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ann | Self::AnnUnscoped => "ann",
            Self::Bob => "bob",
        }
    }

    /// What core knows of them.
    pub fn caller(self) -> Caller {
        let scopes = match self {
            Self::Ann | Self::Bob => Scopes::Unrestricted,
            Self::AnnUnscoped => Scopes::Granted([].into()),
        };
        Caller { owner: owner(self.name()), scopes }
    }
}

fn owner(name: &'static str) -> Owner {
    let text = tokkuri_core::Text::new_static;
    Owner { principal: text(name), server: text(""), client: text(""), resource: text("") }
}

/// The lease of a node that has not joined yet.
pub fn lease(id: NodeId) -> Lease {
    let text = tokkuri_core::Text::new_static;
    Lease::new(Node { id, name: text(""), address: None, version: text("") }, LEASE_MS)
}

/// The draft of the task with this number.
pub fn draft(task: u8, who: Who, node: NodeId, restartable: bool) -> Draft<Number> {
    Draft {
        scopes: vec![SCOPE.into()],
        capabilities: Capabilities { form: true, ..Capabilities::default() },
        restartable,
        ttl_ms: TTL_MS,
        keep_ms: KEEP_MS,
        max_questions: MAX_QUESTIONS,
        ..Draft::new(task_id(task), owner(who.name()), "tool", Number(0), node)
    }
}
