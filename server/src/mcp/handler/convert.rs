//! Between rmcp's types and ours. Values cross as JSON text, so nothing of them is interpreted twice.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, ErrorCode, GetTaskResult, InputRequests,
    InputRequiredResult, ProgressNotificationParam, Tool as RmcpTool, ToolAnnotations, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokkuri_core::access::Caller;
use tokkuri_core::admission::Era;
use tokkuri_core::id::{Key, TaskId};
use tokkuri_core::procedure::{Answered, Written};
use tokkuri_core::task::Fault;
use tokkuri_core::wire::{self, Json};

use super::{Handler, declared, era, session};
use crate::auth;
use crate::mcp::call::{Admitted, Call, Door, Progress, Reply, Told};
use crate::mcp::{fault, tasks};
use crate::tool::{Session, Tool};

/// A tool as rmcp lists it.
pub(super) fn tool(tool: &Tool) -> RmcpTool {
    let mut listed = RmcpTool::new(tool.name().to_owned(), tool.description.clone(), Arc::clone(&tool.input_schema));
    listed.title.clone_from(&tool.title);
    listed.output_schema.clone_from(&tool.output_schema);
    if let Some(hints) = &tool.annotations {
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = hints.read_only;
        annotations.destructive_hint = hints.destructive;
        annotations.idempotent_hint = hints.idempotent;
        annotations.open_world_hint = hints.open_world;
        listed.annotations = Some(annotations);
    }
    listed
}

/// A JSON-RPC error.
pub(super) fn error(fault: &Fault<Json>) -> ErrorData {
    let code = i32::try_from(fault.code).unwrap_or(-32603);
    let data = fault.data.as_ref().and_then(|data| data.read::<Value>().ok());
    ErrorData::new(ErrorCode(code), fault.message.to_string(), data)
}

/// A call of one of our tools.
pub(super) async fn call<H: ServerHandler>(
    handler: &Handler<H>,
    tool: Arc<Tool>,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let original = request.clone();
    let calls = &handler.shared.calls;
    let caller = caller(handler, &context);
    // Over HTTP the door has said so already, with the status that only it can give.
    if !caller.scopes.cover(&tool.scopes) {
        return Err(error(&fault::lacks_scope(&tool.scopes)));
    }
    let traceparent = context.meta.get_traceparent().map(Into::into);
    let call = Call {
        info: auth::call_info(&caller, &tool, traceparent),
        tool,
        arguments: Json::from(&Value::Object(request.arguments.unwrap_or_default())),
        responses: request.input_responses.unwrap_or_default().iter().map(answer).collect(),
        state: request.request_state,
        era: era(&context),
        declared: declared(&context),
        caller,
    };
    let (asker, questions) = session::session();
    let session: Option<Box<dyn Session>> = match call.era {
        Era::Modern => None,
        Era::Earlier => Some(Box::new(asker)),
    };
    let progress = context.meta.get_progress_token().map(|token| (token, Arc::new(Progress::default())));
    let door = Door {
        cancelled: context.ct.clone(),
        progress: progress.as_ref().map(|(_, progress)| Arc::clone(progress)),
        session,
    };
    // The door sent this call on because it is to run in the request, whatever its mode says.
    let inline = context
        .extensions
        .get::<http::request::Parts>()
        .is_some_and(|it| it.extensions.get::<InTheRequest>().is_some());
    if call.tool.wrapped {
        // In the request the user's handler runs it, as it always did.
        let admitted = if inline { Admitted::Inline } else { calls.admit(&call).await };
        return match admitted {
            Admitted::Inline => handler.inner.call_tool(original, context).await,
            Admitted::Reply(reply) => response(reply),
        };
    }
    let run = async {
        match inline {
            true => calls.run_inline(call, door).await,
            false => calls.carry_out(call, door).await,
        }
    };
    let asking = session::put(&context.peer, questions);
    let run = async {
        tokio::select! {
            reply = run => reply,
            () = asking => unreachable!("asking never ends"),
        }
    };
    let reply = match progress {
        None => run.await,
        Some((token, progress)) => {
            let tell = |told: Told| {
                let mut param = ProgressNotificationParam::new(token.clone(), told.done as f64);
                param.total = told.total.map(|total| total as f64);
                param.message = Some(told.message).filter(|message| !message.is_empty());
                context.peer.notify_progress(param)
            };
            let telling = async {
                loop {
                    // A client that is gone is told by the token, not by this.
                    let _ = tell(progress.next().await).await;
                    tokio::time::sleep(Progress::INTERVAL).await;
                }
            };
            let reply = tokio::select! {
                reply = run => reply,
                () = telling => unreachable!("telling never ends"),
            };
            if let Some(last) = progress.take() {
                let _ = tell(last).await;
            }
            reply
        }
    };
    response(reply)
}

/// Put into a request's extensions by the door: the call runs in the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTheRequest;

fn response(reply: Reply) -> Result<CallToolResponse, ErrorData> {
    match reply {
        Reply::Task(task) => Ok(CallToolResponse::Task(typed::<CreateTaskResult>(&wire::CreateTaskResult(&task))?)),
        Reply::Result(result) => Ok(CallToolResponse::Complete(read::<CallToolResult>(&result)?)),
        Reply::InputRequired { requests, state } => {
            let requests: InputRequests = typed(&requests)?;
            Ok(CallToolResponse::InputRequired(InputRequiredResult::new(Some(requests), Some(state))))
        }
        Reply::Fault(fault) => Err(error(&fault)),
        Reply::Closed(closed) => Err(error(&fault::closed(closed))),
    }
}

pub(super) fn caller<H: ServerHandler>(handler: &Handler<H>, context: &RequestContext<RoleServer>) -> Caller {
    handler.shared.owners.resolve(context.extensions.get::<http::request::Parts>(), &handler.shared.identity.name)
}

pub(super) async fn get<H: ServerHandler>(
    handler: &Handler<H>,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let Ok(id) = id.parse::<TaskId>() else { return Err(error(&fault::no_such_task())) };
    let answered = handler.shared.calls.engine.get(id, caller(handler, context)).await;
    match answered {
        Answered::Task(task) => typed(&wire::DetailedTask(&task)),
        Answered::Absent => Err(error(&fault::no_such_task())),
        Answered::LacksScope { needed } => Err(error(&fault::lacks_scope(&needed))),
        Answered::Unavailable(unavailable) => Err(error(&fault::unavailable(&unavailable))),
    }
}

pub(super) async fn update<H: ServerHandler>(
    handler: &Handler<H>,
    request: UpdateTaskParams,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let Ok(id) = request.task_id.parse::<TaskId>() else { return Err(error(&fault::no_such_task())) };
    let answers = request.input_responses.iter().map(answer).collect();
    tasks::fit(&handler.shared.calls.engine, &answers).map_err(|fault| error(&fault))?;
    acknowledged(handler.shared.calls.engine.update(id, caller(handler, context), answers).await)
}

pub(super) async fn cancel<H: ServerHandler>(
    handler: &Handler<H>,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let Ok(id) = id.parse::<TaskId>() else { return Err(error(&fault::no_such_task())) };
    acknowledged(handler.shared.calls.engine.cancel(id, caller(handler, context)).await)
}

fn acknowledged(written: Written<Json>) -> Result<(), ErrorData> {
    match written {
        Written::Done(_) => Ok(()),
        Written::Absent => Err(error(&fault::no_such_task())),
        Written::LacksScope { needed } => Err(error(&fault::lacks_scope(&needed))),
        Written::Rejected { why, .. } => Err(error(&fault::rejected(&why))),
        Written::Unavailable(unavailable) => Err(error(&fault::unavailable(&unavailable))),
    }
}

fn answer((key, value): (&String, &Value)) -> (Key, Json) {
    (Key::from(key.as_str()), Json::from(value))
}

fn typed<T: DeserializeOwned>(value: &impl serde::Serialize) -> Result<T, ErrorData> {
    let json = Json::of(value).map_err(|failure| error(&Fault::internal(failure.to_string())))?;
    read(&json)
}

/// rmcp's types cannot hold all that JSON text can, a lone surrogate for one: such a result can only be had as a task.
fn read<T: DeserializeOwned>(json: &Json) -> Result<T, ErrorData> {
    json.read().map_err(|failure| {
        error(&Fault::internal(format!("The result cannot be sent in this kind of reply: {failure}")))
    })
}
