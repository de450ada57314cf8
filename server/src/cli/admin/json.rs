//! Results for programs, in the words of the MCP wire where it has any.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use super::time::iso;
use crate::cluster::proto::{Node, Task, TaskStatus};

/// One value on one line.
pub(super) fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)?;
    out.flush()
}

/// A task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonTask<'a> {
    task_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    tool: &'a str,
    owner: BTreeMap<&'static str, &'a str>,
    node: JsonNodeName<'a>,
    attempt: u32,
    restartable: bool,
    revision: u64,
    created_at: String,
    last_updated_at: String,
    expires_at: String,
    scopes: &'a [String],
    open_questions: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    questions: Option<BTreeMap<&'a str, JsonQuestion>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonFault<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonNodeName<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct JsonQuestion {
    request: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct JsonFault<'a> {
    code: i64,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

/// A task as JSON, with its payloads if it came with them.
pub(super) fn task(task: &Task) -> JsonTask<'_> {
    let owner = task.owner.iter().flat_map(|owner| {
        [
            ("principal", &*owner.principal),
            ("server", &*owner.server),
            ("client", &*owner.client),
            ("resource", &*owner.resource),
        ]
    });
    let payloads = task.payloads.as_ref();
    JsonTask {
        task_id: &task.id,
        status: status(task),
        status_message: task.status_message.as_deref(),
        tool: &task.tool,
        owner: owner.filter(|(_, value)| !value.is_empty()).collect(),
        node: JsonNodeName { id: &task.node_id, name: task.node_name.as_deref() },
        attempt: task.attempt,
        restartable: task.restartable,
        revision: task.revision,
        created_at: iso(task.created_at.as_ref()),
        last_updated_at: iso(task.updated_at.as_ref()),
        expires_at: iso(task.expires_at.as_ref()),
        scopes: &task.scopes,
        open_questions: &task.open_questions,
        error_code: task.error_code,
        arguments: payloads.and_then(|it| raw(it.arguments_json.as_deref())),
        questions: payloads.filter(|it| !it.questions.is_empty()).map(|it| {
            let question = |question: &crate::cluster::proto::Question| JsonQuestion {
                request: raw(Some(&question.request_json)),
                answer: raw(question.answer_json.as_deref()),
            };
            it.questions.iter().map(|(key, it)| (key.as_str(), question(it))).collect()
        }),
        result: payloads.and_then(|it| raw(it.result_json.as_deref())),
        error: payloads.and_then(|it| it.fault.as_ref()).map(|fault| JsonFault {
            code: fault.code,
            message: &fault.message,
            data: raw(fault.data_json.as_deref()),
        }),
    }
}

/// A task's status in the word of the wire.
pub(super) fn status(task: &Task) -> &'static str {
    match task.status() {
        TaskStatus::Unspecified => "unknown",
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "input_required",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

/// A node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonNode<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    version: &'a str,
    alive: bool,
    leased_until: String,
    runs: u32,
    queued: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    drain: Option<String>,
    drained: bool,
    answering: bool,
}

/// A node as JSON.
pub(super) fn node(node: &Node) -> JsonNode<'_> {
    JsonNode {
        id: &node.id,
        name: &node.name,
        address: node.address.as_deref(),
        version: &node.version,
        alive: node.alive,
        leased_until: iso(node.leased_until.as_ref()),
        runs: node.runs,
        queued: node.queued,
        drain: node.drain.as_ref().map(|drain| iso(Some(drain))),
        drained: node.drained,
        answering: node.answering,
    }
}

/// JSON text as it is, byte for byte.
fn raw(text: Option<&str>) -> Option<Box<RawValue>> {
    RawValue::from_string(text?.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::proto::TaskPayloads;

    #[test]
    fn payloads_come_byte_for_byte_and_only_if_they_are_there() {
        let mut one = Task { id: "T".to_owned(), status: TaskStatus::Completed.into(), ..Task::default() };
        let plain = serde_json::to_value(task(&one)).unwrap();
        assert_eq!((&plain["taskId"], &plain["status"]), (&"T".into(), &"completed".into()));
        assert!(plain.get("result").is_none() && plain.get("arguments").is_none());
        let text = "{\"n\":123456789012345678901234567890,\"f\":1e300,\"s\":\"\\ud800\"}";
        one.payloads = Some(TaskPayloads { result_json: Some(text.to_owned()), ..TaskPayloads::default() });
        let mut out = Vec::new();
        line(&mut out, &task(&one)).unwrap();
        assert!(String::from_utf8(out).unwrap().contains(text));
    }
}
