//! The front door over HTTP: every request climbs the ladder, then takes our short path or rmcp's.

mod delivery;
mod earlier;
mod modern;
mod tool_call;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpService;
use tokkuri_core::Text;
use tokkuri_core::access::Caller;

use crate::app::BuildError;
use crate::auth::{Challenges, Guard};
use crate::mcp::budget::{Budget, Unread};
use crate::mcp::envelope::{Message, RawId};
use crate::mcp::handler::Handler;
use crate::mcp::headers;
use crate::mcp::holding::Holding;
use crate::mcp::ladder::{Head, Ladder, Passed};
use crate::mcp::listen::Listening;
use crate::mcp::origin::Cors;
use crate::mcp::param_headers::{BadAnnotation, ParamHeaders};
use crate::mcp::refusal::{self, Answer, INVALID_PARAMS, INVALID_REQUEST, Refusal};
use crate::mcp::sessions::OwnedSessions;
use crate::telemetry::HttpMethod;

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
            return Ok(self.session(parts, body).await);
        }
        self.ladder.media(&parts.headers)?;
        let body = self.read(body).await?;
        let passed = self.ladder.body(&parts.headers, &body)?;
        *method = match &passed {
            Passed::Modern(call) => HttpMethod::of(&call.method),
            Passed::Earlier(Message::Request(_, message)) => HttpMethod::of(&message.method),
            Passed::Earlier(_) | Passed::Notification => HttpMethod::Other,
        };
        match passed {
            Passed::Modern(call) => self.modern(parts, &body, &call).await,
            Passed::Earlier(message) => self.earlier(parts, &body, &message).await,
            Passed::Notification => {
                let refused = self.lacks_scope(&self.caller(&parts), &[]);
                Ok(refused.unwrap_or_else(refusal::accepted).map(Body::new))
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

    /// To rmcp, with a message that our ladder has read: its answer keeps the server up until it is out, and what rmcp could not
    /// read is refused in our words.
    async fn long_way(&self, parts: Parts, body: &Bytes, id: Option<RawId<'_>>) -> Result<Response<Body>, Refusal> {
        let answering = self.handler.shared.calls.engine.answering();
        let response = self.pass_on(parts, Full::new(body.clone())).await;
        if is_unread(&response) {
            return Err(unreadable(id));
        }
        Ok(response.map(|body| Body::new(Holding::new(body, answering))))
    }

    /// To rmcp.
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
