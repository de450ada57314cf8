//! Tasks, page by page.

use tokkuri_core::id::TaskId;
use tokkuri_core::store::Filter;
use tokkuri_core::task::Task;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;
use tonic::Status;

use super::nodes::Nodes;
use super::{convert, page_token};
use crate::cluster::proto::{ListTasksRequest, ListTasksResponse, TaskFilter};
use crate::cluster::status::{bad_field, unavailable};
use crate::engine::Engine;

/// How many tasks a page has if nobody says, and at most.
const PAGE: (u32, u32) = (100, 1000);

/// How many rows are read at a time. They come with their payloads, so this bounds what one list holds.
const ROWS: u32 = 100;

/// How many rows are looked at for one page. A filter of which the store knows nothing may admit few.
const LOOKS: u32 = 10_000;

/// What a filter asks for: what the store finds by itself, and what is left to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    store: Filter,
    principal: Option<String>,
    client: Option<String>,
    resource: Option<String>,
    /// Incarnations of one name, if there are several or none.
    nodes: Option<Vec<tokkuri_core::id::NodeId>>,
    older_than_ms: Option<u64>,
    younger_than_ms: Option<u64>,
}

impl Wanted {
    /// Reads a filter.
    pub(super) fn read(filter: &TaskFilter, nodes: &Nodes) -> Result<Self, Status> {
        let named = filter.node.as_deref().map(|node| nodes.incarnations(node)).transpose()?;
        let (node, several) = match named {
            Some(one) if one.len() == 1 => (one.first().copied(), None),
            other => (None, other),
        };
        Ok(Self {
            store: Filter {
                statuses: convert::statuses(&filter.statuses)?,
                tool: filter.tool.as_deref().map(Into::into),
                owner: None,
                node,
                created_before: None,
            },
            principal: filter.principal.clone(),
            client: filter.client.clone(),
            resource: filter.resource.clone(),
            nodes: several,
            older_than_ms: convert::optional_ms("filter.older_than", filter.older_than)?,
            younger_than_ms: convert::optional_ms("filter.younger_than", filter.younger_than)?,
        })
    }

    /// What the store is asked for. Ages are counted by its own time.
    fn store(&self, now: Millis) -> Filter {
        let created_before = self.older_than_ms.map(|ms| Millis(now.before(ms).0.saturating_add(1)));
        Filter { created_before, ..self.store.clone() }
    }

    /// Whether the task is wanted.
    pub(super) fn admits(&self, task: &Task<Json>, now: Millis) -> bool {
        let owner = &task.origin.owner;
        let age = now.since(task.origin.created);
        self.store.admits(task)
            && self.principal.as_ref().is_none_or(|wanted| *wanted == *owner.principal)
            && self.client.as_ref().is_none_or(|wanted| *wanted == *owner.client)
            && self.resource.as_ref().is_none_or(|wanted| *wanted == *owner.resource)
            && self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&task.node))
            && self.older_than_ms.is_none_or(|ms| age >= ms)
            && self.younger_than_ms.is_none_or(|ms| age < ms)
    }
}

/// One page.
pub(super) async fn list(engine: &Engine, request: ListTasksRequest) -> Result<ListTasksResponse, Status> {
    let filter = request.filter.unwrap_or_default();
    let size = match request.page_size {
        0 => PAGE.0,
        size if size <= PAGE.1 => size,
        _ => return Err(bad_field("page_size", format!("give {} at most", PAGE.1))),
    };
    let mut after: Option<TaskId> = page_token::read(&request.page_token, &filter)?;
    let nodes = Nodes::read(engine).await?;
    let wanted = Wanted::read(&filter, &nodes)?;
    let (mut tasks, mut looked) = (Vec::new(), 0);
    let (now, more) = loop {
        let rows = ROWS.min(size - u32::try_from(tasks.len()).unwrap_or(size));
        let page = engine.page(wanted.store(nodes.now), after, rows).await.map_err(|error| unavailable(&error))?;
        let (rows, more) = page.read;
        looked += rows.len();
        after = rows.last().map_or(after, |task| Some(task.id));
        let admitted = rows.iter().filter(|task| wanted.admits(task, page.now));
        tasks.extend(admitted.map(|task| convert::task(task, &nodes)));
        if !more || tasks.len() >= size as usize || looked >= LOOKS as usize {
            break (page.now, more);
        }
    };
    let next_page_token = after.filter(|_| more).map(|last| page_token::write(last, &filter)).unwrap_or_default();
    Ok(ListTasksResponse { tasks, next_page_token, now: Some(convert::timestamp(now)) })
}
