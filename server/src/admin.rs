//! Where operators and their monitoring look: `/metrics`, `/healthz`, `/readyz`, on a listener of its own.
//!
//! It says what the whole server does, so strangers have no business here: it listens on a loopback address, or asks for a token. On
//! loopback, the `Host` is checked as at the front door, so that no web page reaches it by a name that leads here. Whether the server lives and
//! is ready, everybody may know who reaches it: probes come without tokens.

mod ready;
pub(crate) mod token;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};

pub(crate) use self::ready::Readiness;
use self::token::Token;
use crate::config::Secret;
use crate::engine::Engine;
use crate::listener::ConnectionLimits;
use crate::mcp::origin::Gate;

/// What is enough for a few scrapers and probes.
pub(crate) const LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 64,
    max_header_bytes: 16 << 10,
    max_headers: 100,
    max_concurrent_requests: 16,
    header_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(120),
    write_timeout: Duration::from_secs(30),
};

const TEXT: &str = "text/plain; charset=utf-8";

/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A listener that strangers reach, without a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "without a token only a loopback address will do: whoever reaches {0} could read what this server does; set admin.token, or listen on 127.0.0.1"
)]
pub struct Exposed(
    /// The address.
    pub SocketAddr,
);

/// Whether operators may be served at this address.
///
/// # Errors
/// [`Exposed`]: other machines reach it, and there is no token.
pub fn may_listen(address: SocketAddr, token: Option<&Secret>) -> Result<(), Exposed> {
    match token.is_some() || is_loopback(address) {
        true => Ok(()),
        false => Err(Exposed(address)),
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// What answers operators.
#[derive(Debug)]
pub(crate) struct Admin {
    engine: Arc<Engine>,
    readiness: Readiness,
    token: Option<Token>,
    /// The hosts that a request may name; on a loopback address only.
    gate: Option<Gate>,
}

impl Admin {
    /// What answers at `address`.
    ///
    /// # Errors
    /// [`Exposed`]
    pub(crate) fn new(engine: &Arc<Engine>, address: SocketAddr, token: Option<&Secret>) -> Result<Self, Exposed> {
        may_listen(address, token)?;
        Ok(Self {
            engine: Arc::clone(engine),
            readiness: Readiness::new(Arc::clone(engine)),
            token: token.map(Token::new),
            gate: is_loopback(address).then(|| loopback(address.ip())),
        })
    }

    /// Whether the server can do its work.
    pub(crate) const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The routes.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(Arc::clone(self))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, _) = request.into_parts();
        if let Some(gate) = &self.gate
            && let Err(refusal) = gate.admit(&parts)
        {
            return text(refusal.status, refusal.message.into_owned());
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "use GET");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match parts.uri.path() {
            "/healthz" => text(StatusCode::OK, "ok"),
            "/readyz" => match self.readiness.look().await {
                Ok(()) => text(StatusCode::OK, "ready"),
                Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, reason),
            },
            "/metrics" => match self.token.as_ref().is_none_or(|token| token.is_in(&parts.headers)) {
                true => respond(StatusCode::OK, METRICS, self.engine.metrics().render()),
                false => {
                    let mut answer =
                        text(StatusCode::UNAUTHORIZED, "send the token of [admin]: Authorization: Bearer …");
                    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                    answer
                }
            },
            "/console" => text(StatusCode::NOT_FOUND, "the console is not in this build"),
            _ => text(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz"),
        }
    }
}

/// The names of this machine, and the address itself.
fn loopback(ip: IpAddr) -> Gate {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), ip.to_string()];
    Gate::new(&hosts, &[]).expect("these are hosts")
}

async fn answer(State(admin): State<Arc<Admin>>, request: Request<Body>) -> Response<Body> {
    admin.answer(request).await
}

/// One line.
fn text(status: StatusCode, line: impl Into<String>) -> Response<Body> {
    respond(status, TEXT, line.into() + "\n")
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
