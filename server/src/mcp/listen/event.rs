//! What goes out on a stream: JSON-RPC messages as server-sent events, each with the subscription's id exactly as the request
//! spelled it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tokkuri_core::id::TaskId;
use tokkuri_core::task::{Phase, Task};
use tokkuri_core::wire::{COMPLETE, Json, TaskNotification};

use super::others::Granted;
use crate::mcp::envelope::RawId;
use crate::mcp::pieces;

/// `_meta`'s key for the id of the listen request.
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A comment line: proxies and clients see that the stream is alive.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Writes the messages of one stream.
#[derive(Debug)]
pub(super) struct Wire {
    /// The id, as its JSON text.
    id: Box<RawValue>,
    meta: Meta,
}

type Meta = BTreeMap<&'static str, Box<RawValue>>;

impl Wire {
    /// The wire of the request `id`.
    pub(super) fn new(id: RawId<'_>) -> Self {
        let id = RawValue::from_string(id.as_str().to_owned()).expect("an id was read as JSON");
        Self { meta: BTreeMap::from([(SUBSCRIPTION_ID, id.clone())]), id }
    }

    /// The id, as its JSON text.
    pub(super) fn id(&self) -> &RawValue {
        &self.id
    }

    /// The first message: what was granted.
    pub(super) fn acknowledged(&self, granted: &Granted, tasks: &[TaskId]) -> Bytes {
        let mut granted: BTreeMap<&str, &RawValue> = granted.iter().map(|(key, raw)| (&**key, &**raw)).collect();
        let tasks = serde_json::value::to_raw_value(tasks).expect("a list of strings has a form in JSON");
        granted.insert("taskIds", &tasks);
        let params = Acknowledged { meta: &self.meta, notifications: granted };
        self.notification("notifications/subscriptions/acknowledged", &params)
    }

    /// `notifications/tasks`, in the pieces that it goes out in.
    pub(super) fn task(&self, task: &Arc<Task<Json>>) -> Vec<Bytes> {
        let write =
            |task: &Task<Json>| self.notification("notifications/tasks", &TaskNotification { task, meta: &self.meta });
        let is_one_line = match &task.phase {
            // Looked for one after the other: each is a search of whole words, as there are a thousand followers of one result.
            Phase::Completed(result) => {
                let text = result.as_str().as_bytes();
                !text.contains(&b'\n') && !text.contains(&b'\r')
            }
            Phase::Live(_) | Phase::Failed(_) | Phase::Cancelled => true,
        };
        match pieces::around_result(task, write).filter(|_| is_one_line) {
            Some(pieces) => pieces.into(),
            None => vec![write(task)],
        }
    }

    /// The last message, if it is the server that ends the stream (MCP 2026-07-28, `SubscriptionsListenResult`).
    pub(super) fn result(&self) -> Bytes {
        event(&Response { jsonrpc: "2.0", id: &self.id, result: Ended { result_type: COMPLETE, meta: &self.meta } })
    }

    /// Any notification.
    pub(super) fn notification(&self, method: &str, params: &impl Serialize) -> Bytes {
        event(&Notification { jsonrpc: "2.0", method, params })
    }
}

// Through a `Value` an id of many digits would lose some: everything is written as it is.

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'a str,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Acknowledged<'a> {
    #[serde(rename = "_meta")]
    meta: &'a Meta,
    notifications: BTreeMap<&'a str, &'a RawValue>,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    id: &'a RawValue,
    result: Ended<'a>,
}

#[derive(Serialize)]
struct Ended<'a> {
    #[serde(rename = "resultType")]
    result_type: &'a str,
    #[serde(rename = "_meta")]
    meta: &'a Meta,
}

/// One event with one line of data.
fn event(message: &impl Serialize) -> Bytes {
    const HEAD: &[u8] = b"event: message\ndata: ";
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(HEAD);
    serde_json::to_writer(&mut text, message).expect("a message has a form in JSON");
    // Passed-through JSON may be laid out over lines. In a string there is no raw line end, so this is white space.
    text[HEAD.len()..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    text.extend_from_slice(b"\n\n");
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use tokkuri_core::access::Owner;
    use tokkuri_core::id::NodeId;
    use tokkuri_core::task::{Command, Draft};
    use tokkuri_core::time::Millis;

    use super::*;

    fn wire(id: &str) -> Wire {
        Wire::new(RawId::of(serde_json::from_str(id).unwrap()).unwrap())
    }

    fn completed(result: &str) -> Arc<Task<Json>> {
        let owner = Owner { principal: "p".into(), server: "s".into(), client: "".into(), resource: "".into() };
        let arguments = Json::parse("{}").unwrap();
        let draft = Draft::new(TaskId::from_bytes([0; 18]), owner, "t", arguments, NodeId(1));
        let mut task = draft.created(Millis(0));
        let (by, result) = (task.attempt, Json::parse(result).unwrap());
        task.apply(Millis(0), Command::Complete { by, result, message: None }, &mut Vec::new()).unwrap();
        Arc::new(task)
    }

    fn text(pieces: &[Bytes]) -> String {
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn every_message_carries_the_id_as_it_was_spelled() {
        let task = completed("{}");
        for id in ["7", "-1", "123456789012345678901234567890", r#""7""#, r#""\u0041""#] {
            let wire = wire(id);
            let tagged = format!(r#""_meta":{{"{SUBSCRIPTION_ID}":{id}}}"#);
            let messages = [
                text(&[wire.acknowledged(&Granted::new(), &[task.id])]),
                text(&wire.task(&task)),
                text(&[wire.result()]),
            ];
            for message in messages {
                assert!(message.contains(&tagged), "{message}");
            }
            assert!(text(&[wire.result()]).contains(&format!(r#""id":{id}"#)));
        }
    }

    #[test]
    fn a_result_is_the_same_whether_it_is_shared_or_copied() {
        let wire = wire("1");
        for (size, large) in [(1, false), (4 << 10, true), (12 << 10, true)] {
            for (end, shared) in [("", true), ("\n", false)] {
                let result = format!(r#"{{"text":"{}"{end}}}"#, "x".repeat(size));
                let task = completed(&result);
                let pieces = wire.task(&task);
                assert_eq!(pieces.len(), if shared && large { 3 } else { 1 });
                let text = text(&pieces);
                let data = text.strip_prefix("event: message\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
                assert!(!data.contains('\n'), "one line: {data}");
                let got: serde_json::Value = serde_json::from_str(data).unwrap();
                assert_eq!(got["params"]["result"], serde_json::from_str::<serde_json::Value>(&result).unwrap());
                assert_eq!(got["params"]["status"], "completed");
                assert!(got["params"].get("resultType").is_none());
            }
        }
    }
}
