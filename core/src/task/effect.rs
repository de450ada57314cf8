//! What has to happen after a new state is stored.

use crate::id::{Attempt, NodeId};

/// One thing to do once the change is stored, never before. Each may be lost (a crash between the two): what it brings about
/// is only brought about sooner than by the node's next look at the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect<P> {
    /// This node must start a run.
    Start {
        /// The node.
        node: NodeId,
        /// The attempt that it runs.
        attempt: Attempt,
    },
    /// The run has to look at the task: an answer or a stop is owed to it.
    Signal {
        /// Where the run is.
        node: NodeId,
        /// The attempt that is meant.
        attempt: Attempt,
    },
    /// Followers have something new to see.
    Publish,
    /// Whatever the host's slot names is no longer wanted: an upstream's task has to be cancelled, say.
    Release {
        /// What the slot held.
        slot: P,
    },
}
