//! Every row of the wire reference's tables that the ladder answers for.

use http::Request;
use http::header::{ALLOW, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::mcp::refusal::tests::text;

const M: &str = "2026-07-28";

fn ladder() -> Ladder {
    let known = |method: &str| matches!(method, "tools/call" | "tools/list" | "tasks/get" | "resources/read");
    Ladder::new(Settings { max_body_bytes: 4096, ..Settings::new(Arc::new(known)) }).unwrap()
}

/// Headers as name and value.
type Pairs<'a> = &'a [(&'a str, &'a str)];

fn map(pairs: Pairs<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

fn meta(version: &str) -> String {
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    )
}

fn post(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

/// What became of it: `modern`, `earlier`, `notification`, or status and code of the refusal.
fn fate(pairs: Pairs<'_>, body: &str) -> String {
    match ladder().body(&map(pairs), body.as_bytes()) {
        Ok(Passed::Modern(_)) => "modern".to_owned(),
        Ok(Passed::Earlier(_)) => "earlier".to_owned(),
        Ok(Passed::Notification) => "notification".to_owned(),
        Err(refusal) => {
            assert!(refusal.id.as_deref() == Some("41") || !body.contains("\"id\":41"), "{body}");
            format!("{} {}", refusal.status.as_u16(), refusal.code)
        }
    }
}

fn request(method: Method, pairs: Pairs<'_>) -> Parts {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost:8080");
    for (name, value) in pairs {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn the_head_says_what_may_come_in() {
    let json = ("content-type", "application/json");
    let session = ("mcp-session-id", "s");
    let table: [(Method, Pairs<'_>, &str); 20] = [
        (Method::POST, &[json], "post"),
        (Method::POST, &[json, ("accept", "application/json")], "post"),
        (Method::POST, &[json, ("accept", "text/html")], "406"),
        (Method::POST, &[], "415"),
        (Method::POST, &[("content-type", "text/plain")], "415"),
        (Method::POST, &[json, ("content-length", "4096")], "post"),
        (Method::POST, &[json, ("content-length", "4097")], "413"),
        (Method::POST, &[json, ("content-length", "18446744073709551615")], "413"),
        (Method::POST, &[json, ("origin", "http://evil.example")], "403"),
        (Method::POST, &[json, ("origin", "null")], "403"),
        (Method::POST, &[json, ("origin", "http://localhost:8080")], "post"),
        (Method::GET, &[], "405"),
        (Method::DELETE, &[], "405"),
        (Method::PUT, &[session], "405"),
        (Method::HEAD, &[], "405"),
        (Method::OPTIONS, &[], "405"),
        (Method::GET, &[session], "session"),
        (Method::DELETE, &[session, ("mcp-protocol-version", "2025-11-25")], "session"),
        (Method::GET, &[session, ("mcp-protocol-version", M)], "405"),
        (Method::OPTIONS, &[("origin", "http://evil.example"), ("access-control-request-method", "POST")], "403"),
    ];
    for (method, pairs, want) in table {
        let parts = request(method.clone(), pairs);
        let ladder = ladder();
        let head = ladder.admit(&parts).and_then(|cors| ladder.head(&parts, &cors));
        let got = match head.and_then(|head| match head {
            Head::Post => ladder.media(&parts.headers).map(|()| head),
            Head::Session | Head::Preflight(_) => Ok(head),
        }) {
            Ok(Head::Post) => "post".to_owned(),
            Ok(Head::Session) => "session".to_owned(),
            Ok(Head::Preflight(_)) => "preflight".to_owned(),
            Err(refusal) => {
                let answer = refusal.into_answer();
                assert_eq!(answer.headers().contains_key(ALLOW), answer.status() == 405);
                answer.status().as_u16().to_string()
            }
        };
        assert_eq!(got, want, "{method} {pairs:?}");
    }
}

#[test]
fn the_era_is_told_by_the_claim_then_the_header_then_the_handshake() {
    let modern = ("mcp-protocol-version", M);
    let earlier = ("mcp-protocol-version", "2025-11-25");
    let session = ("mcp-session-id", "s");
    let list = ("mcp-method", "tools/list");
    let claim = meta(M);
    let init = r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}"#;
    let table: [(Pairs<'_>, String, &str); 29] = [
        // 1: the claim decides, even for a handshake, whatever else is there.
        (&[modern, list], post("41", "tools/list", &claim), "modern"),
        (&[modern, list, session], post("41", "tools/list", &claim), "modern"),
        (&[modern, ("mcp-method", "initialize")], post("41", "initialize", &claim), "404 -32601"),
        (&[earlier, list], post("41", "tools/list", &claim), "400 -32020"),
        (&[session], post("41", "tools/list", &claim), "400 -32020"),
        // 2: a modern header without a claim.
        (&[modern], post("41", "initialize", init), "400 -32020"),
        (&[modern], post("41", "tools/list", ""), "400 -32602"),
        (&[modern, session], post("41", "tools/list", ""), "400 -32602"),
        (&[modern, list], post("41", "tools/list", r#""_meta":{"progressToken":1}"#), "400 -32602"),
        (&[modern], post("41", "tools/list", r#""_meta":7"#), "400 -32602"),
        (&[modern], r#"{"jsonrpc":"2.0","id":41,"method":"tools/list"}"#.to_owned(), "400 -32602"),
        (&[("mcp-protocol-version", "2027-01-01")], post("41", "tools/list", ""), "400 -32602"),
        // 3: the earlier era.
        (&[], post("41", "initialize", init), "earlier"),
        (&[], post("41", "initialize", &format!(r#"{init},"_meta":{{}}"#)), "earlier"),
        (&[earlier], post("41", "initialize", init), "earlier"),
        (&[earlier], post("41", "tools/list", ""), "earlier"),
        (&[("mcp-protocol-version", "2025-06-18")], post("41", "ping", ""), "earlier"),
        (&[("mcp-protocol-version", "2024-11-05"), session], post("41", "ping", ""), "earlier"),
        (&[session], post("41", "tools/list", r#""_meta":{"progressToken":1}"#), "earlier"),
        // 4: nothing said.
        (&[], post("41", "tools/list", ""), "400 -32020"),
        (&[("mcp-protocol-version", "")], post("41", "tools/list", ""), "400 -32022"),
        (&[("mcp-protocol-version", "v999")], post("41", "tools/list", ""), "400 -32022"),
        (&[("mcp-protocol-version", "2025-01-01"), session], post("41", "tools/list", ""), "400 -32022"),
        (&[earlier, earlier], post("41", "tools/list", ""), "400 -32020"),
        // Responses belong to the earlier era.
        (&[session, earlier], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), "earlier"),
        (&[session], r#"{"jsonrpc":"2.0","id":1,"error":{}}"#.to_owned(), "earlier"),
        (&[session, modern], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), "400 -32600"),
        (&[], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), "400 -32600"),
        // Batches belong to none.
        (&[earlier], format!("[{}]", post("1", "tools/list", "")), "400 -32600"),
    ];
    for (pairs, body, want) in table {
        assert_eq!(fate(pairs, &body), want, "{pairs:?} {body}");
    }
}

#[test]
fn the_first_wrong_thing_is_the_one_that_is_said() {
    let v = |version| ("mcp-protocol-version", version);
    let get = ("mcp-method", "tasks/get");
    let t = ("mcp-name", "T");
    let task = |version: &str| post("41", "tasks/get", &format!(r#""taskId":"T",{}"#, meta(version)));
    let without_capabilities =
        post("41", "tasks/get", r#""taskId":"T","_meta":{"io.modelcontextprotocol/protocolVersion":"v999"}"#);
    let loud =
        format!(r#""taskId":"T",{}"#, meta(M).replace(":{}}", r#":{},"io.modelcontextprotocol/logLevel":"loud"}"#));
    let table: [(Pairs<'_>, String, &str); 27] = [
        (&[v(M), get, t], task(M), "modern"),
        // Envelope fields come before the header.
        (&[v(M), get, t], without_capabilities.clone(), "400 -32602"),
        (&[], without_capabilities, "400 -32602"),
        // The header comes before the version.
        (&[v(M), get, t], task("v999"), "400 -32020"),
        (&[v("v999"), get, t], task(M), "400 -32020"),
        (&[get, t], task(M), "400 -32020"),
        (&[v(M), v(M), get, t], task(M), "400 -32020"),
        // The version comes before the other headers.
        (&[v("v999")], task("v999"), "400 -32022"),
        (&[v("2025-11-25")], task("2025-11-25"), "400 -32022"),
        (&[v("2027-01-01")], task("2027-01-01"), "400 -32022"),
        // The other headers come before the method.
        (&[v(M), t], task(M), "400 -32020"),
        (&[v(M), ("mcp-method", "tasks/cancel"), t], task(M), "400 -32020"),
        (&[v(M), ("mcp-method", "TASKS/GET"), t], task(M), "400 -32020"),
        (&[v(M), get, get, t], task(M), "400 -32020"),
        (&[v(M), get], task(M), "400 -32020"),
        (&[v(M), get, ("mcp-name", "S")], task(M), "400 -32020"),
        (&[v(M), get, ("mcp-name", "=?base64?VA==?=")], task(M), "modern"),
        (&[v(M), get, ("mcp-name", "=?base64?VA?=")], task(M), "400 -32020"),
        (&[v(M), get, t, t], task(M), "400 -32020"),
        (&[v(M), ("mcp-method", "tools/call")], post("41", "tasks/result", &meta(M)), "400 -32020"),
        // The method comes before its parameters.
        (&[v(M), ("mcp-method", "tasks/result")], post("41", "tasks/result", &meta(M)), "404 -32601"),
        (&[v(M), ("mcp-method", "ping"), t, t], post("41", "ping", &meta(M)), "404 -32601"),
        (
            &[v(M), ("mcp-method", "nope")],
            post("41", "nope", &meta(M).replace(":{}}", r#":{},"progressToken":{}}"#)),
            "404 -32601",
        ),
        (&[v(M), get, t], post("41", "tasks/get", &loud), "200 -32602"),
        // A name that is missing or no string is a malformed parameter, for the method to refuse.
        (&[v(M), get], post("41", "tasks/get", &meta(M)), "modern"),
        (&[v(M), get, t], post("41", "tasks/get", &format!(r#""taskId":7,{}"#, meta(M))), "modern"),
        (&[v(M), get, t], post("41", "tasks/get", &format!(r#""taskId":"T","taskId":"S",{}"#, meta(M))), "400 -32602"),
    ];
    for (pairs, body, want) in table {
        assert_eq!(fate(pairs, &body), want, "{pairs:?} {body}");
    }
}

#[test]
fn notifications_are_accepted_unless_a_header_contradicts_them() {
    let note = |meta: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{{meta}}}}}"#);
    let only_version = format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{M}"}}"#);
    let v = |version| ("mcp-protocol-version", version);
    let session = ("mcp-session-id", "s");
    let table: [(Pairs<'_>, String, &str); 14] = [
        (&[], note(""), "notification"),
        (&[], note(&only_version), "notification"),
        (&[v(M), ("mcp-method", "notifications/cancelled")], note(&meta(M)), "notification"),
        (&[v(M)], note(""), "notification"),
        (&[v(M), session], note(""), "notification"),
        (&[v(M), ("mcp-method", "other")], note(""), "400 -32020"),
        (&[v("2025-11-25")], note(&meta(M)), "400 -32020"),
        (&[v(M), v(M)], note(""), "400 -32020"),
        (&[v("v999")], note(&meta("v999")), "400 -32022"),
        (&[v("v999")], note(""), "400 -32022"),
        (&[session], note(""), "earlier"),
        (&[v("2025-06-18"), session], note(""), "earlier"),
        (&[v("2025-06-18")], note(""), "earlier"),
        (&[v(M)], r#"{"jsonrpc":"1.0","method":"m"}"#.to_owned(), "400 -32600"),
    ];
    for (pairs, body, want) in table {
        assert_eq!(fate(pairs, &body), want, "{pairs:?} {body}");
    }
}

#[test]
fn an_unsupported_version_is_told_the_others() {
    let refused = |version: &str| {
        let body = post("41", "tools/list", &meta(version));
        let refusal = ladder().body(&map(&[("mcp-protocol-version", version)]), body.as_bytes()).unwrap_err();
        let body: serde_json::Value = serde_json::from_str(&text(refusal.into_answer())).unwrap();
        body["error"]["data"].clone()
    };
    assert_eq!(refused("v999"), json!({"requested": "v999", "supported": [M, "2025-11-25", "2025-06-18"]}));
    assert_eq!(refused("2025-11-25"), json!({"requested": "2025-11-25", "supported": [M, "2025-06-18"]}));
}

#[test]
fn a_call_brings_everything_along() {
    let body = post("\"i\"", "resources/read", &format!(r#""uri":"file:///\u00e9",{}"#, meta(M)));
    let headers = map(&[
        ("mcp-protocol-version", M),
        ("mcp-method", " resources/read "),
        ("mcp-name", "=?base64?ZmlsZTovLy/DqQ==?="),
    ]);
    let Ok(Passed::Modern(call)) = ladder().body(&headers, body.as_bytes()) else { panic!("refused") };
    assert_eq!((call.id.as_str(), &*call.method, call.name.as_deref()), ("\"i\"", "resources/read", Some("file:///é")));
    assert!(call.params.get().starts_with("{\"uri\""));
    assert!(matches!(call.method, Cow::Borrowed(_)));
}

#[test]
fn a_body_over_the_limit_is_refused_unread() {
    assert_eq!(fate(&[], &" ".repeat(4097)), "413 -32600");
    assert_eq!(fate(&[], &" ".repeat(4096)), "400 -32700");
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(
        body in proptest::collection::vec(any::<u8>(), 0..120),
        lines in proptest::collection::vec((0usize..4, proptest::collection::vec(any::<u8>(), 0..24)), 0..6),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
            headers.append([PROTOCOL_VERSION, METHOD, NAME, SESSION_ID][name].clone(), value);
        }
        let _ = ladder().body(&headers, &body);
    }

    #[test]
    fn a_body_cut_anywhere_or_with_one_byte_changed_is_answered(at in 0usize..400, byte in any::<u8>()) {
        let whole = post("41", "tasks/get", &format!(r#""taskId":"T",{}"#, meta(M)));
        let headers = map(&[("mcp-protocol-version", M), ("mcp-method", "tasks/get"), ("mcp-name", "T")]);
        let at = at % whole.len();
        prop_assert_eq!(ladder().body(&headers, &whole.as_bytes()[..at]).unwrap_err().code, -32700);
        let mut changed = whole.into_bytes();
        changed[at] = byte;
        if let Err(refusal) = ladder().body(&headers, &changed) {
            let answer = refusal.into_answer();
            prop_assert!(answer.status().is_client_error());
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text(answer)).is_ok());
        }
    }

    #[test]
    fn every_task_id_can_be_named_in_base64(id in any::<String>()) {
        use base64::Engine as _;
        let named = base64::engine::general_purpose::STANDARD.encode(&id);
        let id = serde_json::to_string(&id).unwrap();
        let body = post("41", "tasks/get", &format!(r#""taskId":{id},{}"#, meta(M)));
        let name = format!("=?base64?{named}?=");
        prop_assume!(body.len() <= 4096);
        let pairs = [("mcp-protocol-version", M), ("mcp-method", "tasks/get"), ("mcp-name", &*name)];
        prop_assert_eq!(fate(&pairs, &body), "modern");
    }
}
