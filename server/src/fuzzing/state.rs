//! `requestState`, as clients send it back.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tokkuri_core::wire::Json;

use crate::mcp::request_state::{Binding, RequestState};

static STATE: LazyLock<RequestState> = LazyLock::new(|| {
    RequestState::new(b"0123456789abcdef0123456789abcdef", 60_000).expect("the secret is long enough")
});

/// What was sealed here for one call, some bytes of it changed: only what is unchanged is opened, and only for that call. The rest
/// of the input are the arguments of the call and a state out of nowhere.
pub fn request_state(data: &[u8]) {
    let (edits, rest) = data.split_at(data.len().min(6));
    let text = String::from_utf8_lossy(rest);
    let (arguments, foreign) = text.split_once('\n').unwrap_or((&text, ""));
    let call = Binding { owner: "o", method: "tools/call", name: "t", arguments: Some(arguments) };
    let answers = BTreeMap::from([("k".to_owned(), Json::parse(r#"{"action":"decline"}"#).expect("JSON"))]);
    let sealed = STATE.seal(call, &answers).expect("answers can be sealed");
    assert_eq!(STATE.open(call, &sealed).as_ref(), Ok(&answers));
    assert!(STATE.open(Binding { owner: "p", ..call }, &sealed).is_err(), "another caller's");
    assert!(STATE.open(Binding { name: "u", ..call }, &sealed).is_err(), "another call's");
    assert!(STATE.open(call, foreign).is_err(), "out of nowhere");

    let mut bytes = sealed.clone().into_bytes();
    for edit in edits.chunks_exact(2) {
        let at = usize::from(edit[0]) * 7 % bytes.len();
        bytes[at] = edit[1] & 0x7f;
    }
    let edited = String::from_utf8_lossy(&bytes);
    match STATE.open(call, &edited) {
        Ok(opened) => assert_eq!(opened, answers, "nothing but what was sealed is ever opened"),
        Err(_) => assert_ne!(edited, sealed),
    }
}
