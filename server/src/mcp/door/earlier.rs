//! Requests of the earlier era, and those of its sessions: rmcp answers them, for those whose sessions they are.

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use rmcp::ServerHandler;
use tokkuri_core::Text;

use super::Door;
use crate::auth;
use crate::mcp::envelope::{Message, Params};
use crate::mcp::headers::{self, Named};
use crate::mcp::refusal::{self, METHOD_NOT_FOUND, Refusal};
use crate::mcp::sessions;
use crate::mcp::until::Until;

impl<H: ServerHandler> Door<H> {
    /// The stream of a session, or its end.
    pub(super) async fn session(&self, mut parts: Parts, body: Body) -> Response<Body> {
        if let Some(answer) = self.lacks_scope(&self.caller(&parts), &[]) {
            return answer.map(Body::new);
        }
        let expires = auth::expires(&parts);
        let ends = parts.method == Method::DELETE;
        self.hide_from_strangers(&mut parts);
        let response = self.pass_on(parts, body).await;
        match expires {
            // The official Python client takes rmcp's 202 for a session that did not end.
            _ if ends && response.status() == StatusCode::ACCEPTED => refusal::no_content().map(Body::new),
            Some(end) => response.map(|body| Body::new(Until::new(body, end))),
            None => response,
        }
    }

    /// A message.
    pub(super) async fn earlier(
        &self,
        mut parts: Parts,
        body: &Bytes,
        message: &Message<'_>,
    ) -> Result<Response<Body>, Refusal> {
        // rmcp would ask for the extension, which means nothing in the earlier era (SEP-2663, compatibility). Errors ride on 200
        // there.
        if let Message::Request(id, message) = message
            && message.method.starts_with("tasks/")
        {
            let mut answer =
                refusal::error(*id, METHOD_NOT_FOUND, &format!("There is no method {:?}.", message.method), None);
            *answer.status_mut() = StatusCode::OK;
            return Ok(answer.map(Body::new));
        }
        if let Some(answer) = self.lacks_scope(&self.caller(&parts), self.scopes_of(message)) {
            return Ok(answer.map(Body::new));
        }
        if let Message::Request(id, message) = message
            && message.method == "initialize"
        {
            match self.sessions.seat(&self.caller(&parts)) {
                Ok(seat) => _ = parts.extensions.insert(seat),
                Err(fault) => return Ok(refusal::fault(*id, &fault).map(Body::new)),
            }
        }
        let id = match message {
            Message::Request(id, _) => Some(*id),
            Message::Notification(_) | Message::Response => None,
        };
        self.hide_from_strangers(&mut parts);
        self.long_way(parts, body, id).await
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

    /// For other callers a session does not exist.
    fn hide_from_strangers(&self, parts: &mut Parts) {
        let owner = self.caller(parts).owner;
        let session = parts.headers.get(headers::SESSION_ID).and_then(|session| session.to_str().ok());
        if session.is_some_and(|session| self.sessions.is_foreign(session, &owner)) {
            parts.headers.insert(headers::SESSION_ID, sessions::NEVER);
        }
    }
}
