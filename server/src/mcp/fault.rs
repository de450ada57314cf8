//! What a client is told when it does not get what it asked for: one place for codes and words.

use serde_json::{Map, Value, json};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::store::Unavailable;
use tokkuri_core::task::{Fault, Rejected};
use tokkuri_core::wire::{Json, TASKS_EXTENSION};

/// JSON-RPC: the request is not one that can be carried out.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the parameters are wrong; MCP: there is no such thing.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// MCP 2026-07-28: the request does not declare a capability that it needs.
pub(crate) const MISSING_CAPABILITY: i64 = -32021;

/// Wrong parameters.
pub(crate) fn invalid_params(message: impl Into<tokkuri_core::Text>) -> Fault<Json> {
    Fault { code: INVALID_PARAMS, message: message.into(), data: None }
}

/// The one answer for a task that is unknown, expired, or somebody else's (tasks extension, § tasks/get).
pub(crate) fn no_such_task() -> Fault<Json> {
    invalid_params("There is no such task.")
}

/// There is no such tool.
pub(crate) fn no_such_tool(name: &str) -> Fault<Json> {
    invalid_params(format!("There is no tool {name:?}."))
}

/// The request has to declare the tasks extension.
pub(crate) fn needs_tasks() -> Fault<Json> {
    missing_capability(
        "This needs the tasks extension: declare it in the request's clientCapabilities.",
        &json!({ "extensions": { TASKS_EXTENSION: {} } }),
    )
}

/// The request has to declare what a question needs.
pub(crate) fn needs(missing: Capabilities) -> Fault<Json> {
    let mut required = Map::new();
    let mut put = |is: bool, name: &str, part: Option<&str>| {
        if is {
            let entry = required.entry(name).or_insert_with(|| json!({}));
            if let (Some(part), Value::Object(entry)) = (part, entry) {
                entry.insert(part.to_owned(), json!({}));
            }
        }
    };
    put(missing.form, "elicitation", Some("form"));
    put(missing.url, "elicitation", Some("url"));
    put(missing.sampling, "sampling", None);
    put(missing.sampling_tools, "sampling", Some("tools"));
    put(missing.sampling_context, "sampling", Some("context"));
    put(missing.roots, "roots", None);
    missing_capability("The tool has to ask what the request's clientCapabilities do not declare.", &required.into())
}

fn missing_capability(message: &'static str, required: &Value) -> Fault<Json> {
    let data = json!({ "requiredCapabilities": required });
    Fault { code: MISSING_CAPABILITY, message: message.into(), data: Some(Json::from(&data)) }
}

/// The owner's live tasks have reached their limit, and the tool runs only as a task.
pub(crate) fn at_the_limit(limit: u32) -> Fault<Json> {
    let message = format!(
        "You have {limit} tasks that have not ended, which is the limit (tasks.max_per_principal). Wait for one to end, or cancel one."
    );
    Fault { code: INVALID_REQUEST, message: message.into(), data: None }
}

/// The caller's credentials lack scopes, and there is no HTTP status to say so.
pub(crate) fn lacks_scope(needed: &[tokkuri_core::Text]) -> Fault<Json> {
    let message = format!("This needs the scopes {:?}.", needed.join(" "));
    Fault { code: INVALID_REQUEST, message: message.into(), data: None }
}

/// The principal has as many streams open as are allowed.
pub(crate) fn too_many_streams(limit: usize) -> Fault<Json> {
    let message = format!(
        "You have {limit} streams open, which is the limit (server.max_streams_per_principal). Close one, or poll with tasks/get."
    );
    Fault { code: INVALID_REQUEST, message: message.into(), data: None }
}

/// The principal has as many sessions open as are allowed.
pub(crate) fn too_many_sessions(limit: usize) -> Fault<Json> {
    let message = format!(
        "You have {limit} sessions open, which is the limit (server.max_sessions_per_principal). End one with DELETE, or let it rest until it expires."
    );
    Fault { code: INVALID_REQUEST, message: message.into(), data: None }
}

/// More bytes than the store keeps for a client.
pub(crate) fn too_many_bytes(what: &str, bytes: usize, limit: usize) -> Fault<Json> {
    invalid_params(format!("The {what} have {bytes} bytes, and at most {limit} are kept (tasks.max_argument_bytes)."))
}

/// The store cannot do it now.
pub(crate) fn unavailable(unavailable: &Unavailable) -> Fault<Json> {
    tracing::error!(why = %unavailable.why, "the store is not available");
    Fault::internal("The task store is not available at the moment. Try again.")
}

/// The node takes no new tasks now.
pub(crate) fn closed(closed: crate::engine::Closed) -> Fault<Json> {
    let data = json!({ "retryAfterMs": 1_000 });
    Fault { data: Some(Json::from(&data)), ..Fault::internal(closed.to_string()) }
}

/// The one place where core's refusals become JSON-RPC errors.
pub(crate) fn rejected(rejected: &Rejected) -> Fault<Json> {
    match rejected {
        Rejected::Expired => no_such_task(),
        Rejected::Misfit { .. } | Rejected::TooManyQuestions { .. } => invalid_params(rejected.to_string()),
        Rejected::Undeclared { missing } => needs(*missing),
        // Only runs are refused so, and runs are not told over the wire.
        Rejected::Ended | Rejected::StaleAttempt => Fault::internal(rejected.to_string()),
    }
}
