//! Judges every message that the server sends: by the published JSON schemas, and by what the specification says in prose.
//!
//! The schemas are copies, in `tests/schema/`. The tasks extension leaves much to prose (what a status forbids, that an
//! acknowledgement carries nothing); that is in `task_faults` and its neighbours.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Reply, is_terminal};

/// Which rules a message is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28 with the tasks extension.
    Modern,
    /// 2025-11-25.
    Earlier,
}

/// Judges the answer to a request (`id` is absent for notifications).
///
/// # Panics
/// If anything in it breaks the rules; the panic lists all that does.
#[track_caller]
pub fn judge(era: Era, method: &str, id: Option<&Value>, reply: &Reply) {
    let mut faults = Vec::new();
    for notification in &reply.notifications {
        faults.extend(notification_faults(era, notification));
    }
    if reply.message.is_null() {
        // Refusals below JSON-RPC and accepted notifications may come without a body.
        if !matches!(reply.status, 202 | 401 | 403 | 405 | 406 | 413 | 415) {
            faults.push("no JSON-RPC message".into());
        }
    } else {
        faults.extend(response_faults(era, method, id, reply.status, &reply.message));
    }
    if reply.body.contains("SECRET-BOOM") {
        faults.push("the text of a panic reached the client".into());
    }
    assert!(
        faults.is_empty(),
        "{method} answered what breaks the rules:\n{}\nHTTP {} {}",
        faults.join("\n"),
        reply.status,
        reply.body
    );
}

/// What is wrong with a response to `method`.
pub fn response_faults(era: Era, method: &str, id: Option<&Value>, status: u16, message: &Value) -> Vec<String> {
    let source = era.source();
    let mut faults = Vec::new();
    if message.get("id") != id {
        faults.push(format!("the id is not the request's: {:?}, not {id:?}", message.get("id")));
    }
    let Some(result) = message.get("result") else {
        faults.extend(breaches(source, "JSONRPCErrorResponse", message));
        if era == Era::Modern {
            faults.extend(error_faults(status, message));
        }
        return faults;
    };
    faults.extend(breaches(source, "JSONRPCResultResponse", message));
    if status != 200 {
        faults.push("a result on another status than 200".into());
    }
    faults.extend(match era {
        Era::Modern => modern_result_faults(method, result),
        Era::Earlier => earlier_result_faults(method, result),
    });
    faults
}

/// What is wrong with a message that the server sent before its response.
pub fn notification_faults(era: Era, message: &Value) -> Vec<String> {
    if era == Era::Earlier && message.get("id").is_some() {
        return breaches(era.source(), "JSONRPCRequest", message);
    }
    let definition = match (era, message["method"].as_str().unwrap_or_default()) {
        (_, "notifications/progress") => "ProgressNotification",
        (_, "notifications/message") => "LoggingMessageNotification",
        (Era::Modern, "notifications/tasks") => {
            let mut faults = breaches(Source::Tasks, "TaskStatusNotification", message);
            faults.extend(task_faults(&message["params"], true));
            if message["params"].get("resultType").is_some() {
                faults.push("a notification has no resultType".into());
            }
            return faults;
        }
        (Era::Modern, "notifications/subscriptions/acknowledged") => "SubscriptionsAcknowledgedNotification",
        (Era::Modern, "notifications/tools/list_changed") => "ToolListChangedNotification",
        (Era::Modern, "notifications/prompts/list_changed") => "PromptListChangedNotification",
        (Era::Modern, "notifications/resources/list_changed") => "ResourceListChangedNotification",
        (Era::Modern, "notifications/resources/updated") => "ResourceUpdatedNotification",
        _ => "JSONRPCNotification",
    };
    let mut faults = breaches(era.source(), definition, message);
    if message.get("id").is_some() {
        faults.push("a request from the server".into());
    }
    faults
}

/// What is wrong with a message on the stream of the listen request `id`.
pub fn stream_faults(id: &Value, message: &Value) -> Vec<String> {
    let (mut faults, meta) = match message.get("method").and_then(Value::as_str) {
        Some(method) => {
            let mut faults = notification_faults(Era::Modern, message);
            if matches!(method, "notifications/progress" | "notifications/message") {
                faults.push(format!("{method} has no place on a stream"));
            }
            if method == "notifications/subscriptions/acknowledged" {
                let granted = &message["params"]["notifications"];
                faults.extend(breaches(Source::Tasks, "TaskSubscriptionAcknowledgedNotifications", granted));
            }
            (faults, &message["params"]["_meta"])
        }
        None => {
            let mut faults = breaches(Source::Modern, "SubscriptionsListenResultResponse", message);
            if message["id"] != *id {
                faults.push("the id is not the request's".into());
            }
            (faults, &message["result"]["_meta"])
        }
    };
    if meta[super::listen::SUBSCRIPTION_ID] != *id {
        faults.push(format!("subscriptionId is {}, not {id}", meta[super::listen::SUBSCRIPTION_ID]));
    }
    faults
}

fn error_faults(status: u16, message: &Value) -> Vec<String> {
    let code = message["error"]["code"].as_i64().unwrap_or_default();
    let mut faults = match code {
        -32020 => breaches(Source::Modern, "HeaderMismatchError", message),
        -32021 => breaches(Source::Modern, "MissingRequiredClientCapabilityError", message),
        -32022 => breaches(Source::Modern, "UnsupportedProtocolVersionError", message),
        _ => Vec::new(),
    };
    let fits = match code {
        -32022..=-32020 => status == 400,
        -32601 => status == 404,
        -32099..=-32023 | -32002 => {
            faults.push(format!("{code} must not be used"));
            true
        }
        // A node that drains says so to whatever balances, too.
        -32603 => matches!(status, 200 | 503),
        _ => matches!(status, 200 | 400),
    };
    if !fits {
        faults.push(format!("{code} on HTTP {status}"));
    }
    faults
}

fn modern_result_faults(method: &str, result: &Value) -> Vec<String> {
    let kind = result["resultType"].as_str().unwrap_or_default();
    let (source, definition) = match (method, kind) {
        ("server/discover", _) => (Source::Modern, "DiscoverResult"),
        ("tools/list", _) => (Source::Modern, "ListToolsResult"),
        ("tools/call", "task") => (Source::Tasks, "CreateTaskResult"),
        ("tools/call" | "prompts/get" | "resources/read", "input_required") => (Source::Modern, "InputRequiredResult"),
        ("tools/call", _) => (Source::Modern, "CallToolResult"),
        ("tasks/get", _) => (Source::Tasks, "GetTaskResult"),
        ("tasks/update", _) => (Source::Tasks, "UpdateTaskResult"),
        ("tasks/cancel", _) => (Source::Tasks, "CancelTaskResult"),
        _ => (Source::Modern, "Result"),
    };
    let mut faults = breaches(source, definition, result);
    let kinds: &[&str] = match method {
        "tools/call" => &["complete", "input_required", "task"],
        "prompts/get" | "resources/read" => &["complete", "input_required"],
        _ => &["complete"],
    };
    if !kinds.contains(&kind) {
        faults.push(format!("resultType {kind:?}"));
    }
    match (method, kind) {
        ("tools/call", "task") => faults.extend(task_faults(result, false)),
        ("tasks/get", _) => faults.extend(task_faults(result, true)),
        ("tasks/update" | "tasks/cancel", _) => faults.extend(strangers(result, &["resultType"])),
        ("server/discover", _) if result["capabilities"].get("tasks").is_some() => {
            faults.push("discover advertises the earlier `capabilities.tasks`".into());
        }
        (_, "input_required") if result.get("inputRequests").is_none() && result.get("requestState").is_none() => {
            faults.push("input_required asks nothing".into());
        }
        _ => {}
    }
    faults
}

/// What a task result may not be: fields that its status forbids, times that go back, ids that could be guessed.
fn task_faults(task: &Value, detailed: bool) -> Vec<String> {
    let status = task["status"].as_str().unwrap_or_default();
    let detail = match status {
        _ if !detailed => None,
        "input_required" => Some("inputRequests"),
        "completed" => Some("result"),
        "failed" => Some("error"),
        _ => None,
    };
    let mut allowed = vec![
        "resultType",
        "taskId",
        "status",
        "statusMessage",
        "createdAt",
        "lastUpdatedAt",
        "ttlMs",
        "pollIntervalMs",
    ];
    allowed.extend(detail);
    let mut faults = strangers(task, &allowed);

    let time = |field: &str| task[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    match (time("createdAt"), time("lastUpdatedAt")) {
        (Some(created), Some(updated)) if created <= updated => {}
        _ => faults.push("createdAt and lastUpdatedAt are two times in order".into()),
    }
    if !task["ttlMs"].is_null() && task["ttlMs"].as_i64().is_none_or(|ttl| ttl <= 0) {
        faults.push("ttlMs is positive or null".into());
    }
    if !task["taskId"].as_str().is_some_and(is_task_id) {
        faults.push("taskId is 24 characters of base64url".into());
    }
    if !detailed && is_terminal(status) {
        return faults;
    }
    match status {
        "failed" if task["statusMessage"].as_str().is_none_or(str::is_empty) => {
            faults.push("a failed task says why in statusMessage".into());
        }
        "input_required" if detailed && task["inputRequests"].as_object().is_none_or(|map| map.is_empty()) => {
            faults.push("input_required without a question".into());
        }
        "completed" => {
            let result = &task["result"];
            faults.extend(breaches(Source::Modern, "CallToolResult", result));
            if result["resultType"] != "complete" {
                faults.push("the inner result is what the call would have answered: resultType complete".into());
            }
            if result["_meta"].get("io.modelcontextprotocol/related-task").is_some() {
                faults.push("related-task is of the earlier era".into());
            }
        }
        _ => {}
    }
    faults
}

/// 144 random bits in base64url.
fn is_task_id(id: &str) -> bool {
    id.len() == 24 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn earlier_result_faults(method: &str, result: &Value) -> Vec<String> {
    let definition = match method {
        "initialize" => "InitializeResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        _ => "Result",
    };
    let mut faults = breaches(Source::Earlier, definition, result);
    for field in ["resultType", "ttlMs", "cacheScope", "taskId", "inputRequests"] {
        if result.get(field).is_some() {
            faults.push(format!("{field} is of the modern era"));
        }
    }
    faults
}

fn strangers(object: &Value, allowed: &[&str]) -> Vec<String> {
    let keys = object.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    keys.filter(|key| *key != "_meta" && !allowed.contains(key))
        .map(|key| format!("`{key}` has no place here"))
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Modern,
    Tasks,
    Earlier,
}

impl Era {
    fn source(self) -> Source {
        match self {
            Self::Modern => Source::Modern,
            Self::Earlier => Source::Earlier,
        }
    }
}

fn breaches(source: Source, definition: &'static str, instance: &Value) -> Vec<String> {
    let validator = validator(source, definition);
    validator.iter_errors(instance).map(|e| format!("{definition}: {} at `{}`", e, e.instance_path())).collect()
}

/// The validator of one definition, compiled at its first use: a test needs few of the two hundred.
fn validator(source: Source, definition: &'static str) -> Arc<Validator> {
    type Compiled = BTreeMap<(Source, &'static str), Arc<Validator>>;
    static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
    static DEFINITIONS: LazyLock<[Value; 3]> = LazyLock::new(|| {
        [
            include_str!("../../schema/mcp-2026-07-28.schema.json"),
            include_str!("../../schema/ext-tasks.schema.json"),
            include_str!("../../schema/mcp-2025-11-25.schema.json"),
        ]
        .map(|text| serde_json::from_str::<Value>(text).expect("the schema is JSON")["$defs"].take())
    });
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = compiled.entry((source, definition)).or_insert_with(|| {
        let definitions = &DEFINITIONS[source as usize];
        assert!(definitions.get(definition).is_some(), "no definition {definition}");
        let schema = json!({"$ref": format!("#/$defs/{definition}"), "$defs": definitions});
        Arc::new(jsonschema::draft202012::new(&schema).expect("the schema compiles"))
    });
    Arc::clone(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "tk_9QmAAAAAAAAAAAAAAAAA-z";

    fn faults(method: &str, result: Value) -> Vec<String> {
        let message = json!({"jsonrpc": "2.0", "id": 9, "result": result});
        response_faults(Era::Modern, method, Some(&json!(9)), 200, &message)
    }

    fn task(status: &str) -> Value {
        json!({"resultType": "complete", "taskId": &ID[..24], "status": status, "createdAt": "2026-09-01T08:00:00Z",
            "lastUpdatedAt": "2026-09-01T08:00:41Z", "ttlMs": 3_600_000, "pollIntervalMs": 1000})
    }

    #[track_caller]
    fn good(method: &str, result: Value) {
        assert_eq!(faults(method, result), Vec::<String>::new());
    }

    #[track_caller]
    fn bad(method: &str, result: Value) {
        assert_ne!(faults(method, result.clone()), Vec::<String>::new(), "{result}");
    }

    #[test]
    fn what_the_specification_shows_is_good() {
        good("tasks/get", task("working"));
        good("tasks/cancel", json!({"resultType": "complete", "_meta": {}}));
        let mut completed = task("completed");
        completed["result"] =
            json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}], "isError": false});
        good("tasks/get", completed);
        let mut created = task("working");
        created["resultType"] = "task".into();
        good("tools/call", created);
        let mut asking = task("input_required");
        asking["inputRequests"] = json!({"k": {"method": "elicitation/create", "params": {"mode": "form", "message": "?",
            "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}}});
        good("tasks/get", asking);
        good(
            "server/discover",
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "ttlMs": 1, "cacheScope": "public"}),
        );
    }

    #[test]
    fn what_it_forbids_is_not() {
        bad("tasks/get", task("completed"));
        bad("tasks/get", task("input_required"));
        bad("tasks/get", task("paused"));
        for (field, value) in [("result", json!({})), ("error", json!({"code": 1, "message": "m"})), ("ttl", json!(1))]
        {
            let mut working = task("working");
            working[field] = value;
            bad("tasks/get", working);
        }
        for (field, value) in
            [("ttlMs", json!(0)), ("taskId", json!("1")), ("lastUpdatedAt", json!("2020-01-01T00:00:00Z"))]
        {
            let mut working = task("working");
            working[field] = value;
            bad("tasks/get", working);
        }
        let mut failed = task("failed");
        failed["error"] = json!({"code": -32603, "message": "m"});
        bad("tasks/get", failed.clone());
        failed["statusMessage"] = "m".into();
        good("tasks/get", failed);
        bad("tools/call", task("working"));
        bad("tools/call", json!({"content": []}));
        bad("tasks/cancel", json!({"resultType": "complete", "taskId": "1"}));
        bad("tasks/cancel", json!({}));
    }

    #[test]
    fn errors_ride_on_the_status_that_is_theirs() {
        let error = |status, code: i64, data: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 9, "error": {"code": code, "message": "m", "data": data}});
            response_faults(Era::Modern, "tasks/get", Some(&json!(9)), status, &message)
        };
        assert!(error(404, -32601, Value::Null).is_empty());
        assert!(!error(200, -32601, Value::Null).is_empty());
        assert!(error(400, -32021, json!({"requiredCapabilities": {"extensions": {"x/y": {}}}})).is_empty());
        assert!(!error(400, -32021, json!({"requiredCapabilities": ["x/y"]})).is_empty());
        assert!(!error(400, -32021, Value::Null).is_empty());
        assert!(!error(200, -32042, Value::Null).is_empty());
        assert!(error(503, -32603, Value::Null).is_empty());
        assert!(!error(503, -32602, Value::Null).is_empty());
        assert!(
            !response_faults(
                Era::Modern,
                "ping",
                None,
                400,
                &json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32700, "message": "m"}})
            )
            .is_empty(),
            "an error without a readable id has none"
        );
    }
}
