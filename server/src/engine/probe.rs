//! Points at which a test bed can hold the node. In production there is no probe and they cost nothing.

use std::future::Future;
use std::pin::Pin;

pub use tokkuri_core::id::TaskId;

/// A named point inside the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A run is about to store a question.
    BeforeAskWrite,
    /// A question is stored, and its run about to wait for the answer.
    AfterAskWrite,
    /// A run is about to store its end.
    BeforeEndWrite,
    /// A task is stored, and its run about to start.
    BeforeRegister,
    /// A task is stored and runs, and the reply about to go out.
    BeforeReply,
}

impl Point {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::BeforeAskWrite, Self::AfterAskWrite, Self::BeforeEndWrite, Self::BeforeRegister, Self::BeforeReply];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeAskWrite => "before_ask_write",
            Self::AfterAskWrite => "after_ask_write",
            Self::BeforeEndWrite => "before_end_write",
            Self::BeforeRegister => "before_register",
            Self::BeforeReply => "before_reply",
        }
    }
}

/// What holds the node.
pub trait Probe: std::fmt::Debug + Send + Sync + 'static {
    /// The node has come to a point, and goes on when this is over.
    fn at(&self, point: Point, task: TaskId) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl super::Engine {
    pub(crate) async fn at(&self, point: Point, task: TaskId) {
        if let Some(probe) = &self.probe {
            probe.at(point, task).await;
        }
    }
}
