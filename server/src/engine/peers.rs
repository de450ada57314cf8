//! The other nodes, as far as the engine knows them: whom it tells of what is stored.

use std::fmt;

use tokkuri_core::id::{NodeId, Revision, TaskId};

/// Tells other nodes that a task has a new revision.
///
/// # Contract
/// Both are called after the revision is stored, on the way of a request: they must not block, and hold at most so much. What
/// they are told may be lost, come late or come twice: nodes find out by their next look at the store. They carry a name and a
/// number; whoever is told reads the store.
pub trait Peers: fmt::Debug + Send + Sync + 'static {
    /// The task's run is on `node`, and has something to see: an answer, or that it must stop.
    fn signal(&self, node: NodeId, id: TaskId, revision: Revision);

    /// Followers of the task, on whichever node, have something to see.
    fn publish(&self, id: TaskId, revision: Revision);

    /// Another node, or the store, says that the task has changed. Nobody is to be told; whoever watches all tasks from here may
    /// want to know.
    fn heard(&self, id: TaskId, revision: Option<Revision>) {
        let _ = (id, revision);
    }
}
