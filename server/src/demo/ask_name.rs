//! `ask_name`: asks for a name and says hello.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Annotations, Elicited, RunContext, TaskMode, Tool};

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

/// The form.
#[derive(Debug, Deserialize, JsonSchema)]
struct Person {
    /// What to call you.
    #[schemars(length(min = 1, max = 100))]
    name: String,
    /// In years, if you like.
    age: Option<u8>,
}

/// The tool.
pub(crate) fn tool() -> Tool {
    Tool::new("ask_name", |_: Nothing, cx: RunContext| async move {
        Ok(match cx.elicit::<Person>("name", "Who are you?").await? {
            Elicited::Accepted(Person { name, age: Some(age) }) => format!("Hello {name}, {age} years old!"),
            Elicited::Accepted(Person { name, age: None }) => format!("Hello {name}!"),
            Elicited::Declined => "Hello whoever you are!".to_owned(),
            Elicited::Dismissed => "Hello? The question was closed without an answer.".to_owned(),
        })
    })
    .title("Ask for a name")
    .description("Asks the user for a name and, if they like, an age, and answers with a greeting.")
    .annotations(Annotations { read_only: Some(true), open_world: Some(false), ..Annotations::default() })
    .task(TaskMode::Optional)
    .restartable()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Client, call, failure};
    use super::*;
    use crate::tool::ToolResult;

    #[tokio::test]
    async fn each_answer_has_its_greeting() {
        for (answer, greeting) in [
            (json!({ "action": "accept", "content": { "name": "Ada" } }), "Hello Ada!"),
            (json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } }), "Hello Ada, 36 years old!"),
            (json!({ "action": "decline" }), "Hello whoever you are!"),
            (json!({ "action": "cancel" }), "Hello? The question was closed without an answer."),
        ] {
            let client = Client::answering(answer);
            assert_eq!(call(&tool(), json!({}), &client).await.unwrap(), ToolResult::text(greeting));
            let schema = &client.asked()[0]["params"]["requestedSchema"];
            assert_eq!(schema["required"], json!(["name"]), "{schema}");
            assert_eq!(schema["properties"]["age"]["type"], "integer", "{schema}");
        }
    }

    #[tokio::test]
    async fn a_client_that_cannot_be_asked_is_told_so() {
        let said = failure(call(&tool(), json!({}), &Client::default()).await);
        assert!(said.contains("elicitation.form"), "{said}");
    }
}
