//! JSON text that passes through unread.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::form;
use crate::payload::{Capabilities, Misfit, Payload};

/// One JSON value as its text: cheap to clone, and written out byte for byte as it came in, so that U+0000, lone surrogates,
/// `1e300` and integers of any length survive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The text of any value.
    ///
    /// # Errors
    /// If the value has no form in JSON: a map whose keys are not strings, say.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// This text, if it is one JSON value.
    ///
    /// # Errors
    /// Where and why it is not JSON.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(Self::from)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads it as some type.
    ///
    /// # Errors
    /// Where and why it does not fit that type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl core::fmt::Debug for Json {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // RawValue has no borrowed constructor but through the parser, which only walks over the text.
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        alloc::boxed::Box::<RawValue>::deserialize(deserializer).map(|raw| Self::from(&*raw))
    }
}

/// A question as it goes into `inputRequests`.
#[derive(Deserialize)]
struct InputRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
}

impl InputRequest<'_> {
    /// The parameters, if core can read them. It cannot read a lone surrogate, say, that passes through as text.
    fn params(&self) -> Option<Value> {
        self.params.map_or(Some(Value::Null), |params| serde_json::from_str(params.get()).ok())
    }
}

impl Payload for Json {
    fn needs(&self) -> Capabilities {
        let none = Capabilities::default();
        let Ok(request) = self.read::<InputRequest<'_>>() else { return none };
        // What cannot be read may need anything that its method may need.
        let Some(params) = request.params() else {
            return match &*request.method {
                "elicitation/create" => Capabilities { form: true, url: true, ..none },
                "sampling/createMessage" => {
                    Capabilities { sampling: true, sampling_tools: true, sampling_context: true, ..none }
                }
                "roots/list" => Capabilities { roots: true, ..none },
                _ => none,
            };
        };
        match &*request.method {
            "elicitation/create" => match is_url(&params) {
                true => Capabilities { url: true, ..none },
                false => Capabilities { form: true, ..none },
            },
            "sampling/createMessage" => Capabilities {
                sampling: true,
                sampling_tools: params.get("tools").is_some() || params.get("toolChoice").is_some(),
                sampling_context: params.get("includeContext").is_some_and(|context| context != "none"),
                ..none
            },
            "roots/list" => Capabilities { roots: true, ..none },
            _ => none,
        }
    }

    fn accepts(&self, answer: &Self) -> Result<(), Misfit> {
        let Ok(request) = self.read::<InputRequest<'_>>() else { return Ok(()) };
        let params = request.params().unwrap_or_default();
        let Ok(answer) = answer.read::<Value>() else { return misfit("it is not readable JSON") };
        let Value::Object(answer) = answer else { return misfit("it must be an object") };
        match &*request.method {
            "elicitation/create" => match answer.get("action").and_then(Value::as_str) {
                Some("accept") if is_url(&params) => Ok(()),
                Some("accept") => {
                    let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
                    let nothing = Value::Object(serde_json::Map::new());
                    form::check(schema, answer.get("content").unwrap_or(&nothing))
                }
                Some("decline" | "cancel") => Ok(()),
                Some(_) | None => misfit("action must be one of accept, decline, cancel"),
            },
            "sampling/createMessage" => {
                let role = answer.get("role").and_then(Value::as_str);
                let content = answer.get("content");
                if !matches!(role, Some("user" | "assistant")) {
                    return misfit("role must be user or assistant");
                }
                if !answer.get("model").is_some_and(Value::is_string) {
                    return misfit("model must be a string");
                }
                let block = |value: &Value| value.get("type").is_some_and(Value::is_string);
                match content {
                    Some(Value::Array(blocks)) if blocks.iter().all(block) => Ok(()),
                    Some(one) if block(one) => Ok(()),
                    Some(_) | None => misfit("content must be a content block or a list of them"),
                }
            }
            "roots/list" => match answer.get("roots") {
                Some(Value::Array(roots)) if roots.iter().all(|root| root.get("uri").is_some_and(Value::is_string)) => {
                    Ok(())
                }
                Some(_) | None => misfit("roots must be a list of objects with a uri"),
            },
            _ => Ok(()),
        }
    }
}

fn is_url(elicitation: &Value) -> bool {
    elicitation.get("mode").is_some_and(|mode| mode == "url")
}

fn misfit<T>(reason: &str) -> Result<T, Misfit> {
    Err(Misfit(String::from(reason)))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::task::Fault;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn text_comes_back_byte_for_byte() {
        for text in [r#"{"a":"\u0000","b":"\ud800","c":1e300,"d":123456789012345678901234567890}"#, "[ 1 , 2 ]"] {
            let value = json(text);
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
            assert_eq!(serde_json::from_str::<Json>(text).unwrap(), value);
        }
        assert!(Json::parse("{").is_err());
    }

    #[test]
    fn a_task_keeps_a_null_that_is_there() {
        let fault = Fault { code: 1, message: "no".into(), data: Some(json("null")) };
        let text = serde_json::to_string(&fault).unwrap();
        assert_eq!(serde_json::from_str::<Fault<Json>>(&text).unwrap(), fault);
        let bare = Fault { data: None, ..fault };
        let text = serde_json::to_string(&bare).unwrap();
        assert_eq!(serde_json::from_str::<Fault<Json>>(&text).unwrap(), bare);
    }

    #[test]
    fn a_question_says_what_it_needs() {
        let none = Capabilities::default();
        let table = [
            (r#"{"method":"elicitation/create","params":{"message":"?"}}"#, Capabilities { form: true, ..none }),
            (r#"{"method":"elicitation/create","params":{"mode":"url"}}"#, Capabilities { url: true, ..none }),
            (r#"{"method":"roots/list"}"#, Capabilities { roots: true, ..none }),
            (
                r#"{"method":"elicitation/create","params":{"mode":"url","message":"\ud800"}}"#,
                Capabilities { form: true, url: true, ..none },
            ),
            (r#"{"method":"sampling/createMessage","params":{}}"#, Capabilities { sampling: true, ..none }),
            (
                r#"{"method":"sampling/createMessage","params":{"tools":[],"includeContext":"thisServer"}}"#,
                Capabilities { sampling: true, sampling_tools: true, sampling_context: true, ..none },
            ),
        ];
        for (request, needs) in table {
            assert_eq!(json(request).needs(), needs, "{request}");
        }
    }

    #[test]
    fn answers_are_checked_by_the_question_that_was_asked() {
        let form = r#"{"method":"elicitation/create","params":{"requestedSchema":{"type":"object",
            "required":["name"],"properties":{"name":{"type":"string"}}}}}"#;
        let url = r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://e.example"}}"#;
        let sample = r#"{"method":"sampling/createMessage","params":{}}"#;
        let roots = r#"{"method":"roots/list"}"#;
        let table = [
            (form, r#"{"action":"accept","content":{"name":"Ann"}}"#, true),
            (form, r#"{"action":"decline"}"#, true),
            (form, r#"{"action":"cancel","content":7}"#, true),
            (form, r#"{"action":"accept"}"#, false),
            (form, r#"{"action":"accept","content":{}}"#, false),
            (form, r#"{"action":"accept","content":7}"#, false),
            (form, r#"{"action":"accept","content":{"name":42}}"#, false),
            (form, r#"{"action":"maybe"}"#, false),
            (form, r#""accept""#, false),
            (url, r#"{"action":"accept"}"#, true),
            (url, r#"{}"#, false),
            (sample, r#"{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}"#, true),
            (sample, r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}"#, true),
            (sample, r#"{"role":"assistant","content":{"type":"text","text":"hi"}}"#, false),
            (sample, r#"{"role":"robot","model":"m","content":{"type":"text","text":"hi"}}"#, false),
            (roots, r#"{"roots":[{"uri":"file:///a"}]}"#, true),
            (roots, r#"{"roots":[{"name":"a"}]}"#, false),
            (roots, r#"{}"#, false),
        ];
        for (question, answer, fits) in table {
            let said = json(question).accepts(&json(answer));
            assert_eq!(
                said.is_ok(),
                fits,
                "{question} {answer}: {}",
                said.map_or_else(|e| format!("{e}"), |()| "fits".into())
            );
        }
    }
}
