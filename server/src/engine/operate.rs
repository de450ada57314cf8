//! What an operator sees and does: no owner is asked for.

use std::sync::Arc;

use tokkuri_core::host::Watch;
use tokkuri_core::id::{NodeId, Revision, TaskId};
use tokkuri_core::procedure::{Expire, Write, Written};
use tokkuri_core::store::{Answer, Filter, NodeState, Outcome, Request, Unavailable};
use tokkuri_core::task::Task;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use crate::engine::Engine;

/// How many rows are removed at a time.
const SWEEP: u32 = 500;

/// A reading of the store, with the store's time of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub(crate) now: Millis,
    pub(crate) read: T,
}

/// Some tasks, and whether there are more.
pub(crate) type Page = (Vec<Arc<Task<Json>>>, bool);

impl Engine {
    /// A task, whoever owns it.
    pub(crate) async fn inspect(&self, id: TaskId) -> Result<At<Option<Arc<Task<Json>>>>, Unavailable> {
        self.read(Request::Load { id }, |outcome| match outcome {
            Outcome::Loaded(task) => Ok(task),
            other => Err(other),
        })
        .await
    }

    /// Tasks in the order of their ids.
    pub(crate) async fn page(
        &self,
        filter: Filter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<At<Page>, Unavailable> {
        self.read(Request::Page { filter, after, limit }, |outcome| match outcome {
            Outcome::Page(tasks, more) => Ok((tasks, more)),
            other => Err(other),
        })
        .await
    }

    /// The nodes of the store.
    pub(crate) async fn nodes(&self) -> Result<At<Vec<NodeState>>, Unavailable> {
        self.read(Request::Nodes, |outcome| match outcome {
            Outcome::Nodes(nodes) => Ok(nodes),
            other => Err(other),
        })
        .await
    }

    /// Drains a node, with so many milliseconds until its restartable runs are handed over; `None` takes it back. Whether the
    /// node is known and alive.
    pub(crate) async fn drain(&self, node: NodeId, drain: Option<u64>) -> Result<bool, Unavailable> {
        let answer = self.read(Request::Drain { node, drain }, |outcome| match outcome {
            Outcome::Drained(alive) => Ok(alive),
            other => Err(other),
        });
        Ok(answer.await?.read)
    }

    /// What a look at one node's tasks shows as changed. The watch moves on.
    pub(crate) async fn touched(&self, watch: &mut Watch) -> Result<Vec<(TaskId, Revision)>, Unavailable> {
        let touched = self
            .read(watch.request(), |outcome| match outcome {
                Outcome::Touched(touched) => Ok(touched),
                other => Err(other),
            })
            .await?;
        watch.answered(touched.now);
        Ok(touched.read)
    }

    /// A watch of a node's tasks that begins now: it shows no change that became visible long before.
    pub(crate) fn watch_from(&self, node: NodeId, now: Millis) -> Watch {
        let mut watch = Watch::of_store(node, self.store.visible_after_ms());
        watch.answered(now);
        watch
    }

    /// Cancels a task, whoever owns it.
    pub(crate) async fn cancel_by_operator(self: &Arc<Self>, id: TaskId) -> Written<Json> {
        self.drive(Write::cancel_by_operator(id)).await
    }

    /// Removes whatever has expired. How many tasks that were.
    pub(crate) async fn prune(self: &Arc<Self>) -> Result<usize, Unavailable> {
        let mut all = 0;
        loop {
            let (removed, more) = self.drive(Expire::new(SWEEP)).await?;
            all += removed;
            if !more {
                return Ok(all);
            }
        }
    }

    async fn read<T>(
        &self,
        request: Request<Json>,
        read: impl FnOnce(Outcome<Json>) -> Result<T, Outcome<Json>>,
    ) -> Result<At<T>, Unavailable> {
        let Answer { now, outcome } = self.store.carry_out(request).answer().await;
        match read(outcome) {
            Ok(read) => Ok(At { now, read }),
            Err(Outcome::Unavailable(unavailable)) => Err(unavailable),
            Err(other) => {
                let why = format!("the store answered what it was not asked: {other:?}").into();
                Err(Unavailable { why, maybe_done: false })
            }
        }
    }
}
