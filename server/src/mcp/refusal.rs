//! How the door answers: JSON-RPC results and errors, and the HTTP status that each goes out with.
//!
//! An answer is written straight into its bytes; the id is copied as the text it came in, so that it comes back exactly.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::Serialize;
use tokkuri_core::task::{Fault, Task};
use tokkuri_core::wire::{DetailedTask, Json};

use crate::mcp::envelope::RawId;
use crate::mcp::pieces::{self, Pieces};

/// A whole answer.
pub(crate) type Answer = Response<Pieces>;

/// Not JSON.
pub(crate) const PARSE_ERROR: i32 = -32700;
/// JSON, but neither a request nor a notification.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// Unknown, removed or unadvertised method.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters that do not fit their method, and whatever is not there.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// Our fault.
pub(crate) const INTERNAL_ERROR: i32 = -32603;
/// A header is missing, malformed or not what the body says (MCP 2026-07-28, Streamable HTTP § Server Validation).
pub(crate) const HEADER_MISMATCH: i32 = -32020;
/// The request does not declare what it would take to serve it.
pub(crate) const MISSING_CAPABILITY: i32 = -32021;
/// The request names a version that is not implemented.
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;

/// A request that is turned away before a method sees it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: StatusCode,
    /// JSON-RPC code.
    pub(crate) code: i32,
    /// For whoever sent it.
    pub(crate) message: Cow<'static, str>,
    /// `error.data`.
    pub(crate) data: Option<Json>,
    /// The request's id as JSON text; `None` when it could not be read: the wire has no `"id": null`.
    pub(crate) id: Option<Box<str>>,
    /// Headers beside the content type.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    /// A refusal without id, data and further headers.
    pub(crate) fn new(status: StatusCode, code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into(), data: None, id: None, headers: Vec::new() }
    }

    /// One that rides on 400, as everything that is wrong with the envelope does.
    pub(crate) fn bad_request(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 405: in the modern era there is nothing but POST.
    pub(crate) fn method_not_allowed() -> Self {
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, INVALID_REQUEST, "use POST");
        refusal.headers.push((ALLOW, HeaderValue::from_static("POST")));
        refusal
    }

    /// 413.
    pub(crate) fn too_large(max_body_bytes: usize) -> Self {
        let message = format!("the body is larger than {max_body_bytes} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, message)
    }

    /// 503: the bodies of other requests take up all that bodies may.
    pub(crate) fn no_room_for_the_body() -> Self {
        let message =
            "The server holds as many bytes of requests as it takes (server.max_buffered_bytes). Try again soon.";
        let mut refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, INTERNAL_ERROR, message);
        refusal.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        refusal
    }

    /// The same, for the request with this id.
    pub(crate) fn of(mut self, id: Option<RawId<'_>>) -> Self {
        self.id = id.map(|id| id.as_str().into());
        self
    }

    /// The same with `error.data`.
    pub(crate) fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }

    /// The answer that says so.
    pub(crate) fn into_answer(self) -> Answer {
        let body = error_body(self.id.as_deref(), self.code, &self.message, self.data.as_ref().map(Json::as_str));
        let mut answer = answer(self.status, body);
        answer.headers_mut().extend(self.headers);
        answer
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        refusal.into_answer()
    }
}

/// The result of the request `id`, on 200. A result that has no form in JSON is our own fault and answered as such.
pub(crate) fn result(id: RawId<'_>, result: &impl Serialize) -> Answer {
    match result_body(id, result) {
        Ok(body) => answer(StatusCode::OK, body),
        Err(fault) => {
            tracing::error!(%fault, "a result could not be written as JSON");
            error(id, INTERNAL_ERROR, "internal error", None)
        }
    }
}

/// A task as the result of the request `id`, on 200.
pub(crate) fn task(id: RawId<'_>, task: &Arc<Task<Json>>) -> Answer {
    let write = |task: &Task<Json>| result_body(id, &DetailedTask(task)).map_or_else(|_| Bytes::new(), Bytes::from);
    match pieces::around_result(task, write) {
        Some(body) => whole(StatusCode::OK, Pieces::new(body)),
        None => result(id, &DetailedTask(task)),
    }
}

fn result_body(id: RawId<'_>, result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut body = Vec::with_capacity(512);
    open(&mut body, Some(id.as_str()));
    body.extend_from_slice(br#""result":"#);
    serde_json::to_writer(&mut body, result)?;
    body.push(b'}');
    Ok(body)
}

/// The result of the request `id` that is JSON text already, such as the acknowledgement of a task method; on 200.
pub(crate) fn result_text(id: RawId<'_>, result: &str) -> Answer {
    let mut body = Vec::with_capacity(64 + id.as_str().len() + result.len());
    open(&mut body, Some(id.as_str()));
    body.extend_from_slice(br#""result":"#);
    body.extend_from_slice(result.as_bytes());
    body.push(b'}');
    answer(StatusCode::OK, body)
}

/// What a method answered instead of a result, with the status of [`late_status`].
pub(crate) fn error(id: RawId<'_>, code: i32, message: &str, data: Option<&Json>) -> Answer {
    answer(late_status(code), error_body(Some(id.as_str()), code, message, data.map(Json::as_str)))
}

/// A fault as the error of the request `id`.
pub(crate) fn fault(id: RawId<'_>, fault: &Fault<Json>) -> Answer {
    let code = i32::try_from(fault.code).unwrap_or(INTERNAL_ERROR);
    error(id, code, &fault.message, fault.data.as_ref())
}

/// 202 for a notification.
pub(crate) fn accepted() -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer
}

/// 204 for a session that is over.
pub(crate) fn no_content() -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// The HTTP status of an error that a method gives in the modern era.
///
/// A late -32602 rides on 200: a client of both eras takes 400 with a code it does not know for an older server, and falls back to
/// `initialize`.
pub(crate) fn late_status(code: i32) -> StatusCode {
    match code {
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | PARSE_ERROR => StatusCode::BAD_REQUEST,
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn answer(status: StatusCode, body: Vec<u8>) -> Answer {
    whole(status, Pieces::new([Bytes::from(body)]))
}

fn whole(status: StatusCode, body: Pieces) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn open(body: &mut Vec<u8>, id: Option<&str>) {
    body.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        body.extend_from_slice(br#""id":"#);
        body.extend_from_slice(id.as_bytes());
        body.push(b',');
    }
}

fn error_body(id: Option<&str>, code: i32, message: &str, data: Option<&str>) -> Vec<u8> {
    let mut body = Vec::with_capacity(128 + message.len() + data.map_or(0, str::len));
    open(&mut body, id);
    body.extend_from_slice(br#""error":{"code":"#);
    body.extend_from_slice(code.to_string().as_bytes());
    body.extend_from_slice(br#","message":"#);
    serde_json::to_writer(&mut body, message).expect("a string always has a form in JSON");
    if let Some(data) = data {
        body.extend_from_slice(br#","data":"#);
        body.extend_from_slice(data.as_bytes());
    }
    body.extend_from_slice(b"}}");
    body
}

#[cfg(test)]
pub(crate) mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};

    use super::*;

    /// The text of an answer's body.
    pub(crate) fn text(answer: Answer) -> String {
        let body = futures_util::FutureExt::now_or_never(answer.into_body().collect()).unwrap().unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    fn id(text: &str) -> RawId<'_> {
        RawId::of(serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn an_error_never_carries_a_null_id() {
        let refusal = Refusal::bad_request(PARSE_ERROR, "no \"JSON\"\n").into_answer();
        assert_eq!(refusal.status(), 400);
        assert_eq!(refusal.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(
            serde_json::from_str::<Value>(&text(refusal)).unwrap(),
            json!({"jsonrpc":"2.0","error":{"code":-32700,"message":"no \"JSON\"\n"}})
        );
    }

    #[test]
    fn an_id_comes_back_as_its_text() {
        for raw in ["-7", "9007199254740993", "123456789012345678901234567890", r#""""#, r#""\u0041\/""#] {
            assert_eq!(
                text(result_text(id(raw), tokkuri_core::wire::ACK)),
                format!(r#"{{"jsonrpc":"2.0","id":{raw},"result":{{"resultType":"complete"}}}}"#)
            );
            assert_eq!(text(result(id(raw), &json!({}))), format!(r#"{{"jsonrpc":"2.0","id":{raw},"result":{{}}}}"#));
            let refusal = Refusal::bad_request(HEADER_MISMATCH, "m").of(Some(id(raw))).with_data(Json::of(&1).unwrap());
            assert_eq!(
                text(refusal.into_answer()),
                format!(r#"{{"jsonrpc":"2.0","id":{raw},"error":{{"code":-32020,"message":"m","data":1}}}}"#)
            );
        }
    }

    #[test]
    fn a_code_has_its_status() {
        let table = [
            (PARSE_ERROR, 400),
            (HEADER_MISMATCH, 400),
            (MISSING_CAPABILITY, 400),
            (UNSUPPORTED_VERSION, 400),
            (METHOD_NOT_FOUND, 404),
            (INVALID_PARAMS, 200),
            (INVALID_REQUEST, 200),
            (INTERNAL_ERROR, 200),
            (-7, 200),
        ];
        for (code, status) in table {
            assert_eq!(error(id("1"), code, "", None).status(), status, "{code}");
        }
        assert_eq!(accepted().status(), 202);
        assert_eq!(Refusal::method_not_allowed().into_answer().headers()[ALLOW], "POST");
    }

    #[test]
    fn a_result_without_a_form_in_json_is_an_internal_error() {
        let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
        let answer = result(id("1"), &keys);
        assert!(text(answer).contains(r#""error":{"code":-32603"#));
    }
}
