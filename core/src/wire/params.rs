//! What clients send: parameters of the task methods, and what a request declares.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::id::Key;
use crate::payload::Capabilities;
use crate::wire::{Json, TASKS_EXTENSION};

/// Parameters of `tasks/get`.
#[derive(Debug, Deserialize)]
pub struct GetParams<'a> {
    /// Which task.
    #[serde(rename = "taskId", borrow)]
    pub task_id: Cow<'a, str>,
}

/// Parameters of `tasks/cancel`.
pub type CancelParams<'a> = GetParams<'a>;

/// Parameters of `tasks/update`. Answers stay unread until their keys are known to be outstanding.
#[derive(Debug, Deserialize)]
pub struct UpdateParams<'a> {
    /// Which task.
    #[serde(rename = "taskId", borrow)]
    pub task_id: Cow<'a, str>,
    /// Answers by key.
    #[serde(rename = "inputResponses", borrow)]
    pub input_responses: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl UpdateParams<'_> {
    /// The answers as core takes them.
    pub fn answers(&self) -> BTreeMap<Key, Json> {
        self.input_responses.iter().map(|(key, value)| (Key::from(&**key), Json::from(*value))).collect()
    }
}

/// What a request's `clientCapabilities` say that matters for tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Whether it declares the tasks extension.
    pub tasks: bool,
    /// What may be asked of it.
    pub asks: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientCapabilities {
    elicitation: Option<Value>,
    sampling: Option<Value>,
    roots: Option<Value>,
    extensions: BTreeMap<String, Value>,
}

/// Reads `clientCapabilities`. What is unknown is let through (the set is open), an empty `elicitation` means forms, and a
/// capability that is no object is not declared.
///
/// # Errors
/// If it is not an object, or its `extensions` are none.
pub fn declared(client_capabilities: &str) -> Result<Declared, serde_json::Error> {
    let said: ClientCapabilities = serde_json::from_str(client_capabilities)?;
    let object = |value: &Option<Value>| value.as_ref().and_then(Value::as_object).cloned();
    let elicitation = object(&said.elicitation);
    let sampling = object(&said.sampling);
    let has = |set: &Option<serde_json::Map<String, Value>>, name: &str| {
        set.as_ref().is_some_and(|set| set.get(name).is_some_and(|value| !value.is_null()))
    };
    Ok(Declared {
        tasks: said.extensions.get(TASKS_EXTENSION).is_some_and(Value::is_object),
        asks: Capabilities {
            form: has(&elicitation, "form") || elicitation.as_ref().is_some_and(serde_json::Map::is_empty),
            url: has(&elicitation, "url"),
            sampling: sampling.is_some(),
            sampling_tools: has(&sampling, "tools"),
            sampling_context: has(&sampling, "context"),
            roots: said.roots.is_some_and(|roots| roots.is_object()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_declares() {
        let none = Capabilities::default();
        let tasks = |asks| Declared { tasks: true, asks };
        let plain = |asks| Declared { tasks: false, asks };
        let table = [
            ("{}", plain(none)),
            (r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, tasks(none)),
            (r#"{"tasks":{"cancel":{}},"extensions":{"other":{}}}"#, plain(none)),
            (r#"{"elicitation":{}}"#, plain(Capabilities { form: true, ..none })),
            (r#"{"elicitation":{"url":{}}}"#, plain(Capabilities { url: true, ..none })),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, plain(Capabilities { form: true, url: true, ..none })),
            (
                r#"{"sampling":{"tools":{}},"roots":{}}"#,
                plain(Capabilities { sampling: true, sampling_tools: true, roots: true, ..none }),
            ),
        ];
        for (text, want) in table {
            assert_eq!(declared(text).unwrap(), want, "{text}");
        }
        assert!(declared("7").is_err());
    }

    #[test]
    fn input_responses_have_to_be_an_object() {
        let read = |text| serde_json::from_str::<UpdateParams<'_>>(text).map(|it| it.answers().len());
        assert_eq!(read(r#"{"taskId":"t","inputResponses":{"a":1,"b":{}}}"#).unwrap(), 2);
        for text in
            [r#"{"taskId":"t"}"#, r#"{"taskId":"t","inputResponses":[]}"#, r#"{"taskId":"t","inputResponses":null}"#]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
