//! The validation ladder: what is wrong with a request, said in the order that clients of both eras rely on.
//!
//! Head first ([`Ladder::admit`], [`Ladder::head`]), then, after whoever is calling has been made out, what the body is to be
//! ([`Ladder::media`]) and the whole of it ([`Ladder::body`]). What comes out has a good envelope and a known method; parameters, scopes and capabilities are the method's to
//! judge. The order is that of MCP 2026-07-28, Streamable HTTP § Server Validation, with the era told as § Backward Compatibility has it.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use rmcp::model::ProtocolVersion;
use serde_json::json;
use serde_json::value::RawValue;
use tokkuri_core::wire::Json;

use crate::mcp::depth::is_deeper;
use crate::mcp::envelope::{Body, Message, Meta, Params, RawId};
use crate::mcp::headers::{Accepts, METHOD, NAME, Named, PROTOCOL_VERSION, SESSION_ID, Single, is_json};
use crate::mcp::origin::{BadEntry, Cors, Gate};
use crate::mcp::refusal::{
    Answer, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Refusal, UNSUPPORTED_VERSION,
};

/// The first version without a handshake.
const FIRST_MODERN: &str = "2026-07-28";

/// Tells whether a method is one that this server has in the modern era.
pub(crate) type Known = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What a ladder is set up with.
pub(crate) struct Settings {
    /// `name`, `name:port`, or `*`.
    pub(crate) allowed_hosts: Vec<String>,
    /// `scheme://host`, `scheme://host:port` or `scheme://host:*`.
    pub(crate) allowed_origins: Vec<String>,
    /// Largest body that is read.
    pub(crate) max_body_bytes: usize,
    /// How deeply the objects and arrays of a body may be nested.
    pub(crate) max_depth: usize,
    /// Versions as `server/discover` lists them, newest first. Those before the modern era that rmcp speaks are served without being
    /// listed.
    pub(crate) supported: Vec<String>,
    /// The methods of the modern era.
    pub(crate) known: Known,
}

impl Settings {
    /// Loopback only, no foreign origin, 4 MiB.
    pub(crate) fn new(known: Known) -> Self {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        Self {
            allowed_hosts: owned(&["localhost", "127.0.0.1", "::1"]),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
            max_depth: 64,
            supported: owned(&["2026-07-28", "2025-11-25", "2025-06-18"]),
            known,
        }
    }
}

/// The ladder of one endpoint.
pub(crate) struct Ladder {
    gate: Gate,
    max_body_bytes: usize,
    max_depth: usize,
    supported: Vec<String>,
    known: Known,
}

/// What a request is, by its head.
#[derive(Debug)]
pub(crate) enum Head {
    /// A POST: go on with [`Ladder::media`], read the body, no more than `max_body_bytes` of it, and then [`Ladder::body`].
    Post,
    /// A GET or DELETE of a session of the earlier era: rmcp's.
    Session,
    /// A preflight, and its answer.
    Preflight(Answer),
}

/// A body that has passed.
#[derive(Debug)]
pub(crate) enum Passed<'a> {
    /// A request of the modern era.
    Modern(Call<'a>),
    /// A notification of the modern era: there is none that means anything to us over HTTP, so 202 is all it gets.
    Notification,
    /// A message of the earlier era: rmcp's.
    Earlier(Message<'a>),
}

/// A request of the modern era whose envelope is good.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    /// Its id.
    pub(crate) id: RawId<'a>,
    /// Its method, one of the known ones.
    pub(crate) method: Cow<'a, str>,
    /// What it is about: the tool, prompt, resource or task that `Mcp-Name` repeats. `None` for methods without that header, and where
    /// the parameter is missing or no string: then `params` are malformed.
    pub(crate) name: Option<Cow<'a, str>>,
    /// Its parameters, an object.
    pub(crate) params: &'a RawValue,
    /// Its `_meta`.
    pub(crate) meta: Meta<'a>,
}

impl Ladder {
    /// A ladder.
    ///
    /// # Errors
    /// If a host or an origin is none.
    pub(crate) fn new(settings: Settings) -> Result<Self, BadEntry> {
        let Settings { allowed_hosts, allowed_origins, max_body_bytes, max_depth, supported, known } = settings;
        Ok(Self { gate: Gate::new(&allowed_hosts, &allowed_origins)?, max_body_bytes, max_depth, supported, known })
    }

    /// Largest body that is read.
    pub(crate) fn max_body_bytes(&self) -> usize {
        self.max_body_bytes
    }

    /// First rung: `Host` and `Origin`. Apply what it returns to every answer of this request, refusals included.
    ///
    /// # Errors
    /// 400 or 403.
    pub(crate) fn admit(&self, parts: &Parts) -> Result<Cors, Refusal> {
        self.gate.admit(parts)
    }

    /// Second rung: the HTTP method.
    ///
    /// # Errors
    /// 405.
    pub(crate) fn head(&self, parts: &Parts, cors: &Cors) -> Result<Head, Refusal> {
        if let Some(answer) = cors.preflight(parts) {
            return Ok(Head::Preflight(answer));
        }
        let headers = &parts.headers;
        if parts.method != Method::POST {
            let of_session = matches!(parts.method, Method::GET | Method::DELETE)
                && headers.contains_key(SESSION_ID)
                && !matches!(Single::of(headers, &PROTOCOL_VERSION), Single::One(version) if is_modern(version));
            return if of_session { Ok(Head::Session) } else { Err(Refusal::method_not_allowed()) };
        }
        Ok(Head::Post)
    }

    /// The rung after authentication: what else the head of a POST says.
    ///
    /// # Errors
    /// 415, 406 or 413.
    pub(crate) fn media(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let refuse = |status, message| Err(Refusal::new(status, INVALID_REQUEST, message));
        if !is_json(headers) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        let accepts = Accepts::of(headers);
        if !accepts.json && !accepts.event_stream {
            return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must list application/json and text/event-stream");
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|line| line.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > self.max_body_bytes)) {
            return Err(Refusal::too_large(self.max_body_bytes));
        }
        Ok(())
    }

    /// The rest of the ladder, on the whole body of a POST.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn body<'a>(&self, headers: &HeaderMap, body: &'a [u8]) -> Result<Passed<'a>, Refusal> {
        if body.len() > self.max_body_bytes {
            return Err(Refusal::too_large(self.max_body_bytes));
        }
        let message = Message::read(body)?;
        if is_deeper(body, self.max_depth) {
            let id = match &message {
                Message::Request(id, _) => Some(*id),
                Message::Notification(_) | Message::Response => None,
            };
            let message = format!("the body is nested more than {} levels deep (server.max_depth)", self.max_depth);
            return Err(Refusal::bad_request(INVALID_REQUEST, message).of(id));
        }
        let version = Single::of(headers, &PROTOCOL_VERSION);
        match &message {
            Message::Request(id, body) => match self.request(headers, version, *id, body) {
                Ok(Some(call)) => Ok(Passed::Modern(call)),
                Ok(None) => Ok(Passed::Earlier(message)),
                Err(refusal) => Err(refusal.of(Some(*id))),
            },
            Message::Notification(body) => match self.notification(headers, version, body)? {
                Era::Modern => Ok(Passed::Notification),
                Era::Earlier => Ok(Passed::Earlier(message)),
            },
            Message::Response => match version {
                Single::One(version) if is_earlier(version) => Ok(Passed::Earlier(message)),
                Single::Absent if headers.contains_key(SESSION_ID) => Ok(Passed::Earlier(message)),
                Single::One(_) | Single::Absent | Single::Malformed => Err(Refusal::bad_request(
                    INVALID_REQUEST,
                    "responses are not accepted: this server asks nothing here",
                )),
            },
        }
    }

    /// `None` if it is of the earlier era.
    fn request<'a>(
        &self,
        headers: &HeaderMap,
        version: Single<'_>,
        id: RawId<'a>,
        body: &Body<'a>,
    ) -> Result<Option<Call<'a>>, Refusal> {
        let params = Params::read(body.params)?;
        let claim = params.claim()?;
        if !claim.is_modern() {
            return match version {
                Single::One(version) if is_modern(version) => match &*body.method {
                    "initialize" => Err(self.mismatch(format!("initialize is not a request of version {version}"))),
                    _ => Err(claim.required().map_or_else(|refusal| refusal, |_| missing_claim())),
                },
                Single::One(version) if is_earlier(version) => Ok(None),
                Single::One(version) => Err(self.unsupported(version)),
                Single::Malformed => Err(self.mismatch("MCP-Protocol-Version is given twice or is not visible ASCII")),
                Single::Absent if body.method == "initialize" || headers.contains_key(SESSION_ID) => Ok(None),
                Single::Absent => Err(self.mismatch("MCP-Protocol-Version is missing")),
            };
        }
        let (meta, Some(whole)) = (claim.required()?, body.params) else { return Err(missing_claim()) };
        version.says("MCP-Protocol-Version", &meta.version, false, true)?;
        if !self.serves(&meta.version) {
            return Err(self.unsupported(&meta.version));
        }
        Single::of(headers, &METHOD).says("Mcp-Method", &body.method, false, true)?;
        let name = Named::by(&body.method).and_then(|member| params.named(member));
        if let Some(name) = &name {
            Single::of(headers, &NAME).says("Mcp-Name", name, true, true)?;
        }
        if !(self.known)(&body.method) {
            return Err(Refusal::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, "no such method"));
        }
        meta.check_optional()?;
        Ok(Some(Call { id, method: body.method.clone(), name, params: whole, meta }))
    }

    /// The protocol leaves open which headers a notification needs: those that are there have to be right.
    fn notification(&self, headers: &HeaderMap, version: Single<'_>, body: &Body<'_>) -> Result<Era, Refusal> {
        let claim = Params::read(body.params)?.claim()?;
        if claim.is_modern() {
            let claimed = claim.version().ok_or_else(missing_claim)?;
            version.says("MCP-Protocol-Version", &claimed, false, false)?;
            if !self.serves(&claimed) {
                return Err(self.unsupported(&claimed));
            }
        } else {
            match version {
                Single::One(version) if is_earlier(version) => return Ok(Era::Earlier),
                Single::One(version) if !self.serves(version) => return Err(self.unsupported(version)),
                Single::Malformed => version.says("MCP-Protocol-Version", "", false, true)?,
                Single::Absent if headers.contains_key(SESSION_ID) => return Ok(Era::Earlier),
                Single::One(_) | Single::Absent => {}
            }
        }
        Single::of(headers, &METHOD).says("Mcp-Method", &body.method, false, false)?;
        Ok(Era::Modern)
    }

    /// Whether a request may name this version for itself.
    fn serves(&self, version: &str) -> bool {
        is_modern(version) && self.supported.iter().any(|one| one == version)
    }

    /// A client that obeys picks another version of this list, so the one that was refused is not in it.
    fn unsupported(&self, requested: &str) -> Refusal {
        let supported: Vec<&String> = self.supported.iter().filter(|one| *one != requested).collect();
        let data = json!({ "supported": supported, "requested": requested });
        Refusal::bad_request(UNSUPPORTED_VERSION, "this protocol version is not supported").with_data(Json::from(&data))
    }

    fn mismatch(&self, what: impl std::fmt::Display) -> Refusal {
        let supported = self.supported.join(", ");
        Refusal::bad_request(HEADER_MISMATCH, format!("{what}; this server supports {supported}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Modern,
    Earlier,
}

/// Whether this is, or may one day be, a version without a handshake.
fn is_modern(version: &str) -> bool {
    let is_date = version.len() == FIRST_MODERN.len()
        && version.bytes().enumerate().all(|(at, c)| if at == 4 || at == 7 { c == b'-' } else { c.is_ascii_digit() });
    is_date && version >= FIRST_MODERN
}

/// Whether this is a version with a handshake that rmcp speaks.
fn is_earlier(version: &str) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version && known.has_initialize())
}

fn missing_claim() -> Refusal {
    Refusal::bad_request(INVALID_PARAMS, "params._meta needs io.modelcontextprotocol/protocolVersion")
}

impl std::fmt::Debug for Ladder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ladder")
            .field("gate", &self.gate)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("supported", &self.supported)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("allowed_hosts", &self.allowed_hosts)
            .field("allowed_origins", &self.allowed_origins)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("supported", &self.supported)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
