//! `subscriptions/listen`: tasks are ours, every other filter is rmcp's, and the client sees one stream (MCP 2026-07-28,
//! subscriptions; tasks extension, § Status Notifications).
//!
//! Whatever is wrong is said before the stream opens. Then come the acknowledgement of what was granted, the current state of
//! each task, and from there on every change that a `tasks/get` would show, the latest one if several came while the client did
//! not read.

mod event;
mod others;
mod permit;
mod stream;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use metrics::Gauge;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokkuri_core::access::Caller;
use tokkuri_core::id::TaskId;
use tokkuri_core::task::Fault;
use tokkuri_core::wire::Json;

use crate::engine::Engine;
use crate::engine::followers::NotFollowed;
use crate::mcp::envelope::RawId;
use crate::mcp::fault;
use crate::mcp::headers::Accepts;
use crate::mcp::ladder::Call;
use crate::mcp::refusal::{INVALID_REQUEST, Refusal};

use self::event::Wire;
pub(super) use self::others::{Granted, Others};
pub(super) use self::permit::{Permit, Permits, Permitted};
pub(super) use self::stream::Stream;

/// How many tasks one stream may follow.
const MOST_TASKS: usize = 1_000;

/// What all streams of an endpoint share.
#[derive(Debug)]
pub(crate) struct Listening {
    permits: Arc<Permits>,
    keep_alive: Duration,
    /// Ends all streams.
    stopping: CancellationToken,
}

/// What a listen asks for.
#[derive(Debug)]
pub(super) struct Asked {
    /// The tasks, each once, in their order; `None` if the filter does not speak of tasks.
    pub(super) tasks: Option<Vec<TaskId>>,
    /// The same request without the tasks, for rmcp; `None` if there is nothing else in it.
    pub(super) others: Option<Bytes>,
}

impl Listening {
    /// Streams with this many at most for each principal, that speak up after `keep_alive` of silence and end with `stopping`.
    /// `open` shows how many there are.
    pub(crate) fn new(
        max_per_principal: usize,
        keep_alive: Duration,
        stopping: CancellationToken,
        open: Gauge,
    ) -> Self {
        Self { permits: Arc::new(Permits::new(max_per_principal, open)), keep_alive, stopping }
    }

    /// One stream more of this caller's.
    ///
    /// # Errors
    /// The caller has as many as are allowed.
    pub(super) fn permit(&self, caller: &Caller) -> Result<Permit, Fault<Json>> {
        self.permits.take(&caller.owner.principal).ok_or_else(|| fault::too_many_streams(self.permits.max()))
    }

    /// Opens a stream for tasks under the request's id, with the events of `others` spliced in.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn open(
        &self,
        engine: &Arc<Engine>,
        id: RawId<'_>,
        opening: Opening,
    ) -> Result<Stream, NotFollowed> {
        let Opening { caller, tasks, others, permit, until } = opening;
        let subscription = engine.follow(caller, tasks).await?;
        let wire = Wire::new(id);
        let (granted, others) =
            others.map_or_else(|| (BTreeMap::new(), None), |(granted, others)| (granted, Some(others)));
        let acknowledged = wire.acknowledged(&granted, subscription.open());
        Ok(Stream::new(wire, acknowledged, subscription)
            .with_others(others)
            .keep_alive(self.keep_alive)
            .until(until)
            .until_cancelled(self.stopping.clone())
            .holding(permit))
    }
}

/// The response that a stream is the body of.
pub(super) fn response(stream: Stream) -> Response<Stream> {
    let mut response = Response::new(stream);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// What it takes to open a stream for tasks.
pub(super) struct Opening {
    /// As whom the tasks are followed.
    pub(super) caller: Caller,
    /// Which.
    pub(super) tasks: Vec<TaskId>,
    /// What rmcp granted of the other filters, and its events.
    pub(super) others: Option<(Granted, Others)>,
    /// The place among the caller's streams.
    pub(super) permit: Permit,
    /// When the caller's credentials end.
    pub(super) until: Option<SystemTime>,
}

/// Whether a listen speaks of tasks: the key is there, whatever it says.
pub(super) fn names_tasks(call: &Call<'_>) -> bool {
    members(call.params)
        .and_then(|params| members(params.get("notifications")?))
        .is_some_and(|filter| filter.contains_key("taskIds"))
}

/// Reads a listen. With `tasks` off, the filter's tasks are an unknown type, which is not granted.
///
/// # Errors
/// The filter is missing or not of its shape.
pub(super) fn read(call: &Call<'_>, tasks: bool) -> Result<Asked, Fault<Json>> {
    let malformed = |what: &str| fault::invalid_params(format!("params: {what}"));
    let mut params = members(call.params).ok_or_else(|| malformed("they cannot be read"))?;
    let mut filter = params
        .get("notifications")
        .and_then(|filter| members(filter))
        .ok_or_else(|| malformed("notifications must be an object"))?;
    let mut others = false;
    for key in ["toolsListChanged", "promptsListChanged", "resourcesListChanged"] {
        let asked: Option<bool> =
            value(&filter, key).map_err(|_| malformed(&format!("notifications.{key} must be a boolean")))?;
        others |= asked == Some(true);
    }
    let uris: Option<Vec<String>> = value(&filter, "resourceSubscriptions")
        .map_err(|_| malformed("notifications.resourceSubscriptions must be a list of strings"))?;
    others |= uris.is_some_and(|uris| !uris.is_empty());
    let asked = match filter.remove("taskIds").filter(|_| tasks) {
        Some(ids) => Some(task_ids(ids)?),
        None => None,
    };
    let others = match others {
        true => {
            let filter = raw(&filter)?;
            params.insert("notifications".into(), &filter);
            Some(request(call, &raw(&params)?))
        }
        false => None,
    };
    Ok(Asked { tasks: asked, others })
}

/// The ids that may be tasks', each once; what is no id names no task.
fn task_ids(ids: &RawValue) -> Result<Vec<TaskId>, Fault<Json>> {
    let ids: Vec<Cow<'_, str>> = serde_json::from_str(ids.get())
        .map_err(|_| fault::invalid_params("params: notifications.taskIds must be a list of strings"))?;
    if ids.len() > MOST_TASKS {
        return Err(fault::invalid_params(format!(
            "params: notifications.taskIds has {} tasks; one stream follows at most {MOST_TASKS}",
            ids.len()
        )));
    }
    let mut known = BTreeSet::new();
    Ok(ids.iter().filter_map(|id| id.parse().ok()).filter(|id| known.insert(*id)).collect())
}

/// The members of an object.
fn members(raw: &RawValue) -> Option<BTreeMap<Cow<'_, str>, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// A member that may be missing or `null`.
fn value<T: DeserializeOwned>(
    members: &BTreeMap<Cow<'_, str>, &RawValue>,
    key: &str,
) -> Result<Option<T>, serde_json::Error> {
    members.get(key).map_or(Ok(None), |raw| serde_json::from_str(raw.get()))
}

fn raw(members: &BTreeMap<Cow<'_, str>, &RawValue>) -> Result<Box<RawValue>, Fault<Json>> {
    serde_json::value::to_raw_value(members).map_err(|error| fault::invalid_params(format!("params: {error}")))
}

/// The request with other parameters. rmcp knows ids of 64 bits; what it sends is given our own anyway.
fn request(call: &Call<'_>, params: &RawValue) -> Bytes {
    let id = call.id.as_str();
    let id = if id.starts_with('"') || id.parse::<i64>().is_ok() { id } else { "0" };
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{}}}"#, params.get()))
}

/// 406: there is no other form of this answer.
pub(super) fn check_accepted(headers: &HeaderMap, id: RawId<'_>) -> Result<(), Refusal> {
    match Accepts::of(headers).event_stream {
        true => Ok(()),
        false => {
            let message = "subscriptions/listen answers with an event stream: Accept must list text/event-stream";
            Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, INVALID_REQUEST, message).of(Some(id)))
        }
    }
}
