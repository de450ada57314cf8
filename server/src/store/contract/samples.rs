//! Owners, drafts and dice for the cases.

use std::sync::Arc;

use tokkuri_core::Text;
use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::store::{Filter, Node, Outcome};
use tokkuri_core::task::{Draft, Task};
use tokkuri_core::wire::Json;

pub(super) type Shared = Arc<Task<Json>>;

/// Longer than any case takes.
pub(super) const LONG_MS: u64 = 3_600_000;
/// Short enough to wait for its end, long enough to do a few things before.
pub(super) const SHORT_MS: u64 = 300;
pub(super) const NODE: NodeId = NodeId(0xf00d_0000_0000_0001);
pub(super) const OTHER_NODE: NodeId = NodeId(2);

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("the cases write JSON")
}

pub(super) fn question() -> Json {
    json(r#"{"method":"roots/list"}"#)
}

pub(super) fn answer() -> Json {
    json(r#"{"roots":[]}"#)
}

pub(super) fn owner(principal: &str) -> Owner {
    Owner { principal: principal.into(), server: "s".into(), client: Text::default(), resource: Text::default() }
}

pub(super) fn caller(owner: &Owner) -> Caller {
    Caller { owner: owner.clone(), scopes: Scopes::Unrestricted }
}

/// The `n`th of some ids that are spread like random ones.
pub(super) fn id(n: u64) -> TaskId {
    let mut bytes = [0; 18];
    let mut dice = Dice(n);
    for eight in bytes.chunks_mut(8) {
        let length = eight.len();
        eight.copy_from_slice(&dice.roll().to_be_bytes()[..length]);
    }
    TaskId::from_bytes(bytes)
}

pub(super) fn draft(n: u64) -> Draft<Json> {
    Draft {
        id: id(n),
        owner: owner("a"),
        tool: "tool".into(),
        scopes: vec!["read".into()],
        granted: vec!["read".into(), "write".into()],
        capabilities: Capabilities::ALL,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        restartable: false,
        arguments: json(r#"{"n":1}"#),
        node: NODE,
        ttl_ms: LONG_MS,
        poll_interval_ms: 1_000,
        keep_ms: 0,
        max_questions: 8,
        status_message: None,
    }
}

/// A node, as it joins. Which of them can be reached depends on its id.
pub(super) fn joining(id: NodeId) -> Node {
    let address = (id.0 % 2 == 1).then(|| format!("127.0.0.1:{}", id.0 % 60_000).into());
    Node { id, name: format!("nœud {id}").into(), address, version: "1.2.3-rc.4+5".into() }
}

pub(super) fn everything() -> Filter {
    Filter::default()
}

pub(super) fn holds(it: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if it { Ok(()) } else { Err(why()) }
}

pub(super) fn unexpected(wanted: &str, outcome: &Outcome<Json>) -> String {
    format!("wanted {wanted}, got {}", short(outcome))
}

/// Enough of a value to tell what it is: an answer may hold megabytes.
pub(super) fn short(value: &dyn std::fmt::Debug) -> String {
    let mut text = format!("{value:?}");
    if let Some((end, _)) = text.char_indices().nth(600) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Numbers that look random and are the same every time (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(from.len()).ok().filter(|length| *length > 0)?;
        from.get(usize::try_from(self.below(length)).ok()?)
    }
}
