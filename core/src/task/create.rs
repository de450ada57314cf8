//! How a task begins.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::Text;
use crate::access::Owner;
use crate::id::{Attempt, NodeId, Revision, TaskId};
use crate::payload::{Capabilities, Payload};
use crate::task::{Live, Origin, Phase, Task, invariant};
use crate::time::Millis;

/// A task before the store has taken it. Only the store knows its time of creation, so only the store makes the [`Task`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft<P> {
    /// Its name, of fresh random bits.
    pub id: TaskId,
    /// Whose it will be.
    pub owner: Owner,
    /// The tool.
    pub tool: Text,
    /// The scopes that the tool requires.
    pub scopes: alloc::vec::Vec<Text>,
    /// What the creating request's credentials granted; empty without authorization.
    pub granted: alloc::vec::Vec<Text>,
    /// What the creating request declared.
    pub capabilities: Capabilities,
    /// W3C `traceparent` of the creating request.
    pub traceparent: Option<Text>,
    /// Whether it may be run again if its node is lost.
    pub restartable: bool,
    /// The arguments of the call.
    pub arguments: P,
    /// The node that will run it.
    pub node: NodeId,
    /// How long it is kept after its creation.
    pub ttl_ms: u64,
    /// How often clients are asked to poll.
    pub poll_interval_ms: u64,
    /// How long its result stays readable, at least.
    pub keep_ms: u64,
    /// How many questions it may ask.
    pub max_questions: u32,
    /// What it says of itself before its run does: that it waits for a place, say.
    pub status_message: Option<Text>,
}

impl<P> Draft<P> {
    /// A task that needs no scopes and may ask anything, is kept for an hour and its result for five minutes at least, and is not
    /// run twice.
    pub fn new(id: TaskId, owner: Owner, tool: impl Into<Text>, arguments: P, node: NodeId) -> Self {
        Self {
            id,
            owner,
            tool: tool.into(),
            scopes: alloc::vec::Vec::new(),
            granted: alloc::vec::Vec::new(),
            capabilities: Capabilities::ALL,
            traceparent: None,
            restartable: false,
            arguments,
            node,
            ttl_ms: 3_600_000,
            poll_interval_ms: 1_000,
            keep_ms: 300_000,
            max_questions: 64,
            status_message: None,
        }
    }
}

impl<P: Payload> Draft<P> {
    /// The task that the store inserts at `now`.
    pub fn created(self, now: Millis) -> Task<P> {
        let task = Task {
            id: self.id,
            revision: Revision::FIRST,
            origin: Arc::new(Origin {
                owner: self.owner,
                tool: self.tool,
                scopes: self.scopes,
                granted: self.granted,
                capabilities: self.capabilities,
                traceparent: self.traceparent,
                restartable: self.restartable,
                created: now,
                poll_interval_ms: self.poll_interval_ms,
                keep_ms: self.keep_ms,
                max_questions: self.max_questions,
            }),
            node: self.node,
            attempt: Attempt::FIRST,
            phase: Phase::Live(Live { arguments: self.arguments, questions: BTreeMap::new() }),
            status_message: self.status_message,
            updated: now,
            ttl_ms: self.ttl_ms.max(1),
            slot: None,
        };
        debug_assert_eq!(invariant::check(&task), Ok(()));
        task
    }
}
