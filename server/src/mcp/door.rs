//! The front door over HTTP: every request climbs the ladder, then takes our short path or rmcp's.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpService;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tokkuri_core::Text;
use tokkuri_core::access::Caller;
use tokkuri_core::admission::{Era, TaskMode};
use tokkuri_core::id::Key;
use tokkuri_core::wire::{CreateTaskResult, Json};

use crate::app::BuildError;
use crate::auth::{self, Challenges, Guard};
use crate::engine::followers::NotFollowed;
use crate::mcp::budget::{Budget, Unread};
use crate::mcp::call::{Admitted, Call as ToolCall, Reply, Undelivered};
use crate::mcp::envelope::{Message, Params, RawId};
use crate::mcp::handler::{Handler, InTheRequest};
use crate::mcp::headers::Named;
use crate::mcp::holding::Holding;
use crate::mcp::ladder::{Call, Head, Ladder, Passed};
use crate::mcp::listen::{self, Listening, Opening, Others, Permit, Permitted};
use crate::mcp::origin::Cors;
use crate::mcp::param_headers::{BadAnnotation, ParamHeaders};
use crate::mcp::pieces::Pieces;
use crate::mcp::refusal::{self, Answer, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Refusal};
use crate::mcp::sessions::{self, OwnedSessions};
use crate::mcp::until::Until;
use crate::mcp::{fault, headers, tasks};
use crate::telemetry::HttpMethod;
use crate::tool::Tool;

/// The endpoint.
pub(crate) struct Door<H> {
    ladder: Ladder,
    handler: Handler<H>,
    rmcp: StreamableHttpService<Handler<H>, OwnedSessions>,
    sessions: Arc<OwnedSessions>,
    /// `[auth]`.
    guard: Option<Arc<Guard>>,
    challenges: Challenges,
    reading: Reading,
    listening: Arc<Listening>,
    /// Our tools with arguments that clients repeat in headers.
    mirrored: BTreeMap<String, ParamHeaders>,
}

/// What reading bodies may take.
#[derive(Debug)]
pub(crate) struct Reading {
    /// How long a client may take to send one.
    pub(crate) timeout: Duration,
    /// What all of them together may take up.
    pub(crate) budget: Arc<Budget>,
}

impl<H> std::fmt::Debug for Door<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Door")
    }
}

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

impl<H: ServerHandler> Door<H> {
    /// A door; `sessions` are those of `rmcp`.
    pub(crate) fn new(
        ladder: Ladder,
        handler: Handler<H>,
        rmcp: StreamableHttpService<Handler<H>, OwnedSessions>,
        sessions: Arc<OwnedSessions>,
        guard: Option<Arc<Guard>>,
        reading: Reading,
        listening: Arc<Listening>,
    ) -> Result<Self, BuildError> {
        let challenges = guard.as_ref().map(|guard| guard.challenges().clone()).unwrap_or_default();
        let mut mirrored = BTreeMap::new();
        for tool in handler.shared.calls.engine.tools().iter() {
            let bad = |bad: BadAnnotation| BuildError::Headers { tool: tool.name.to_string(), reason: bad.to_string() };
            let headers = ParamHeaders::of(&serde_json::Value::Object((*tool.input_schema).clone())).map_err(bad)?;
            if !headers.is_empty() {
                mirrored.insert(tool.name.to_string(), headers);
            }
        }
        Ok(Self { ladder, handler, rmcp, sessions, guard, challenges, reading, listening, mirrored })
    }

    /// What the endpoint is guarded by.
    pub(crate) const fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    /// The streams of tasks, of which a client over stdio has its share.
    pub(crate) const fn listening(&self) -> &Arc<Listening> {
        &self.listening
    }

    /// Answers one HTTP request.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let mut method = HttpMethod::None;
        let response = self.enter(request, &mut method).await;
        self.handler.shared.calls.engine.meters().http(method, response.status());
        response
    }

    /// The answer; `method` becomes what was asked, once that is known.
    async fn enter(&self, request: Request<Body>, method: &mut HttpMethod) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let cors = match self.ladder.admit(&parts) {
            Ok(cors) => cors,
            Err(refusal) => return refusal.into_answer().map(Body::new),
        };
        let mut response =
            self.climb(parts, body, &cors, method).await.unwrap_or_else(|refusal| refusal.into_answer().map(Body::new));
        cors.apply(response.headers_mut());
        response
    }

    async fn climb(
        &self,
        mut parts: Parts,
        body: Body,
        cors: &Cors,
        method: &mut HttpMethod,
    ) -> Result<Response<Body>, Refusal> {
        let head = self.ladder.head(&parts, cors)?;
        if let Head::Preflight(answer) = head {
            return Ok(answer.map(Body::new));
        }
        if let Some(guard) = &self.guard
            && let Err(answer) = guard.admit(&mut parts).await
        {
            return Ok(answer.map(Body::new));
        }
        if let Head::Session = head {
            return Ok(match self.lacks_scope(&self.caller(&parts), &[]) {
                Some(answer) => answer.map(Body::new),
                None => {
                    let expires = auth::expires(&parts);
                    let ends = parts.method == Method::DELETE;
                    let response = self.pass_on_earlier(parts, body).await;
                    match expires {
                        // The official Python client takes rmcp's 202 for a session that did not end.
                        _ if ends && response.status() == StatusCode::ACCEPTED => refusal::no_content().map(Body::new),
                        Some(end) => response.map(|body| Body::new(Until::new(body, end))),
                        None => response,
                    }
                }
            });
        }
        self.ladder.media(&parts.headers)?;
        let body = self.read(body).await?;
        let passed = self.ladder.body(&parts.headers, &body)?;
        *method = match &passed {
            Passed::Modern(call) => HttpMethod::of(&call.method),
            Passed::Earlier(Message::Request(_, message)) => HttpMethod::of(&message.method),
            Passed::Earlier(_) | Passed::Notification => HttpMethod::Other,
        };
        let call = match passed {
            Passed::Modern(call) => call,
            Passed::Notification => {
                let refused = self.lacks_scope(&self.caller(&parts), &[]);
                return Ok(refused.unwrap_or_else(refusal::accepted).map(Body::new));
            }
            // rmcp would ask for the extension, which means nothing in the earlier era (SEP-2663, compatibility). Errors ride
            // on 200 there.
            Passed::Earlier(Message::Request(id, message)) if message.method.starts_with("tasks/") => {
                let mut answer =
                    refusal::error(id, METHOD_NOT_FOUND, &format!("There is no method {:?}.", message.method), None);
                *answer.status_mut() = StatusCode::OK;
                return Ok(answer.map(Body::new));
            }
            Passed::Earlier(message) => {
                if let Some(answer) = self.lacks_scope(&self.caller(&parts), self.scopes_of(&message)) {
                    return Ok(answer.map(Body::new));
                }
                if let Message::Request(id, message) = &message
                    && message.method == "initialize"
                {
                    match self.sessions.seat(&self.caller(&parts)) {
                        Ok(seat) => _ = parts.extensions.insert(seat),
                        Err(fault) => return Ok(refusal::fault(*id, &fault).map(Body::new)),
                    }
                }
                let id = match message {
                    Message::Request(id, _) => Some(id),
                    Message::Notification(_) | Message::Response => None,
                };
                let answering = self.handler.shared.calls.engine.answering();
                let response = self.pass_on_earlier(parts, Full::new(body.clone())).await;
                let response = response.map(|body| Body::new(Holding::new(body, answering)));
                return if is_unread(&response) { Err(unreadable(id)) } else { Ok(response) };
            }
        };
        let way = self.short_path(&parts, &call).await;
        let mut parts = parts;
        if matches!(way, Way::Inline) {
            parts.extensions.insert(InTheRequest);
        }
        match way {
            Way::Short(answer) => Ok(answer.map(Body::new)),
            Way::Created(response) | Way::Stream(response) => Ok(*response),
            Way::Refused(refusal) => Err(*refusal),
            Way::Listen(permit) => {
                let expires = auth::expires(&parts);
                let response = self.pass_on(parts, Full::new(body.clone())).await;
                Ok(response.map(|body| {
                    let body = Body::new(Permitted::new(body, permit));
                    match expires {
                        Some(end) => Body::new(Until::new(body, end)),
                        None => body,
                    }
                }))
            }
            way @ (Way::Long | Way::Inline) => {
                if matches!(way, Way::Inline) {
                    parts.extensions.insert(InTheRequest);
                }
                let answering = self.handler.shared.calls.engine.answering();
                let response = self.pass_on(parts, Full::new(body.clone())).await;
                let response = response.map(|body| Body::new(Holding::new(body, answering)));
                if is_unread(&response) { Err(unreadable(Some(call.id))) } else { Ok(response) }
            }
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes, Refusal> {
        let limit = self.ladder.max_body_bytes();
        match tokio::time::timeout(self.reading.timeout, self.reading.budget.read(body, limit)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Unread::TooLarge)) => Err(Refusal::too_large(limit)),
            Ok(Err(Unread::NoRoom)) => Err(Refusal::no_room_for_the_body()),
            Ok(Err(Unread::Broken(error))) => {
                Err(Refusal::bad_request(INVALID_REQUEST, format!("the body could not be read: {error}")))
            }
            Err(_) => {
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, INVALID_REQUEST, "the body did not arrive in time"))
            }
        }
    }

    fn caller(&self, parts: &Parts) -> Caller {
        self.handler.shared.owners.resolve(Some(parts), &self.handler.shared.identity.name)
    }

    /// The answer to a caller without the scopes that an operation needs: its own, and those of the endpoint.
    fn lacks_scope(&self, caller: &Caller, needed: &[Text]) -> Option<Answer> {
        let covered = caller.scopes.cover(self.challenges.required()) && caller.scopes.cover(needed);
        (!covered).then(|| self.challenges.lacks_scope(needed))
    }

    /// What a message of the earlier era needs: the scopes of the tool that it calls.
    fn scopes_of(&self, message: &Message<'_>) -> &[Text] {
        let Message::Request(_, body) = message else { return &[] };
        let name = Params::read(body.params).ok().and_then(|params| params.named(Named::Name));
        match (&*body.method, name) {
            ("tools/call", Some(name)) => {
                self.handler.shared.calls.engine.tools().find(&name).map_or(&[], |tool| &tool.scopes)
            }
            _ => &[],
        }
    }

    /// What is ours of the modern era; everything else goes the long way, through rmcp.
    async fn short_path(&self, parts: &Parts, call: &Call<'_>) -> Way {
        // Calls of tools say what else they need.
        if call.method != "tools/call"
            && let Some(answer) = self.lacks_scope(&self.caller(parts), &[])
        {
            return Way::Short(answer);
        }
        let engine = &self.handler.shared.calls.engine;
        let (caller, challenges) = (|| self.caller(parts), &self.challenges);
        match &*call.method {
            "tasks/get" | "tasks/update" | "tasks/cancel" if !call.meta.declared.tasks => {
                Way::Short(tasks::refuse(call, &fault::needs_tasks()))
            }
            "tasks/get" => Way::Short(tasks::get(engine, challenges, call, caller()).await),
            "tasks/update" => Way::Short(tasks::update(engine, challenges, call, caller()).await),
            "tasks/cancel" => Way::Short(tasks::cancel(engine, challenges, call, caller()).await),
            "subscriptions/listen" => self.listen(parts, call).await,
            "tools/call" => self.tool_call(parts, call).await,
            "prompts/get" | "resources/read" if call.name.is_none() => Way::Short(tasks::refuse(
                call,
                &fault::invalid_params("params: what is asked for is missing or no string"),
            )),
            _ => Way::Long,
        }
    }

    async fn listen(&self, parts: &Parts, call: &Call<'_>) -> Way {
        let engine = &self.handler.shared.calls.engine;
        let enabled = engine.settings().enabled;
        if enabled && !call.meta.declared.tasks && listen::names_tasks(call) {
            return Way::Short(tasks::refuse(call, &fault::needs_tasks()));
        }
        let asked = match listen::read(call, enabled) {
            Ok(asked) => asked,
            Err(fault) => return Way::Short(tasks::refuse(call, &fault)),
        };
        if let Err(refusal) = listen::check_accepted(&parts.headers, call.id) {
            return Way::Refused(Box::new(refusal));
        }
        let caller = self.caller(parts);
        let permit = match self.listening.permit(&caller) {
            Ok(permit) => permit,
            Err(fault) => return Way::Short(tasks::refuse(call, &fault)),
        };
        let Some(tasks) = asked.tasks else { return Way::Listen(permit) };
        let others = match asked.others {
            Some(request) => Others::open(self.pass_on(parts.clone(), Full::new(request)).await).await,
            None => None,
        };
        let opening = Opening { caller, tasks, others, permit, until: auth::expires(parts) };
        match self.listening.open(engine, call.id, opening).await {
            Ok(stream) => Way::Stream(Box::new(listen::response(stream).map(Body::new))),
            Err(NotFollowed::LacksScope { needed }) => Way::Short(self.challenges.lacks_scope(&needed)),
            Err(NotFollowed::Unavailable(unavailable)) => {
                Way::Short(tasks::refuse(call, &fault::unavailable(&unavailable)))
            }
        }
    }

    async fn tool_call(&self, parts: &Parts, call: &Call<'_>) -> Way {
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
                Way::Created(Box::new(answer.map(|body| Body::new(Delivery { body, undelivered }))))
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

    /// To rmcp, where the sessions of other callers do not exist.
    async fn pass_on_earlier<B>(&self, mut parts: Parts, body: B) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let owner = self.caller(&parts).owner;
        let session = parts.headers.get(headers::SESSION_ID).and_then(|session| session.to_str().ok());
        if session.is_some_and(|session| self.sessions.is_foreign(session, &owner)) {
            parts.headers.insert(headers::SESSION_ID, sessions::NEVER);
        }
        self.pass_on(parts, body).await
    }

    async fn pass_on<B>(&self, mut parts: Parts, body: B) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        // Our ladder is lenient where rmcp is not, and has looked at these itself.
        headers::accept_both(&mut parts.headers);
        if parts.method == Method::POST {
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            // The body may be another than the one that was sent.
            parts.headers.remove(http::header::CONTENT_LENGTH);
        }
        self.rmcp.handle(Request::from_parts(parts, body)).await.map(Body::new)
    }
}

/// Where a request of the modern era goes.
enum Way {
    /// This is the answer.
    Short(Answer),
    /// This is the answer, and it has to arrive.
    Created(Box<Response<Body>>),
    /// This is the answer, for as long as it lasts.
    Stream(Box<Response<Body>>),
    /// Something is wrong that the ladder could not see.
    Refused(Box<Refusal>),
    /// To rmcp, whose answer is a stream that holds this place.
    Listen(Permit),
    /// To rmcp.
    Long,
    /// To rmcp, to run in the request whatever its mode says.
    Inline,
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

/// Whether rmcp could not read the body, which our ladder found to be JSON: it has no other use for this status.
fn is_unread(response: &Response<Body>) -> bool {
    response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
}

/// JSON that has no place in the types of the long way: numbers beyond 64 bits, lone surrogates.
fn unreadable(id: Option<RawId<'_>>) -> Refusal {
    match id {
        Some(id) if !id.is_common() => Refusal::bad_request(
            INVALID_REQUEST,
            "id must be a string of Unicode text or an integer of 64 bits for this method",
        ),
        Some(_) => Refusal::new(
            StatusCode::OK,
            INVALID_PARAMS,
            "params hold what this method cannot read: a lone surrogate, a number out of range, or a member of another type",
        ),
        None => Refusal::bad_request(INVALID_REQUEST, "the message holds what cannot be read"),
    }
    .of(id)
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

/// The body of a create reply: dropped before its bytes were taken, it cancels the task that nobody will hear of.
struct Delivery {
    body: Pieces,
    undelivered: Undelivered,
}

impl http_body::Body for Delivery {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if self.body.is_end_stream() {
            self.undelivered.delivered();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
