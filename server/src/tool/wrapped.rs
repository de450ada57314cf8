//! A tool of the user's rmcp handler, run as a task.
//!
//! Each run calls the handler inside an in-process rmcp service of its own. What the handler asks for (`InputRequired`) become
//! the task's questions, its progress the status message, and its cancellation token fires when the run has to stop.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::try_join_all;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientJsonRpcMessage, ClientRequest,
    ErrorCode, GetMeta, Implementation, InitializeRequestParams, InputRequiredResult, InputResponses, NumberOrString,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject, ServerConfig,
    ServerJsonRpcMessage, ServerNotification, ServerResult, Tool as RmcpTool,
};
use rmcp::service::{RequestContext, serve_directly_with_ct};
use rmcp::transport::OneshotTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::wire::Json;

use crate::tool::body::Prepare;
use crate::tool::{Body, BodyFuture, Content, PrepareContext, PrepareError, RunContext, Tool, ToolError, ToolResult};

/// How many rounds of questions one call of the handler may take: more is a handler that never comes to its end.
const MAX_ROUNDS: usize = 100;

/// A handler's tool as one of ours.
pub(crate) fn tool<H: ServerHandler>(handler: &Arc<H>, listed: &RmcpTool) -> Tool {
    let name = listed.name.clone().into_owned();
    let body = Wrapped { handler: Arc::clone(handler), name: name.clone(), grace: Duration::ZERO };
    let mut tool = Tool::with_body(name, listed.input_schema.as_ref().clone(), body);
    tool.wrapped = true;
    tool
}

/// Makes a wrapped tool ask on the request itself before it becomes a task.
pub(crate) fn asking_first<H: ServerHandler>(handler: &Arc<H>, mut tool: Tool) -> Tool {
    tool.prepare = Some(Arc::new(AskingFirst { handler: Arc::clone(handler), name: tool.name().to_owned() }));
    tool
}

/// Gives the handler as long after its cancellation token fired as the tool's grace is.
pub(crate) fn with_grace<H: ServerHandler>(handler: &Arc<H>, mut tool: Tool) -> Tool {
    let body = Wrapped { handler: Arc::clone(handler), name: tool.name().to_owned(), grace: tool.grace };
    tool.body = Arc::new(body);
    tool
}

struct Wrapped<H> {
    handler: Arc<H>,
    name: String,
    grace: Duration,
}

impl<H> std::fmt::Debug for Wrapped<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wrapped").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a call brings along: its arguments, and what was asked and answered before there was a task.
#[derive(Clone, Serialize, Deserialize)]
struct Brought {
    #[serde(rename = "tokkuri.arguments")]
    arguments: Value,
    #[serde(rename = "tokkuri.responses")]
    responses: InputResponses,
    #[serde(rename = "tokkuri.state")]
    state: Option<String>,
}

impl Brought {
    fn read(arguments: &Json) -> Result<Self, ToolError> {
        match arguments.read::<Self>() {
            Ok(brought) => Ok(brought),
            Err(_) => Ok(Self { arguments: arguments.read()?, responses: InputResponses::new(), state: None }),
        }
    }
}

impl<H: ServerHandler> Body for Wrapped<H> {
    fn run(&self, arguments: Json, cx: RunContext) -> BodyFuture {
        let (handler, name, grace) = (Arc::clone(&self.handler), self.name.clone(), self.grace);
        Box::pin(async move {
            let mut brought = Brought::read(&arguments)?;
            for round in 0..MAX_ROUNDS {
                let call = Call { handler: &handler, name: &name, grace, capabilities: cx.capabilities };
                let asked = match call.put(&brought, Some(&cx)).await? {
                    Answer::Result(result) => return Ok(result),
                    Answer::InputRequired(asked) => asked,
                };
                let requests = asked.input_requests.unwrap_or_default();
                let answers = try_join_all(requests.iter().map(|(key, request)| {
                    let cx = &cx;
                    async move {
                        let answer = cx.ask_raw(key_of_round(round, key), Json::of(request)?).await?;
                        Ok::<_, ToolError>((key.clone(), answer.read::<Value>()?))
                    }
                }));
                brought.responses = answers.await?.into_iter().collect();
                brought.state = asked.request_state;
            }
            Err(ToolError::internal(format!("The tool asked {MAX_ROUNDS} times and did not come to its end.")))
        })
    }
}

/// A handler may use a key again in a later round, since to it each round is a reply of its own; to a task a key is used once.
fn key_of_round(round: usize, key: &str) -> String {
    if round == 0 { key.to_owned() } else { format!("{key}#{}", round + 1) }
}

struct AskingFirst<H> {
    handler: Arc<H>,
    name: String,
}

impl<H> std::fmt::Debug for AskingFirst<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskingFirst").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<H: ServerHandler> Prepare for AskingFirst<H> {
    fn prepare(
        &self,
        arguments: Json,
        cx: PrepareContext,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), PrepareError>> + Send>> {
        let (handler, name) = (Arc::clone(&self.handler), self.name.clone());
        Box::pin(async move {
            let mut brought = Brought::read(&arguments)?;
            let call = Call { handler: &handler, name: &name, grace: Duration::ZERO, capabilities: cx.capabilities };
            // The first round of the handler's questions is asked here; it is put again on every retry, and its answers then
            // go into the task.
            match call.put(&brought, None).await? {
                Answer::Result(result) => Err(PrepareError::Answered(result)),
                Answer::InputRequired(asked) => {
                    let requests = asked.input_requests.unwrap_or_default();
                    let answers = try_join_all(requests.iter().map(|(key, request)| {
                        let cx = &cx;
                        async move {
                            let request = Json::of(request).map_err(ToolError::from)?;
                            let answer = cx.ask_raw(key.clone(), request).await?;
                            Ok::<_, PrepareError>((key.clone(), answer.read::<Value>().map_err(ToolError::from)?))
                        }
                    }));
                    brought.responses = answers.await?.into_iter().collect();
                    brought.state = asked.request_state;
                    cx.set_arguments(&brought)?;
                    Ok(())
                }
            }
        })
    }
}

/// One call of the handler.
struct Call<'a, H> {
    handler: &'a Arc<H>,
    name: &'a str,
    grace: Duration,
    capabilities: Capabilities,
}

enum Answer {
    Result(ToolResult),
    InputRequired(InputRequiredResult),
}

impl<H: ServerHandler> Call<'_, H> {
    /// Puts it, and tells its progress. Dropped, it fires the handler's cancellation token.
    async fn put(&self, brought: &Brought, cx: Option<&RunContext>) -> Result<Answer, ToolError> {
        let mut params = CallToolRequestParams::new(self.name.to_owned());
        params.arguments = brought.arguments.as_object().cloned();
        params.input_responses = Some(brought.responses.clone()).filter(|responses| !responses.is_empty());
        params.request_state.clone_from(&brought.state);
        let client = Implementation::new("tokkuri", env!("CARGO_PKG_VERSION"));
        let capabilities = declared(self.capabilities);
        let mut meta =
            RequestMetaObject::with_client_context(ProtocolVersion::V_2026_07_28, client.clone(), capabilities.clone());
        if cx.is_some() {
            meta.set_progress_token(ProgressToken(NumberOrString::Number(0)));
        }
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        *request.get_meta_mut() = meta;
        if let (ClientRequest::CallToolRequest(request), Some(cx)) = (&mut request, cx) {
            // What our own tools see of their caller, the handler sees as well.
            request.extensions.insert(cx.info().clone());
        }

        let message = ClientJsonRpcMessage::request(request, RequestId::Number(0));
        let (transport, mut replies) = OneshotTransport::<RoleServer>::new(message);
        let cancel = CancellationToken::new();
        let told = cancel.clone().drop_guard();
        let peer = InitializeRequestParams::new(capabilities, client);
        let once = Once { handler: Arc::clone(self.handler), grace: self.grace };
        let running = serve_directly_with_ct(once, transport, Some(peer), cancel);
        let reply = loop {
            match replies.recv().await {
                Some(ServerJsonRpcMessage::Notification(notification)) => {
                    if let (ServerNotification::ProgressNotification(progress), Some(cx)) =
                        (notification.notification, cx)
                    {
                        tell(cx, &progress.params);
                    }
                }
                Some(ServerJsonRpcMessage::Response(response)) => break Ok(response.result),
                Some(ServerJsonRpcMessage::Error(error)) => break Err(error.error),
                // Requests of the server's own have no place in this era.
                Some(_) => {}
                None => break Err(ErrorData::internal_error("The tool gave no answer.", None)),
            }
        };
        drop((running, told));
        match reply {
            Ok(ServerResult::CallToolResult(result)) => Ok(Answer::Result(result_of(&json!(result))?)),
            Ok(ServerResult::InputRequiredResult(asked)) => Ok(Answer::InputRequired(asked)),
            Ok(_) => Err(ToolError::internal("The tool made a task of its own, which a task cannot hold.")),
            Err(error) => {
                let data = error.data.as_ref().map(Json::from);
                Err(ToolError::rpc(i64::from(error.code.0), error.message.into_owned(), data))
            }
        }
    }
}

fn tell(cx: &RunContext, progress: &ProgressNotificationParam) {
    // The fractions of the protocol's progress are of no use to a status message.
    let whole = |number: f64| number.max(0.0).round() as u64;
    cx.progress(whole(progress.progress), progress.total.map(whole), progress.message.as_deref().unwrap_or_default());
}

/// rmcp's result as ours: every content block as it was.
fn result_of(result: &Value) -> Result<ToolResult, ToolError> {
    let content = result.get("content").and_then(Value::as_array).into_iter().flatten();
    Ok(ToolResult {
        content: content.map(|block| Content::Block(Json::from(block))).collect(),
        structured: result.get("structuredContent").map(Json::from),
        is_error: result.get("isError").is_some_and(|is| *is == Value::Bool(true)),
        meta: result.get("_meta").map(Json::from),
    })
}

/// The creating request's capabilities in the words of the wire.
fn declared(asks: Capabilities) -> ClientCapabilities {
    let mut declared = serde_json::Map::new();
    let part = |is: bool, name: &str| is.then(|| (name.to_owned(), json!({})));
    if asks.form || asks.url {
        let parts = [part(asks.form, "form"), part(asks.url, "url")];
        declared.insert("elicitation".into(), Value::Object(parts.into_iter().flatten().collect()));
    }
    if asks.sampling {
        let parts = [part(asks.sampling_tools, "tools"), part(asks.sampling_context, "context")];
        declared.insert("sampling".into(), Value::Object(parts.into_iter().flatten().collect()));
    }
    if asks.roots {
        declared.insert("roots".into(), json!({}));
    }
    serde_json::from_value(Value::Object(declared)).unwrap_or_default()
}

/// The handler for one call: a panic in it becomes an error, since rmcp would leave the call without a reply.
struct Once<H> {
    handler: Arc<H>,
    grace: Duration,
}

impl<H: ServerHandler> ServerHandler for Once<H> {
    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        let cancelled = context.ct.clone();
        let call = AssertUnwindSafe(self.handler.call_tool(request, context)).catch_unwind();
        let mut call = std::pin::pin!(call);
        let outcome = tokio::select! {
            // The handler is polled first: it sees its token before it is dropped.
            biased;
            outcome = &mut call => outcome,
            () = cancelled.cancelled() => match tokio::time::timeout(self.grace, call).await {
                Ok(outcome) => outcome,
                Err(_) => return Err(ErrorData::internal_error("The call was cancelled.", None)),
            },
        };
        outcome.unwrap_or_else(|_| {
            tracing::error!(tool = %name, "the tool panicked");
            Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "The tool stopped unexpectedly.", None))
        })
    }
}
