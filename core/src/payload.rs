//! What tasks carry and core never looks into, but for the two questions that a [`Payload`] answers about itself.

use alloc::string::String;
use core::fmt::Debug;
use core::hash::Hash;

use serde::{Deserialize, Deserializer, Serialize};

/// Arguments, a question, an answer or a result: opaque to the machines.
///
/// Servers use [`wire::Json`](crate::wire::Json); a model uses something small, so that states hash fast.
pub trait Payload: Clone + Eq + Hash + Debug {
    /// What the client must have declared for this question to be put to it (MCP 2026-07-28, MRTR § Capability gate).
    fn needs(&self) -> Capabilities;

    /// Whether `answer` is a well-formed answer to this question.
    ///
    /// # Errors
    /// Says what is wrong with the answer, in words for whoever sent it.
    fn accepts(&self, answer: &Self) -> Result<(), Misfit>;
}

/// Why an answer does not fit its question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(pub String);

/// The client capabilities that matter for what a task may ask (MCP 2026-07-28, `ClientCapabilities`).
///
/// A task keeps those that its creating request declared: capabilities are per request, and a later poll may declare fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// `elicitation` with `form`, or empty (which means form only).
    pub form: bool,
    /// `elicitation.url`.
    pub url: bool,
    /// `sampling`.
    pub sampling: bool,
    /// `sampling.tools`: the request may carry `tools` or `toolChoice`.
    pub sampling_tools: bool,
    /// `sampling.context`: the request may carry an `includeContext` other than `none`.
    pub sampling_context: bool,
    /// `roots`.
    pub roots: bool,
}

impl Capabilities {
    /// Everything.
    pub const ALL: Self =
        Self { form: true, url: true, sampling: true, sampling_tools: true, sampling_context: true, roots: true };

    /// What is in `self` and not in `declared`; `None` if nothing is missing.
    pub fn missing_from(self, declared: Self) -> Option<Self> {
        let missing = Self {
            form: self.form && !declared.form,
            url: self.url && !declared.url,
            sampling: self.sampling && !declared.sampling,
            sampling_tools: self.sampling_tools && !declared.sampling_tools,
            sampling_context: self.sampling_context && !declared.sampling_context,
            roots: self.roots && !declared.roots,
        };
        (missing != Self::default()).then_some(missing)
    }
}

/// A payload that is there, `null` included: to serde an optional `null` is nothing, to a task it is a value.
pub(crate) fn present<'de, D: Deserializer<'de>, P: Deserialize<'de>>(deserializer: D) -> Result<Option<P>, D::Error> {
    P::deserialize(deserializer).map(Some)
}
