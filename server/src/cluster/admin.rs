//! What operators see and do. Any node answers for all that share its store.

mod convert;
mod list;
mod metrics;
mod nodes;
mod page_token;
mod watch;

use std::pin::Pin;
use std::sync::Arc;

use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tokkuri_core::id::TaskId;
use tonic::{Request, Response, Status, async_trait};

use self::nodes::Nodes;
use super::access::Access;
use super::changes::Changes;
use super::connect::Credentials;
use super::proto::admin_server::Admin;
use super::proto::{
    CancelTaskRequest, DrainNodeRequest, DrainNodeResponse, GetMetricsRequest, GetMetricsResponse, GetTaskRequest,
    ListNodesRequest, ListNodesResponse, ListTasksRequest, ListTasksResponse, PruneRequest, PruneResponse, Task,
    UndrainNodeRequest, UndrainNodeResponse, WatchTasksRequest, WatchTasksResponse,
};
use super::status::{no_such_task, unavailable, written};
use crate::engine::Engine;

/// How long until restartable runs of a draining node are handed over, if nobody says.
const DRAIN_MS: u64 = 60_000;

/// The service. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct AdminService {
    pub(super) engine: Arc<Engine>,
    pub(super) access: Access,
    pub(super) credentials: Credentials,
    pub(super) changes: Arc<Changes>,
    /// Ends watches.
    pub(super) stop: CancellationToken,
}

#[async_trait]
impl Admin for AdminService {
    async fn list_tasks(&self, request: Request<ListTasksRequest>) -> Result<Response<ListTasksResponse>, Status> {
        list::list(&self.engine, request.into_inner()).await.map(Response::new)
    }

    async fn get_task(&self, request: Request<GetTaskRequest>) -> Result<Response<Task>, Status> {
        let GetTaskRequest { id, include_payloads } = request.into_inner();
        if include_payloads {
            self.access.payloads()?;
        }
        let found = self.engine.inspect(parse(&id)?).await.map_err(|error| unavailable(&error))?.read;
        let found = found.ok_or_else(|| no_such_task(&id))?;
        let nodes = Nodes::read(&self.engine).await?;
        let mut task = convert::task(&found, &nodes);
        if include_payloads {
            task.payloads = Some(convert::payloads(&found));
        }
        Ok(Response::new(task))
    }

    async fn cancel_task(&self, request: Request<CancelTaskRequest>) -> Result<Response<Task>, Status> {
        let id = parse(&request.into_inner().id)?;
        // It is driven to its end although the caller may go away: a drive may not be dropped half-way with its effects.
        let engine = Arc::clone(&self.engine);
        let cancelled = tokio::spawn(async move { engine.cancel_by_operator(id).await }).await;
        let cancelled = cancelled.map_err(|error| Status::internal(error.to_string()))?;
        let task = written(id, cancelled)?;
        tracing::info!(task = %id, status = task.status().as_str(), "an operator asked to cancel a task");
        let nodes = Nodes::read(&self.engine).await?;
        Ok(Response::new(convert::task(&task, &nodes)))
    }

    type WatchTasksStream = Pin<Box<dyn Stream<Item = Result<WatchTasksResponse, Status>> + Send>>;

    async fn watch_tasks(
        &self,
        request: Request<WatchTasksRequest>,
    ) -> Result<Response<Self::WatchTasksStream>, Status> {
        let stream = watch::watch(&self.engine, &self.changes, self.stop.clone(), request.into_inner()).await?;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn list_nodes(&self, _: Request<ListNodesRequest>) -> Result<Response<ListNodesResponse>, Status> {
        let nodes = Nodes::read(&self.engine).await?;
        Ok(Response::new(ListNodesResponse {
            nodes: nodes.all().map(|state| nodes.proto(state)).collect(),
            now: Some(convert::timestamp(nodes.now)),
        }))
    }

    async fn drain_node(&self, request: Request<DrainNodeRequest>) -> Result<Response<DrainNodeResponse>, Status> {
        let DrainNodeRequest { node, deadline } = request.into_inner();
        let deadline = convert::optional_ms("deadline", deadline)?.unwrap_or(DRAIN_MS);
        let node = nodes::drain(&self.engine, &node, Some(deadline)).await?;
        Ok(Response::new(DrainNodeResponse { node: Some(node) }))
    }

    async fn undrain_node(
        &self,
        request: Request<UndrainNodeRequest>,
    ) -> Result<Response<UndrainNodeResponse>, Status> {
        let node = nodes::drain(&self.engine, &request.into_inner().node, None).await?;
        Ok(Response::new(UndrainNodeResponse { node: Some(node) }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        metrics::metrics(&self.engine, &self.credentials, request).await.map(Response::new)
    }

    async fn prune(&self, _: Request<PruneRequest>) -> Result<Response<PruneResponse>, Status> {
        let removed = self.engine.prune().await.map_err(|error| unavailable(&error))?;
        Ok(Response::new(PruneResponse { removed: removed as u64 }))
    }
}

/// What is no id names no task.
fn parse(id: &str) -> Result<TaskId, Status> {
    id.parse().map_err(|_| no_such_task(id))
}
