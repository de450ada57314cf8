//! What clients see of a task.

use serde::ser::{SerializeMap, Serializer};
use serde::{Serialize, Serialize as SerializeTrait};

use crate::task::{Fault, Live, Phase, Task};
use crate::wire::{COMPLETE, Json};

/// The result of `tasks/get`: a `DetailedTask` with `resultType` "complete", whatever the task's status.
#[derive(Debug)]
pub struct DetailedTask<'a>(pub &'a Task<Json>);

/// The answer to a `tools/call` that became a task: no result, no error, no questions, whatever has happened since.
#[derive(Debug)]
pub struct CreateTaskResult<'a>(pub &'a Task<Json>);

/// The parameters of `notifications/tasks`: what `tasks/get` says at that moment, without `resultType`. `M` is their `_meta`.
#[derive(Debug)]
pub struct TaskNotification<'a, M> {
    /// The task.
    pub task: &'a Task<Json>,
    /// `_meta`, with the subscription's id.
    pub meta: M,
}

impl SerializeTrait for DetailedTask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", COMPLETE)?;
        head(self.0, self.0.status().as_str(), &mut map)?;
        body(self.0, &mut map)?;
        map.end()
    }
}

impl SerializeTrait for CreateTaskResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", "task")?;
        head(self.0, self.0.status().as_str(), &mut map)?;
        map.end()
    }
}

impl<M: Serialize> SerializeTrait for TaskNotification<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("_meta", &self.meta)?;
        head(self.task, self.task.status().as_str(), &mut map)?;
        body(self.task, &mut map)?;
        map.end()
    }
}

fn head<M: SerializeMap>(task: &Task<Json>, status: &str, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("taskId", &task.id)?;
    map.serialize_entry("status", status)?;
    if let Some(message) = &task.status_message {
        map.serialize_entry("statusMessage", message)?;
    }
    map.serialize_entry("createdAt", &task.origin.created.iso8601())?;
    map.serialize_entry("lastUpdatedAt", &task.updated.iso8601())?;
    map.serialize_entry("ttlMs", &task.ttl_ms)?;
    map.serialize_entry("pollIntervalMs", &task.origin.poll_interval_ms)
}

fn body<M: SerializeMap>(task: &Task<Json>, map: &mut M) -> Result<(), M::Error> {
    match &task.phase {
        Phase::Live(live) if live.outstanding().next().is_some() => {
            map.serialize_entry("inputRequests", &Requests(live))
        }
        Phase::Live(_) | Phase::Cancelled => Ok(()),
        Phase::Completed(result) => map.serialize_entry("result", result),
        Phase::Failed(fault) => map.serialize_entry("error", &Error(fault)),
    }
}

struct Requests<'a>(&'a Live<Json>);

impl SerializeTrait for Requests<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.outstanding())
    }
}

struct Error<'a>(&'a Fault<Json>);

impl SerializeTrait for Error<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.0.code)?;
        map.serialize_entry("message", &self.0.message)?;
        if let Some(data) = &self.0.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::access::Owner;
    use crate::id::{NodeId, TaskId};
    use crate::task::{Command, Draft};
    use crate::time::Millis;

    fn task() -> Task<Json> {
        let owner = Owner { principal: "p".into(), server: "s".into(), client: "".into(), resource: "".into() };
        let draft = Draft::new(TaskId::from_bytes([0; 18]), owner, "t", Json::parse("{}").unwrap(), NodeId(1));
        Draft { ttl_ms: 1_000, poll_interval_ms: 250, keep_ms: 10, ..draft }.created(Millis(0))
    }

    #[test]
    fn a_working_task() {
        let text = serde_json::to_string(&DetailedTask(&task())).unwrap();
        assert_eq!(
            text,
            r#"{"resultType":"complete","taskId":"AAAAAAAAAAAAAAAAAAAAAAAA","status":"working","#.to_owned()
                + r#""createdAt":"1970-01-01T00:00:00Z","lastUpdatedAt":"1970-01-01T00:00:00Z","#
                + r#""ttlMs":1000,"pollIntervalMs":250}"#
        );
    }

    #[test]
    fn only_outstanding_questions_are_shown_and_none_in_the_create_reply() {
        let mut task = task();
        let by = task.attempt;
        let request = Json::parse(r#"{"method":"roots/list"}"#).unwrap();
        task.apply(Millis(0), Command::Ask { by, key: "k".into(), request }, &mut Vec::new()).unwrap();
        let text = serde_json::to_string(&DetailedTask(&task)).unwrap();
        assert!(text.ends_with(r#""inputRequests":{"k":{"method":"roots/list"}}}"#), "{text}");
        let reply = serde_json::to_string(&CreateTaskResult(&task)).unwrap();
        assert!(reply.starts_with(r#"{"resultType":"task""#) && !reply.contains("inputRequests"), "{reply}");
    }

    #[test]
    fn a_result_stands_as_it_was_given_and_an_error_has_no_empty_data() {
        let mut done = task();
        let by = done.attempt;
        let result = Json::parse(r#"{"x":1e300,"y":"\ud800"}"#).unwrap();
        done.apply(Millis(5), Command::Complete { by, result, message: None }, &mut Vec::new()).unwrap();
        let text = serde_json::to_string(&DetailedTask(&done)).unwrap();
        assert!(text.ends_with(r#""result":{"x":1e300,"y":"\ud800"}}"#), "{text}");

        let mut failed = task();
        failed.apply(Millis(5), Command::Fail { by, fault: Fault::internal("no") }, &mut Vec::new()).unwrap();
        let text = serde_json::to_string(&TaskNotification { task: &failed, meta: 7 }).unwrap();
        assert!(text.starts_with(r#"{"_meta":7,"taskId""#), "{text}");
        assert!(text.ends_with(r#""error":{"code":-32603,"message":"no"}}"#), "{text}");
    }
}
