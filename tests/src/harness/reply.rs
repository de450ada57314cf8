//! What came back for one request: status, headers, the bytes as they were, and the JSON in them.
//!
//! Values are compared as the wire had them: [`Reply::raw`] gives the bytes of a member, untouched by any parser, because
//! "byte for byte" is one of the promises.

use std::collections::BTreeMap;

use reqwest::header::HeaderMap;
use serde_json::Value;
use serde_json::value::RawValue;

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// The body as text (bytes that are not UTF-8 are replaced).
    pub body: String,
    /// The bytes of the final response: the body, or the data of the event that carried it. Empty if there was none.
    pub response: String,
    /// The final response, parsed; null if there was none.
    pub message: Value,
    /// The messages that came before it on an event stream, in order.
    pub notifications: Vec<Value>,
}

impl Reply {
    /// The `result`.
    ///
    /// # Panics
    /// If the answer is anything else.
    #[track_caller]
    pub fn result(&self) -> &Value {
        match self.message.get("result") {
            Some(result) => result,
            None => panic!("no result: HTTP {} {}", self.status, self.body),
        }
    }

    /// The `error`.
    ///
    /// # Panics
    /// If the answer is anything else.
    #[track_caller]
    pub fn error(&self) -> &Value {
        match self.message.get("error") {
            Some(error) => error,
            None => panic!("no error: HTTP {} {}", self.status, self.body),
        }
    }

    /// Asserts that this is the error `code` on the HTTP status `status`, and returns it.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn refused(&self, status: u16, code: i64) -> &Value {
        let error = self.error();
        assert_eq!((self.status, &error["code"]), (status, &code.into()), "{}", self.body);
        error
    }

    /// Asserts that this is -32021 for want of the tasks extension, as the wire wants it.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn refused_for_want_of_tasks(&self) {
        let error = self.refused(400, -32021);
        let extension = &error["data"]["requiredCapabilities"]["extensions"][super::client::TASKS];
        assert!(extension.is_object(), "the error names the extension: {error}");
    }

    /// Asserts that this is an acknowledgement: `{"resultType":"complete"}` and nothing of the task.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn acknowledged(&self) {
        let mut result = self.result().clone();
        if let Some(result) = result.as_object_mut() {
            result.remove("_meta");
        }
        assert_eq!((self.status, result), (200, serde_json::json!({"resultType": "complete"})), "{}", self.body);
    }

    /// The id of the task that this reply creates.
    ///
    /// # Panics
    /// If it creates none.
    #[track_caller]
    pub fn task_id(&self) -> String {
        assert_eq!(self.result()["resultType"], "task", "a task: {}", self.body);
        self.result()["taskId"].as_str().expect("taskId is a string").to_owned()
    }

    /// The status of the task that this reply shows.
    #[track_caller]
    pub fn task_status(&self) -> &str {
        self.result()["status"].as_str().unwrap_or_default()
    }

    /// What a tool answered on the request itself: the text of its one content item, without `isError`.
    ///
    /// # Panics
    /// If this is not such an answer.
    #[track_caller]
    pub fn text(&self) -> &str {
        text_of(self.result(), &self.body)
    }

    /// What a tool answered in the completed task that this reply shows.
    ///
    /// # Panics
    /// If this is not such a task.
    #[track_caller]
    pub fn task_text(&self) -> &str {
        assert_eq!(self.task_status(), "completed", "{}", self.body);
        text_of(&self.result()["result"], &self.body)
    }

    /// The text of an `isError` result on the request itself.
    ///
    /// # Panics
    /// If this is not such an answer.
    #[track_caller]
    pub fn tool_error(&self) -> &str {
        let result = self.result();
        assert_eq!((self.status, &result["isError"]), (200, &true.into()), "an isError result: {}", self.body);
        result["content"][0]["text"].as_str().expect("a text that says what is wrong")
    }

    /// Everything of it but the date: what two answers have to share that nobody may tell apart.
    pub fn but_for_the_date(&self) -> (u16, Vec<(String, Vec<u8>)>, String) {
        let headers = self.headers.iter().filter(|(name, _)| *name != "date");
        let mut headers: Vec<_> = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        headers.sort();
        (self.status, headers, self.body.clone())
    }

    /// The keys of the questions that are outstanding in the task that this reply shows, sorted.
    pub fn questions(&self) -> Vec<String> {
        let asked = self.result()["inputRequests"].as_object();
        let mut keys: Vec<String> = asked.into_iter().flatten().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// The bytes of a member of the response, as they were on the wire.
    ///
    /// # Panics
    /// If there is no such member.
    #[track_caller]
    pub fn raw(&self, path: &[&str]) -> &str {
        member(&self.response, path).unwrap_or_else(|| panic!("no {path:?}: {}", self.body))
    }
}

/// The bytes of a member of a JSON text, as they are.
pub fn member<'a>(json: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(json, |at, key| {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(at).ok()?;
        Some(members.get(*key)?.get())
    })
}

#[track_caller]
fn text_of<'a>(result: &'a Value, body: &str) -> &'a str {
    assert_ne!(result["isError"], true, "{body}");
    assert_eq!(result["resultType"], "complete", "{body}");
    let content = result["content"].as_array().expect("content is a list");
    assert_eq!(content.len(), 1, "one text item: {body}");
    content[0]["text"].as_str().expect("a text item")
}

/// Parses JSON that may hold escaped lone surrogates: legal JSON, but no Rust string. They become U+FFFD here; the bytes
/// stay in [`Reply::response`].
pub(crate) fn parse(json: &str) -> Option<Value> {
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&without_lone_surrogates(json))).ok()
}

fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let first = unit(rest);
        let keep = match first {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => 0,
            Some(_) => 6,
            None => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
        };
        if keep == 0 {
            out.push_str("\\ufffd");
            rest = &rest[6..];
        } else {
            out.push_str(&rest[..keep]);
            rest = &rest[keep..];
        }
    }
    out.push_str(rest);
    out
}

/// The UTF-16 unit of the escape `\uXXXX` at the start.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_replaced_and_nothing_else_is() {
        let replaced = without_lone_surrogates(r#"["\ud800","\\ud800","\ud83d\ude00","\udc00\n","\"","ü\u0000"]"#);
        assert_eq!(replaced, r#"["\ufffd","\\ud800","\ud83d\ude00","\ufffd\n","\"","ü\u0000"]"#);
        assert!(parse(r#"{"a":"\ud800"}"#).is_some());
        assert!(parse("{").is_none());
    }

    #[test]
    fn raw_members_come_out_as_they_went_in() {
        let response = r#"{"result": {"result":{"structuredContent": {"a":"\ud800","b":1e300, "c":123456789012345678901234567890}}}}"#;
        let reply = Reply {
            status: 200,
            headers: HeaderMap::new(),
            body: String::new(),
            response: response.into(),
            message: Value::Null,
            notifications: Vec::new(),
        };
        let raw = reply.raw(&["result", "result", "structuredContent"]);
        assert_eq!(raw, r#"{"a":"\ud800","b":1e300, "c":123456789012345678901234567890}"#);
    }
}
