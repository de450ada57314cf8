//! Changes of tasks, as they come.
//!
//! What this node stores it knows at once, what other nodes store by their signals; and once a poll interval it looks at the
//! tasks of every node, for what signals have lost. Whatever says that a task has changed, the task is read before it is told,
//! and only if the watcher has room for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokkuri_core::host::Watch;
use tokkuri_core::id::{NodeId, Revision, TaskId};
use tokkuri_core::time::Millis;
use tonic::Status;

use super::list::Wanted;
use super::nodes::Nodes;
use super::{ListTasksRequest, WatchTasksRequest, WatchTasksResponse, convert, list};
use crate::cluster::changes::{Changes, Watching};
use crate::cluster::proto::TaskFilter;
use crate::cluster::status::{Reason, refuse, unavailable};
use crate::engine::Engine;

/// How many answers wait to be sent; beyond that, what changes is taken together.
const UNSENT: usize = 16;

type Answer = Result<WatchTasksResponse, Status>;

/// The stream. When this returns, whatever changes from then on will be told.
pub(super) async fn watch(
    engine: &Arc<Engine>,
    changes: &Arc<Changes>,
    stop: CancellationToken,
    request: WatchTasksRequest,
) -> Result<impl Stream<Item = Answer> + use<>, Status> {
    let filter = request.filter.unwrap_or_default();
    let nodes = Nodes::read(engine).await?;
    let wanted = Wanted::read(&filter, &nodes)?;
    let watching = changes.watch();
    let mut looks = Looks::default();
    looks.begin(engine, &nodes, &watching).await?;
    let (sender, receiver) = mpsc::channel(UNSENT);
    let teller = Teller { engine: Arc::clone(engine), watching, wanted, nodes: Mutex::new(nodes), sender };
    tokio::spawn(async move {
        let stopped = stop.cancelled();
        let told = teller.tell(looks, request.include_current.then_some(filter));
        let last = tokio::select! {
            () = stopped => Some(refuse(Reason::ShuttingDown, "the node is shutting down: watch again, at another node")),
            () = teller.sender.closed() => None,
            error = told => error,
        };
        if let Some(status) = last {
            let _ = tokio::time::timeout(Duration::from_secs(1), teller.sender.send(Err(status))).await;
        }
    });
    Ok(ReceiverStream::new(receiver))
}

/// Looks at the tasks of every node that is there, one after the other.
#[derive(Debug, Default)]
struct Looks(BTreeMap<NodeId, Watch>);

impl Looks {
    /// What has changed until now is not told.
    async fn begin(&mut self, engine: &Engine, nodes: &Nodes, watching: &Watching) -> Result<(), Status> {
        for state in nodes.alive() {
            let mut watch = engine.watch_from(state.node.id, nodes.now);
            let touched = engine.touched(&mut watch).await.map_err(|error| unavailable(&error))?;
            for (id, revision) in touched {
                watching.is_news(id, revision);
            }
            self.0.insert(state.node.id, watch);
        }
        Ok(())
    }

    /// A node that is gone leaves tasks that still change, at the latest when they are taken over: it is looked at for as long
    /// as it is known. A store that fails is asked again with the next look.
    async fn look(&mut self, engine: &Engine, nodes: &[(NodeId, Millis)], watching: &Watching) {
        self.0.retain(|known, _| nodes.iter().any(|(node, _)| node == known));
        for (node, now) in nodes {
            let watch = self.0.entry(*node).or_insert_with(|| engine.watch_from(*node, *now));
            let Ok(touched) = engine.touched(watch).await else { return };
            for (id, revision) in touched {
                watching.offer(id, Some(revision));
            }
        }
    }
}

struct Teller {
    engine: Arc<Engine>,
    watching: Watching,
    wanted: Wanted,
    /// Who was there at the last look.
    nodes: Mutex<Nodes>,
    sender: mpsc::Sender<Answer>,
}

impl Teller {
    /// Tells until it is dropped, or the store fails at the beginning.
    async fn tell(&self, mut looks: Looks, current: Option<TaskFilter>) -> Option<Status> {
        if let Some(filter) = current
            && let Err(status) = self.tell_current(filter).await
        {
            return Some(status);
        }
        let interval = Duration::from_millis(self.engine.settings().poll_interval_ms.clamp(100, 60_000));
        let looking = async {
            loop {
                tokio::time::sleep(interval).await;
                let Ok(nodes) = Nodes::read(&self.engine).await else { continue };
                let there: Vec<_> = nodes.all().map(|state| (state.node.id, nodes.now)).collect();
                *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
                looks.look(&self.engine, &there, &self.watching).await;
            }
        };
        let telling = async {
            let mut missed = 0;
            loop {
                let (id, more) = self.watching.next().await;
                missed += more;
                if self.tell_change(id, missed).await {
                    missed = 0;
                }
            }
        };
        tokio::select! {
            () = looking => None,
            () = telling => None,
        }
    }

    async fn tell_current(&self, filter: TaskFilter) -> Result<(), Status> {
        let mut request = ListTasksRequest { filter: Some(filter), ..ListTasksRequest::default() };
        loop {
            let page = list::list(&self.engine, request.clone()).await?;
            for task in page.tasks {
                let Ok(id) = task.id.parse::<TaskId>() else { continue };
                // What began to change meanwhile is told as a change, if it is newer.
                self.watching.is_news(id, Revision(task.revision));
                let answer = WatchTasksResponse { task: Some(task), current: true, missed: 0 };
                if self.sender.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
            if page.next_page_token.is_empty() {
                return Ok(());
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Whether it was told.
    async fn tell_change(&self, id: TaskId, missed: u64) -> bool {
        // There is room before the task is read, so that what is told is as new as it can be.
        let Ok(place) = self.sender.reserve().await else { return false };
        let read = loop {
            match self.engine.inspect(id).await {
                Ok(read) => break read,
                // It is not forgotten because the store could not be asked.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let Some(task) = read.read else { return false };
        if !self.watching.is_news(id, task.revision) || !self.wanted.admits(&task, read.now) {
            return false;
        }
        let told = convert::task(&task, &self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        place.send(Ok(WatchTasksResponse { task: Some(told), current: false, missed }));
        true
    }
}
