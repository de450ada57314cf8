//! The headers that repeat what the body says, so that things on the way need not parse it (MCP 2026-07-28, Streamable HTTP § Request
//! Metadata), and those that say what the body is and which answers the client can read.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::mcp::refusal::{HEADER_MISMATCH, Refusal};

/// The version that the request speaks.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The request's method.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What the request is about: a tool, a prompt, a resource or a task.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// A session of the earlier era.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The value of a header that has to be alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single<'a> {
    /// There is none.
    Absent,
    /// There is one, here without the white space around it.
    One(&'a str),
    /// There are several, or one that is not visible ASCII. Whoever routes on such a header might have read another value.
    Malformed,
}

impl<'a> Single<'a> {
    /// The only value under this name.
    pub(crate) fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut lines = headers.get_all(name).iter();
        let Some(line) = lines.next() else { return Self::Absent };
        match line.to_str() {
            Ok(text) if lines.next().is_none() => Self::One(text.trim_matches([' ', '\t'])),
            Ok(_) | Err(_) => Self::Malformed,
        }
    }

    /// Whether it says `wanted`; `encoded` says that it may do so in Base64.
    ///
    /// # Errors
    /// -32020 if it does not. An absent one is an error only where it is `required`.
    pub(crate) fn says(self, name: &str, wanted: &str, encoded: bool, required: bool) -> Result<(), Refusal> {
        let wrong = |what: &str| Err(Refusal::bad_request(HEADER_MISMATCH, format!("{name} {what}")));
        match self {
            Self::Absent if !required => Ok(()),
            Self::Absent => wrong("is missing"),
            Self::Malformed => wrong("is given twice or is not visible ASCII"),
            Self::One(value) if encoded => match decode(value) {
                Some(value) if value == wanted => Ok(()),
                Some(_) => wrong("is not what the body says"),
                None => wrong("is not valid Base64 of UTF-8"),
            },
            Self::One(value) if value == wanted => Ok(()),
            Self::One(_) => wrong("is not what the body says"),
        }
    }
}

/// The value of an `Mcp-Name` or `Mcp-Param-*` header: as it stands, or out of `=?base64?…?=`; `None` if what is in there is not Base64
/// of UTF-8.
pub(crate) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(inner).ok()?).ok().map(Cow::Owned)
}

/// Which member of `params` a method's `Mcp-Name` repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// `name`.
    Name,
    /// `uri`.
    Uri,
    /// `taskId` (tasks extension § Routing Headers).
    TaskId,
}

impl Named {
    /// The one of this method, if it has one.
    pub(crate) fn by(method: &str) -> Option<Self> {
        match method {
            "tools/call" | "prompts/get" => Some(Self::Name),
            "resources/read" => Some(Self::Uri),
            "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Self::TaskId),
            _ => None,
        }
    }
}

/// Which answers a client says it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    /// One JSON object.
    pub(crate) json: bool,
    /// A stream of events.
    pub(crate) event_stream: bool,
}

impl Accepts {
    /// What `Accept` says. Clients have to name both forms, but one that names none, or a wildcard, means well.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut said = Self { json: false, event_stream: false };
        for line in headers.get_all(ACCEPT) {
            for range in line.to_str().unwrap_or_default().split(',') {
                let mut parts = range.split(';');
                let kind = parts.next().unwrap_or_default().trim();
                if parts.any(refuses) {
                    continue;
                }
                let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
                said.json |= is("application/json") || is("application/*") || is("*/*");
                said.event_stream |= is("text/event-stream") || is("text/*") || is("*/*");
            }
        }
        if headers.contains_key(ACCEPT) { said } else { Self { json: true, event_stream: true } }
    }
}

/// Whether the body says that it is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let json = |line: &HeaderValue| {
        let essence = line.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    };
    headers.contains_key(CONTENT_TYPE) && headers.get_all(CONTENT_TYPE).iter().all(json)
}

/// Makes `Accept` what rmcp insists on: both forms, literally. Whether the client reads the answer is for [`Accepts`] to say.
pub(crate) fn accept_both(headers: &mut HeaderMap) {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

/// Whether a parameter of a media range is a weight of zero.
fn refuses(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Headers as name and value.
    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn map(pairs: Pairs<'_>) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn a_value_is_literal_unless_it_is_the_whole_sentinel() {
        let table = [
            ("plain", Some("plain")),
            ("", Some("")),
            ("=?base64?SGVsbG8=?=", Some("Hello")),
            ("=?base64?w6k=?=", Some("é")),
            ("=?base64??=", Some("")),
            ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
            ("SGVsbG8=?=", Some("SGVsbG8=?=")),
            ("=?base64?=", Some("=?base64?=")),
            ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVs_G8=?=", None),
            ("=?base64?SGVs bG8=?=", None),
            ("=?base64?/w==?=", None),
        ];
        for (value, want) in table {
            assert_eq!(decode(value).as_deref(), want, "{value}");
        }
    }

    #[test]
    fn a_header_has_to_be_alone_and_equal() {
        let table: [(Pairs<'_>, bool, bool, bool); 12] = [
            (&[("mcp-name", "Hello")], true, true, true),
            (&[("MCP-NAME", " \tHello ")], true, true, true),
            (&[("mcp-name", "=?base64?SGVsbG8=?=")], true, true, true),
            (&[("mcp-name", "=?base64?SGVsbG8=?=")], false, true, false),
            (&[("mcp-name", "=?base64?SGVsbG8?=")], true, true, false),
            (&[("mcp-name", "hello")], true, true, false),
            (&[("mcp-name", "Hello, Hello")], true, true, false),
            (&[("mcp-name", "Hello"), ("mcp-name", "Hello")], true, true, false),
            (&[("mcp-name", "Héllo")], true, true, false),
            (&[], true, true, false),
            (&[], true, false, true),
            (&[("mcp-name", "other")], true, false, false),
        ];
        for (pairs, encoded, required, fits) in table {
            let headers = map(pairs);
            let said = Single::of(&headers, &NAME).says("Mcp-Name", "Hello", encoded, required);
            assert_eq!(said.is_ok(), fits, "{pairs:?}");
            if let Err(refusal) = said {
                assert_eq!((refusal.status.as_u16(), refusal.code), (400, -32020));
            }
        }
    }

    #[test]
    fn accept_is_read_kindly() {
        let both = (true, true);
        let table: [(Pairs<'_>, (bool, bool)); 9] = [
            (&[], both),
            (&[("accept", "application/json, text/event-stream")], both),
            (&[("accept", "Application/JSON;q=0.5"), ("accept", "text/event-stream")], both),
            (&[("accept", "*/*")], both),
            (&[("accept", "application/json")], (true, false)),
            (&[("accept", "text/event-stream, application/json;q=0")], (false, true)),
            (&[("accept", "text/html")], (false, false)),
            (&[("accept", "text/*, application/*;q=0.000")], (false, true)),
            (&[("accept", "é")], (false, false)),
        ];
        for (pairs, (json, event_stream)) in table {
            assert_eq!(Accepts::of(&map(pairs)), Accepts { json, event_stream }, "{pairs:?}");
        }
        let mut headers = map(&[("accept", "a/b"), ("accept", "c/d")]);
        accept_both(&mut headers);
        assert_eq!(headers.get_all(ACCEPT).iter().count(), 1);
    }

    #[test]
    fn only_json_is_json() {
        let table: [(Pairs<'_>, bool); 7] = [
            (&[("content-type", "application/json")], true),
            (&[("content-type", "Application/JSON; charset=utf-8")], true),
            (&[("content-type", "application/json-rpc")], false),
            (&[("content-type", "text/plain")], false),
            (&[("content-type", "application/json"), ("content-type", "text/plain")], false),
            (&[("content-type", "")], false),
            (&[], false),
        ];
        for (pairs, json) in table {
            assert_eq!(is_json(&map(pairs)), json, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_the_sentinel(text in any::<String>()) {
            let sent = format!("=?base64?{}?=", STANDARD.encode(&text));
            let decoded = decode(&sent);
            prop_assert_eq!(decoded.as_deref(), Some(&*text));
        }

        #[test]
        fn no_value_makes_it_panic(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut headers = HeaderMap::new();
            for name in [NAME, ACCEPT, CONTENT_TYPE] {
                if let Ok(value) = HeaderValue::from_bytes(&value) { headers.insert(name, value); }
            }
            let _ = Single::of(&headers, &NAME).says("Mcp-Name", "x", true, true);
            let _ = (Accepts::of(&headers), is_json(&headers), decode(&String::from_utf8_lossy(&value)).is_some());
        }
    }
}
