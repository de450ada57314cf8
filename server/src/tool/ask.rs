//! What a tool can ask the client, and what it gets back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::run::Stop;
use tokkuri_core::wire::Json;

/// The answer to a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user filled it in.
    Accepted(T),
    /// The user said no.
    Declined,
    /// The user closed it without a choice.
    Dismissed,
}

/// The answer to a url elicitation. `Accepted` means that the user agreed to open it, not that they are done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The user agreed.
    Accepted,
    /// The user said no.
    Declined,
    /// The user closed it without a choice.
    Dismissed,
}

/// One root of the client (MCP, `Root`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The run has to stop; whatever it returns is thrown away.
    #[error("the run was told to stop ({0:?})")]
    Stopped(Stop),
    /// In this mode the tool is run again once the answer is there.
    #[error("the question is not answered yet")]
    Suspended,
    /// The request that started the run did not declare what this question needs.
    #[error("the client did not declare {}, which this question needs", names(*.0))]
    Undeclared(Capabilities),
    /// The task has asked as many questions as it may (`tasks.max_questions`).
    #[error("a task may ask {limit} questions, and has")]
    TooMany {
        /// How many it may ask.
        limit: u32,
    },
    /// There is no way to ask here.
    #[error("this call cannot ask its client anything: {0}")]
    NotHere(&'static str),
    /// The key was used by the tool's `prepare`, which asks on the request itself.
    #[error("the key {0:?} was used by the tool's prepare: the task's questions need keys of their own")]
    KeyTaken(String),
    /// The schema of the form is not flat, or is no schema.
    #[error("a form asks for strings, numbers, booleans and choices only: {0}")]
    NotAForm(String),
    /// The answer fits the question but not the type it was to become.
    #[error("the answer could not be read: {0}")]
    Unreadable(String),
    /// The store could not take the question.
    #[error("the question could not be stored: {0}")]
    Store(String),
}

/// Capabilities in the words of the wire.
fn names(missing: Capabilities) -> String {
    let names = [
        (missing.form, "elicitation.form"),
        (missing.url, "elicitation.url"),
        (missing.sampling, "sampling"),
        (missing.sampling_tools, "sampling.tools"),
        (missing.sampling_context, "sampling.context"),
        (missing.roots, "roots"),
    ];
    let names: Vec<_> = names.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
    names.join(", ")
}

/// A form elicitation as it goes into `inputRequests`.
pub(crate) fn form(message: &str, schema: &Map<String, Value>) -> Json {
    Json::from(&json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    }))
}

/// A url elicitation as it goes into `inputRequests`.
pub(crate) fn url(message: &str, url: &str) -> Json {
    Json::from(&json!({
        "method": "elicitation/create",
        "params": { "mode": "url", "message": message, "url": url },
    }))
}

/// A sampling request as it goes into `inputRequests`.
pub(crate) fn sample(params: &Value) -> Json {
    Json::from(&json!({ "method": "sampling/createMessage", "params": params }))
}

/// A roots request as it goes into `inputRequests`.
pub(crate) fn roots() -> Json {
    Json::from(&json!({ "method": "roots/list" }))
}

#[derive(Deserialize)]
struct ElicitResult {
    action: Action,
    content: Option<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<Root>,
}

pub(crate) fn read_form<T: DeserializeOwned>(answer: &Json) -> Result<Elicited<T>, AskError> {
    let ElicitResult { action, content } = answer.read().map_err(unreadable)?;
    Ok(match (action, content) {
        (Action::Accept, Some(content)) => Elicited::Accepted(content.read().map_err(unreadable)?),
        (Action::Accept, None) => Elicited::Accepted(serde_json::from_str("{}").map_err(unreadable)?),
        (Action::Decline, _) => Elicited::Declined,
        (Action::Cancel, _) => Elicited::Dismissed,
    })
}

pub(crate) fn read_consent(answer: &Json) -> Result<Consent, AskError> {
    let ElicitResult { action, .. } = answer.read().map_err(unreadable)?;
    Ok(match action {
        Action::Accept => Consent::Accepted,
        Action::Decline => Consent::Declined,
        Action::Cancel => Consent::Dismissed,
    })
}

pub(crate) fn read_roots(answer: &Json) -> Result<Vec<Root>, AskError> {
    answer.read::<Roots>().map(|it| it.roots).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> AskError {
    AskError::Unreadable(error.to_string())
}

/// The flat schema of a form whose fields are those of `T`.
pub(crate) fn form_schema<T: JsonSchema>() -> Result<Map<String, Value>, AskError> {
    let mut schema = super::schema::of::<T>();
    schema.retain(|member, _| matches!(member.as_str(), "type" | "properties" | "required"));
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return Err(AskError::NotAForm("it has no fields".into()));
    };
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else {
            return Err(AskError::NotAForm(format!("{name} can be anything")));
        };
        // An optional field is one that is not required: a form has no null.
        if let Some(Value::Array(types)) = property.get("type")
            && types.len() == 2
            && let Some(one) = types.iter().find(|it| *it != "null")
        {
            let one = one.clone();
            property.insert("type".into(), one);
        }
        // Widths of Rust's numbers are no formats of a form.
        let format = property.get("format").and_then(Value::as_str);
        if !matches!(format, None | Some("email" | "uri" | "date" | "date-time")) {
            property.remove("format");
        }
        let flat = match property.get("type").and_then(Value::as_str) {
            Some("string" | "number" | "integer" | "boolean") => true,
            Some("array") => {
                property.get("items").is_some_and(|items| items.get("type").is_some_and(|it| it == "string"))
            }
            Some(_) | None => false,
        };
        if !flat {
            return Err(AskError::NotAForm(format!("{name} is not of a plain type")));
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema, Deserialize, Debug, PartialEq)]
    struct Person {
        name: String,
        age: Option<u8>,
        colour: Option<Colour>,
    }

    #[derive(JsonSchema, Deserialize, Debug, PartialEq)]
    enum Colour {
        Red,
        Green,
    }

    #[test]
    fn a_struct_is_a_flat_form() {
        let schema = Value::Object(form_schema::<Person>().unwrap());
        assert_eq!(schema["required"], json!(["name"]), "{schema}");
        assert_eq!(schema["properties"]["name"]["type"], "string", "{schema}");
        assert_eq!(schema["properties"]["age"]["type"], "integer", "{schema}");
        assert!(schema["properties"]["age"].get("format").is_none(), "{schema}");
    }

    #[test]
    fn answers_become_types() {
        let accepted = Json::parse(r#"{"action":"accept","content":{"name":"Ann"}}"#).unwrap();
        let ann = Person { name: "Ann".into(), age: None, colour: None };
        assert_eq!(read_form::<Person>(&accepted).unwrap(), Elicited::Accepted(ann));
        let declined = Json::parse(r#"{"action":"decline"}"#).unwrap();
        assert_eq!(read_form::<Person>(&declined).unwrap(), Elicited::Declined);
        assert_eq!(read_consent(&declined).unwrap(), Consent::Declined);
    }
}
