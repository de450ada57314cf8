//! `tools/call` of the modern era: what is wrong with it, and whether it becomes a task.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use http::StatusCode;
use http::request::Parts;
use rmcp::ServerHandler;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokkuri_core::admission::{Era, TaskMode};
use tokkuri_core::id::Key;
use tokkuri_core::wire::{CreateTaskResult, Json};

use super::Door;
use super::delivery::Delivery;
use super::modern::Way;
use crate::auth;
use crate::mcp::call::{Admitted, Call as ToolCall, Reply, Undelivered};
use crate::mcp::ladder::Call;
use crate::mcp::param_headers::ParamHeaders;
use crate::mcp::refusal::{self, INVALID_PARAMS, Refusal};
use crate::mcp::{fault, tasks};
use crate::tool::Tool;

/// Parameters of `tools/call`.
#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "inputResponses", borrow, default, deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(rename = "requestState", borrow, default)]
    request_state: Option<Cow<'a, str>>,
}

/// A member that is there, `null` included: what is there has to be of its type.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(serde::Serialize)]
struct InputRequired<'a> {
    #[serde(rename = "resultType")]
    result_type: &'a str,
    #[serde(rename = "inputRequests")]
    input_requests: &'a BTreeMap<Key, Json>,
    #[serde(rename = "requestState")]
    request_state: &'a str,
}

impl<H: ServerHandler> Door<H> {
    pub(super) async fn tool_call(&self, parts: &Parts, call: &Call<'_>) -> Way {
        // rmcp would take malformed parameters for an unknown method.
        let params = match tasks::params::<CallParams<'_>>(call) {
            Ok(params) => params,
            Err(fault) => return Way::Short(tasks::refuse(call, &fault)),
        };
        let arguments = params.arguments.map_or("{}", RawValue::get);
        if !arguments.starts_with('{') {
            return Way::Short(tasks::refuse(call, &fault::invalid_params("params: arguments must be an object")));
        }
        let responses: BTreeMap<Cow<'_, str>, &RawValue> = match params.input_responses.map(RawValue::get) {
            None => BTreeMap::new(),
            Some(responses) => match serde_json::from_str(responses) {
                Ok(responses) => responses,
                Err(_) => {
                    let fault = fault::invalid_params("params: inputResponses must be an object");
                    return Way::Short(tasks::refuse(call, &fault));
                }
            },
        };
        let calls = &self.handler.shared.calls;
        let (caller, tool) = (self.caller(parts), calls.engine.tools().find(&params.name));
        if let Some(answer) = self.lacks_scope(&caller, tool.map_or(&[], |tool| &tool.scopes)) {
            return Way::Short(answer);
        }
        let Some(tool) = tool else { return Way::Long };
        let declares = call.meta.declared.tasks;
        // What lacks the capability is told so first.
        if (declares || tool.mode() != TaskMode::Required)
            && let Some(headers) = self.mirrored.get(tool.name())
            && let Err(refusal) = check_headers(headers, parts, arguments)
        {
            return Way::Short(refusal.of(Some(call.id)).into_answer());
        }
        if !takes_short_path(tool, calls.engine.settings().enabled, declares) {
            return Way::Long;
        }
        let traceparent = call.meta.traceparent.as_deref().map(Into::into);
        let tool_call = ToolCall {
            info: auth::call_info(&caller, tool, traceparent),
            tool: Arc::clone(tool),
            arguments: match Json::parse(arguments) {
                Ok(arguments) => arguments,
                Err(error) => {
                    return Way::Short(tasks::refuse(call, &fault::invalid_params(format!("params: {error}"))));
                }
            },
            responses: responses.iter().map(|(key, value)| (Key::from(&**key), Json::from(*value))).collect(),
            state: params.request_state.map(Cow::into_owned),
            era: Era::Modern,
            declared: call.meta.declared,
            caller,
        };
        match calls.admit(&tool_call).await {
            Admitted::Inline => Way::Inline,
            Admitted::Reply(Reply::Task(task)) => {
                let answer = refusal::result(call.id, &CreateTaskResult(&task));
                let undelivered = Undelivered::new(&calls.engine, &task);
                Way::Created(Box::new(answer.map(|body| Body::new(Delivery::new(body, undelivered)))))
            }
            Admitted::Reply(Reply::Result(result)) => Way::Short(refusal::result_text(call.id, result.as_str())),
            Admitted::Reply(Reply::InputRequired { requests, state }) => {
                let result =
                    InputRequired { result_type: "input_required", input_requests: &requests, request_state: &state };
                Way::Short(refusal::result(call.id, &result))
            }
            Admitted::Reply(Reply::Fault(fault)) => Way::Short(tasks::refuse(call, &fault)),
            Admitted::Reply(Reply::Closed(closed)) => Way::Short(tasks::closed(call, closed)),
        }
    }
}

fn check_headers(headers: &ParamHeaders, parts: &Parts, arguments: &str) -> Result<(), Refusal> {
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| Refusal::new(StatusCode::OK, INVALID_PARAMS, format!("arguments cannot be read: {error}")))?;
    headers.check(&parts.headers, Some(&arguments))
}

/// Calls that become a task or are refused for not being able to.
fn takes_short_path(tool: &Tool, tasks_enabled: bool, declares_tasks: bool) -> bool {
    let may_be_task = match tool.mode() {
        TaskMode::None => false,
        TaskMode::Optional => declares_tasks,
        TaskMode::Required => true,
    };
    tasks_enabled && may_be_task
}
