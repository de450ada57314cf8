//! What a body is: a request, a notification or a response, its `_meta`, and the one parameter that a header repeats.
//!
//! Everything is borrowed from the body, and what is not looked at is only walked over: polls come this way, so it has to be cheap.
//! Values stay JSON text, so an id or a token goes back as it came.

use std::borrow::Cow;

use http::StatusCode;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokkuri_core::wire::{Declared, declared};

use crate::mcp::headers::Named;
use crate::mcp::refusal::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Refusal};

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The id of a request, as its JSON text: a string or an integer of any length (MCP 2026-07-28, basic § Requests).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawId<'a>(&'a str);

impl<'a> RawId<'a> {
    /// This value, if it may be an id.
    pub(crate) fn of(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        (text.starts_with('"') || digits.bytes().all(|c| c.is_ascii_digit())).then_some(Self(text))
    }

    /// Whether it is one that any JSON-RPC library can hold: Unicode text, or an integer of 64 bits.
    pub(crate) fn is_common(self) -> bool {
        match self.0.starts_with('"') {
            true => serde_json::from_str::<Cow<'_, str>>(self.0).is_ok(),
            false => self.0.parse::<i64>().is_ok(),
        }
    }

    /// Its JSON text.
    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }
}

/// A body that is a JSON-RPC message.
#[derive(Clone, Debug)]
pub(crate) enum Message<'a> {
    /// A request.
    Request(RawId<'a>, Body<'a>),
    /// A notification.
    Notification(Body<'a>),
    /// An answer to a request of ours, which there is only in the earlier era.
    Response,
}

/// What a request or a notification says.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    /// Its method.
    pub(crate) method: Cow<'a, str>,
    /// Its parameters, an object.
    pub(crate) params: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// -32700 for what is not JSON in UTF-8, -32600 for JSON that is no single message, both on 400 and with the id if it is legal.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body)
            .map_err(|fault| Refusal::bad_request(PARSE_ERROR, format!("the body is not UTF-8: {fault}")))?;
        let envelope: Envelope<'a> = object(text).map_err(|fault| {
            // A type error is found before the rest has been walked over: what follows may still not be JSON at all.
            match serde_json::from_str::<IgnoredAny>(text) {
                Err(fault) => Refusal::bad_request(PARSE_ERROR, format!("the body is not JSON: {fault}")),
                Ok(_) => {
                    Refusal::bad_request(INVALID_REQUEST, format!("the body is not one JSON-RPC message: {fault}"))
                }
            }
        })?;
        if envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some()) {
            return Ok(Self::Response);
        }
        let id = match envelope.id {
            None => None,
            Some(raw) => Some(
                RawId::of(raw)
                    .ok_or_else(|| Refusal::bad_request(INVALID_REQUEST, "id must be a string or an integer"))?,
            ),
        };
        let invalid = |what: &'static str| Refusal::bad_request(INVALID_REQUEST, what).of(id);
        if envelope.jsonrpc.and_then(|raw| string(raw.get())).as_deref() != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let method =
            envelope.method.and_then(|raw| string(raw.get())).ok_or_else(|| invalid("method must be a string"))?;
        if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(invalid("params must be an object"));
        }
        let body = Body { method, params: envelope.params };
        Ok(match id {
            Some(id) => Self::Request(id, body),
            None => Self::Notification(body),
        })
    }
}

/// Of the parameters of any method, what the ladder looks at.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "present")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    uri: Option<&'a RawValue>,
    #[serde(rename = "taskId", borrow, default, deserialize_with = "present")]
    task_id: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Reads them; none at all are as good as empty ones.
    ///
    /// # Errors
    /// -32602 on 400 for a member that is given twice: whoever reads after us might take the other one.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, Refusal> {
        params.map_or(Ok(Self::default()), |raw| object(raw.get())).map_err(unreadable)
    }

    /// What `Mcp-Name` has to say, if it is there and a string; if not, the method will find its parameters malformed.
    pub(crate) fn named(&self, member: Named) -> Option<Cow<'a, str>> {
        let raw = match member {
            Named::Name => self.name,
            Named::Uri => self.uri,
            Named::TaskId => self.task_id,
        };
        raw.and_then(|raw| string(raw.get()))
    }

    /// Reads `_meta`; one that is no object claims nothing.
    ///
    /// # Errors
    /// -32602 on 400 for a key that is given twice.
    pub(crate) fn claim(&self) -> Result<Claim<'a>, Refusal> {
        match self.meta {
            Some(raw) if raw.get().starts_with('{') => object(raw.get()).map_err(unreadable),
            Some(_) | None => Ok(Claim::default()),
        }
    }
}

/// `_meta` as it came (MCP 2026-07-28, basic § General fields).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Claim<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default, deserialize_with = "present")]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default, deserialize_with = "present")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default)]
    log_level: Option<&'a RawValue>,
    #[serde(rename = "progressToken", borrow, default)]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traceparent: Option<&'a RawValue>,
}

impl<'a> Claim<'a> {
    /// Whether it says which version it speaks, which only the modern era does.
    pub(crate) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The version, if it is a string.
    pub(crate) fn version(&self) -> Option<Cow<'a, str>> {
        self.version.and_then(|raw| string(raw.get()))
    }

    /// The fields that the modern era requires.
    ///
    /// # Errors
    /// -32602 on 400 that names the keys that are missing or not of their shape.
    pub(crate) fn required(self) -> Result<Meta<'a>, Refusal> {
        let version = self.version();
        let capabilities = self.client_capabilities.filter(|raw| raw.get().starts_with('{'));
        let capabilities = capabilities.and_then(|raw| declared(raw.get()).ok());
        let (Some(version), Some(declared)) = (version, capabilities) else {
            let mut wrong = Vec::with_capacity(2);
            if self.version().is_none() {
                wrong.push(PROTOCOL_VERSION);
            }
            if capabilities.is_none() {
                wrong.push(CLIENT_CAPABILITIES);
            }
            let message = format!("params._meta needs {} of the right shape", wrong.join(" and "));
            return Err(Refusal::bad_request(INVALID_PARAMS, message));
        };
        Ok(Meta {
            version,
            declared,
            traceparent: self.traceparent.and_then(|raw| string(raw.get())),
            progress_token: self.progress_token,
            log_level: self.log_level.map(|raw| string(raw.get()).unwrap_or(Cow::Borrowed(raw.get()))),
        })
    }
}

/// A good `_meta` of the modern era.
#[derive(Clone, Debug)]
pub(crate) struct Meta<'a> {
    /// The version that the request speaks.
    pub(crate) version: Cow<'a, str>,
    /// What `clientCapabilities` say that matters for tasks.
    pub(crate) declared: Declared,
    /// W3C trace context.
    pub(crate) traceparent: Option<Cow<'a, str>>,
    /// `progressToken`: a string or a number.
    pub(crate) progress_token: Option<&'a RawValue>,
    /// `logLevel`: one of the eight.
    pub(crate) log_level: Option<Cow<'a, str>>,
}

impl Meta<'_> {
    /// Whether the optional fields are what they have to be.
    ///
    /// # Errors
    /// -32602 on 200: the envelope is good, a parameter is not.
    pub(crate) fn check_optional(&self) -> Result<(), Refusal> {
        let bad = |message| Err(Refusal::new(StatusCode::OK, INVALID_PARAMS, message));
        if self.log_level.as_deref().is_some_and(|level| !LOG_LEVELS.contains(&level)) {
            return bad("logLevel must be one of debug, info, notice, warning, error, critical, alert, emergency");
        }
        let token = |raw: &RawValue| raw.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        if self.progress_token.is_some_and(|raw| !token(raw)) {
            return bad("progressToken must be a string or a number");
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    result: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    error: Option<IgnoredAny>,
}

/// A member that is there, be it `null`: an `Option` alone would take `null` for absence.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an object and nothing else: a derived struct would take an array of its fields as well.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    match text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
        true => serde_json::from_str(text),
        false => Err(serde::de::Error::custom("it is not an object")),
    }
}

/// The string that this JSON text is, borrowed where nothing is escaped.
fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

fn unreadable(fault: serde_json::Error) -> Refusal {
    Refusal::bad_request(INVALID_PARAMS, format!("params cannot be read: {fault}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(body: &[u8]) -> (i32, Option<String>) {
        let refusal = Message::read(body).unwrap_err();
        assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
        (refusal.code, refusal.id.map(String::from))
    }

    #[test]
    fn what_is_not_a_message_is_refused_with_the_id_that_can_be_read() {
        let table: [(&[u8], i32, Option<&str>); 31] = [
            (b"{", -32700, None),
            (b"", -32700, None),
            (b"  ", -32700, None),
            (b"\xef\xbb\xbf{}", -32700, None),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700, None),
            (b"[{]", -32700, None),
            (br#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, -32700, None),
            (br#"{"jsonrpc":"2.0","id":01,"method":"m"}"#, -32700, None),
            (br#"{"id":1,"id":2,}"#, -32700, None),
            (b"null", -32600, None),
            (b"7", -32600, None),
            (b"\"x\"", -32600, None),
            (b"[]", -32600, None),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, -32600, None),
            (br#"["2.0",1,"m",{}]"#, -32600, None),
            (b"{}", -32600, None),
            (br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":1e2,"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, -32600, None),
            (br#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, Some("1")),
            (br#"{"id":"a","method":"m"}"#, -32600, Some("\"a\"")),
            (br#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, -32600, Some("1")),
            (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, Some("1")),
            (br#"{"jsonrpc":"2.0","id":1}"#, -32600, Some("1")),
            (br#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, -32600, Some("1")),
            (br#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, -32600, Some("1")),
            (br#"{"jsonrpc":"2.0","method":"m","params":7}"#, -32600, None),
        ];
        for (body, code, id) in table {
            assert_eq!(refused(body), (code, id.map(String::from)), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_legal_id_is_kept_as_its_text() {
        let long = format!("\"{}\"", "x".repeat(1024));
        for text in ["-7", "0", "9007199254740993", "123456789012345678901234567890", "\"\"", "\"\\u0061\"", &long] {
            let body = format!(r#"{{"params":{{}},"method":"m","id" : {text} ,"jsonrpc":"2.0"}}"#);
            let Ok(Message::Request(id, body)) = Message::read(body.as_bytes()) else { panic!("{text}") };
            assert_eq!((id.as_str(), &*body.method, body.params.unwrap().get()), (text, "m", "{}"));
        }
        let raw: &RawValue = serde_json::from_str(r#""\u0061""#).unwrap();
        assert_eq!(RawId::of(raw).unwrap().as_str(), raw.get());
    }

    #[test]
    fn responses_and_notifications_are_told_apart() {
        let read = |text: &'static str| Message::read(text.as_bytes()).unwrap();
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Response));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":null,"error":null}"#), Message::Response));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"m"}"#), Message::Notification(_)));
    }

    fn claim(meta: &str) -> Claim<'_> {
        Claim::deserialize(&mut serde_json::Deserializer::from_str(meta)).unwrap()
    }

    #[test]
    fn the_required_fields_are_named_when_they_are_not_good() {
        let v = r#""io.modelcontextprotocol/protocolVersion""#;
        let c = r#""io.modelcontextprotocol/clientCapabilities""#;
        let table = [
            ("{}".to_owned(), true, true),
            (format!(r#"{{{v}:"2026-07-28"}}"#), false, true),
            (format!(r#"{{{v}:null,{c}:{{}}}}"#), true, false),
            (format!(r#"{{{v}:7,{c}:[]}}"#), true, true),
            (format!(r#"{{{v}:"x",{c}:null}}"#), false, true),
            (format!(r#"{{{v}:"x",{c}:{{"extensions":7}}}}"#), false, true),
        ];
        for (meta, version, capabilities) in table {
            let refusal = claim(&meta).required().unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (400, -32602), "{meta}");
            assert_eq!(refusal.message.contains(PROTOCOL_VERSION), version, "{meta}");
            assert_eq!(refusal.message.contains(CLIENT_CAPABILITIES), capabilities, "{meta}");
        }
    }

    #[test]
    fn optional_fields_are_read_and_checked() {
        let with = |more: &str| {
            format!(
                r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol\/clientCapabilities":{{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}{more}}}"#
            )
        };
        let full = with(
            r#","io.modelcontextprotocol/logLevel":"alert","progressToken":12345678901234567890123,"traceparent":"00-a",
            "tracestate":7,"io.modelcontextprotocol/clientInfo":{"name":"n"}"#,
        );
        let meta = claim(&full).required().unwrap();
        meta.check_optional().unwrap();
        assert!(meta.declared.tasks);
        assert_eq!(meta.progress_token.unwrap().get(), "12345678901234567890123");
        assert_eq!(meta.traceparent.as_deref(), Some("00-a"));
        assert!(matches!(meta.version, Cow::Borrowed("2026-07-28")));
        for bad in [
            r#","io.modelcontextprotocol/logLevel":"loud""#,
            r#","io.modelcontextprotocol/logLevel":3"#,
            r#","progressToken":{}"#,
            r#","progressToken":true"#,
        ] {
            let refusal = claim(&with(bad)).required().unwrap().check_optional().unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (200, -32602), "{bad}");
        }
        claim(&with(r#","progressToken":null"#)).required().unwrap().check_optional().unwrap();
    }

    #[test]
    fn a_parameter_given_twice_is_refused() {
        for text in [r#"{"_meta":{},"_meta":{}}"#, r#"{"taskId":"a","task\u0049d":"b"}"#] {
            let refusal = Params::read(Some(serde_json::from_str(text).unwrap())).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (400, -32602), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::read(&body);
        }

        #[test]
        fn no_json_makes_it_panic(body in "[\\[\\]{}:,\"\\\\a-z0-9 .-]{0,60}") {
            if let Ok(Message::Request(_, body) | Message::Notification(body)) = Message::read(body.as_bytes()) {
                let _ = Params::read(body.params).and_then(|params| params.claim()?.required());
            }
        }

        #[test]
        fn every_integer_and_string_is_an_id(number in any::<i128>(), text in any::<String>()) {
            for id in [number.to_string(), serde_json::to_string(&text).unwrap()] {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
                let Ok(Message::Request(read, _)) = Message::read(body.as_bytes()) else { panic!("{id}") };
                prop_assert_eq!(read.as_str(), id);
            }
        }
    }
}
