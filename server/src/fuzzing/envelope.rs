//! Heads and bodies of HTTP requests, up the validation ladder.

use std::sync::{Arc, LazyLock};

use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use serde_json::value::RawValue;

use crate::mcp::ladder::{Call, Head, Ladder, Passed, Settings};
use crate::mcp::refusal::Answer;

/// The methods of the modern era that a server with everything has.
const KNOWN: [&str; 12] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "subscriptions/listen",
];

static LADDER: LazyLock<Ladder> = LazyLock::new(|| {
    let mut settings = Settings::new(Arc::new(|method: &str| KNOWN.contains(&method)));
    settings.allowed_origins = vec!["https://app.example.com".to_owned()];
    settings.max_depth = 16;
    Ladder::new(settings).expect("the settings are good")
});

/// An HTTP request: a method, header lines, an empty line, a body. Whatever it is, it is passed with a good envelope or refused
/// with JSON that carries a legal id or none.
pub fn envelope(data: &[u8]) {
    let (head, body) = match data.windows(2).position(|it| it == b"\n\n") {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, &[][..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let method = lines.next().and_then(|line| Method::from_bytes(line).ok()).unwrap_or(Method::POST);
    let mut request = Request::new(());
    *request.method_mut() = method;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) =
            (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(line[colon + 1..].trim_ascii()));
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    let (parts, ()) = request.into_parts();
    // A request that names no host or a foreign one goes no further in life; here it does.
    if let Ok(cors) = LADDER.admit(&parts) {
        match LADDER.head(&parts, &cors) {
            Ok(Head::Preflight(answer)) => assert_eq!(answer.status(), 204),
            Ok(Head::Post | Head::Session) => {}
            Err(refusal) => refused(refusal.into_answer(), body),
        }
    }
    match LADDER.body(&parts.headers, body) {
        Ok(Passed::Modern(call)) => passed(&call, body),
        Ok(Passed::Notification | Passed::Earlier(_)) => {}
        Err(refusal) => refused(refusal.into_answer(), body),
    }
}

fn passed(call: &Call<'_>, body: &[u8]) {
    assert!(KNOWN.contains(&&*call.method), "{}", call.method);
    assert!(call.params.get().starts_with('{'));
    assert_eq!(call.meta.version, "2026-07-28");
    let id = call.id.as_str().as_bytes();
    assert!(body.windows(id.len()).any(|it| it == id), "the id is the request's");
}

fn refused(answer: Answer, body: &[u8]) {
    #[derive(serde::Deserialize)]
    struct Refused<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Error<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Error<'a> {
        code: i64,
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let status = answer.status().as_u16();
    assert!((200..500).contains(&status), "{status}");
    let bytes = answer.into_body().collect().now_or_never().expect("it is whole").expect("it is there").to_bytes();
    let refused: Refused<'_> = serde_json::from_slice(&bytes).expect("a refusal is JSON");
    assert!(refused.error.message.get().len() > 2, "it says why");
    let invented = (-32099..=-32000).contains(&refused.error.code) && !matches!(refused.error.code, -32022..=-32020);
    assert!(!invented, "{}", refused.error.code);
    if let Some(id) = refused.id {
        let id = id.get().as_bytes();
        assert!(body.windows(id.len()).any(|it| it == id), "the id is the request's");
    }
}
