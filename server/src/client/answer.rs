//! Bytes of an answer into messages: event streams cut into events, JSON told apart.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{Progress, RpcError};

/// A message of the server, as far as one request cares.
#[derive(Debug)]
pub(super) enum Message {
    /// The request's result.
    Result(Value),
    /// The request's error, or one that names no request.
    Error(RpcError),
    /// Progress of the request.
    Progress(Progress),
    /// Something for someone else.
    Other,
}

impl Message {
    /// Reads one message as the request `id` sees it; `None` if it is no JSON-RPC message.
    pub(super) fn read(bytes: &[u8], id: u64) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(default)]
            id: Option<Value>,
            #[serde(default)]
            method: Option<String>,
            #[serde(default)]
            params: Option<Value>,
            #[serde(default, borrow)]
            result: Option<&'a RawValue>,
            #[serde(default)]
            error: Option<RpcError>,
        }
        let envelope: Envelope<'_> = serde_json::from_slice(bytes).ok()?;
        let ours = envelope.id.as_ref().and_then(Value::as_u64) == Some(id);
        if let Some(method) = envelope.method {
            let step =
                (method == "notifications/progress").then(|| serde_json::from_value(envelope.params?).ok()).flatten();
            return Some(step.map_or(Self::Other, Self::Progress));
        }
        if let Some(error) = envelope.error {
            // A server that could not read the request cannot repeat its id.
            let unnamed = envelope.id.is_none();
            return Some(if ours || unnamed { Self::Error(error) } else { Self::Other });
        }
        let result = envelope.result?;
        match ours {
            true => result_value(result).map(Self::Result),
            false => Some(Self::Other),
        }
    }
}

/// Reads a notification: its method and its parameters; `None` if it is none.
pub(super) fn notification(bytes: &[u8]) -> Option<(String, Value)> {
    #[derive(Deserialize)]
    struct Notification<'a> {
        method: String,
        #[serde(default, borrow)]
        params: Option<&'a RawValue>,
    }
    let read: Notification<'_> = serde_json::from_slice(bytes).ok()?;
    Some((read.method, read.params.map_or(Some(Value::Null), result_value)?))
}

/// Reads a result into a value. Tools may answer what `Value` cannot hold (an escaped lone surrogate, say); such text
/// is read with the offending escape replaced, since a terminal could not show it either.
fn result_value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).or_else(|_| serde_json::from_str(&without_lone_surrogates(raw.get()))).ok()
}

fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |text: &str| -> Option<u16> {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        let taken = match unit(rest) {
            Some(0xD800..=0xDBFF) => match rest.get(6..).and_then(unit) {
                Some(0xDC00..=0xDFFF) => 12,
                _ => 0,
            },
            Some(0xDC00..=0xDFFF) => 0,
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        if taken == 0 {
            out.push_str("\\ufffd");
            rest = &rest[6..];
        } else {
            out.push_str(&rest[..taken]);
            rest = &rest[taken..];
        }
    }
    out.push_str(rest);
    out
}

/// Cuts an event stream into the data of its events (WHATWG, server-sent events), however the bytes arrive.
#[derive(Debug, Default)]
pub(crate) struct Events {
    buffer: Vec<u8>,
    /// How much of `buffer` is known to hold no line end, so that a long line is searched once.
    searched: usize,
    data: Option<Vec<u8>>,
}

impl Events {
    /// More bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes held for events that are not complete.
    pub(crate) fn pending(&self) -> usize {
        self.buffer.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// The data of the next complete event that has any.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut start = 0;
        let mut found = None;
        loop {
            let from = start.max(self.searched);
            let Some(end) = self.buffer[from..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                break;
            };
            let line = &self.buffer[start..from + end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            start = from + end + 1;
            self.searched = start;
            if line.is_empty() {
                found = self.data.take().filter(|data| !data.is_empty());
                if found.is_some() {
                    break;
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.strip_prefix(b" ").unwrap_or(data);
                match &mut self.data {
                    Some(before) => {
                        before.push(b'\n');
                        before.extend_from_slice(data);
                    }
                    None => self.data = Some(data.to_vec()),
                }
            }
        }
        self.buffer.drain(..start);
        self.searched -= start;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_the_bytes_arrive() {
        let stream =
            b": hello\n\nevent: message\r\ndata: one\r\n\r\ndata:two\ndata: more\n\ndata:\n\nid: 7\n\ndata: cut";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let mut seen = Vec::new();
            for chunk in stream.chunks(size) {
                events.push(chunk);
                while let Some(data) = events.next() {
                    seen.push(String::from_utf8(data).unwrap());
                }
            }
            assert_eq!(seen, ["one", "two\nmore"], "in chunks of {size}");
        }
    }

    #[test]
    fn a_lone_surrogate_does_not_make_a_result_unreadable() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800x","b":"\ud83d\ude00","c":"\\ud800","d":1e300}}"#;
        let Some(Message::Result(result)) = Message::read(text.as_bytes(), 1) else {
            panic!("no result");
        };
        assert_eq!(result["a"], "\u{fffd}x");
        assert_eq!(result["b"], "😀");
        assert_eq!(result["c"], "\\ud800");
    }

    #[test]
    fn answers_to_others_are_not_ours() {
        let read = |text: &str| Message::read(text.as_bytes(), 1);
        assert!(matches!(read(r#"{"id":2,"result":{}}"#), Some(Message::Other)));
        assert!(matches!(read(r#"{"id":"1","result":{}}"#), Some(Message::Other)));
        assert!(matches!(read(r#"{"error":{"code":-32700,"message":"m"}}"#), Some(Message::Error(_))));
        assert!(read("<html>").is_none());
        assert!(read("{}").is_none());
    }
}
