//! The parts of the wire that this client reads, as it reads them: only what the commands use, and no stricter.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
pub use tokkuri_core::task::Status as TaskStatus;

use super::{ClientError, RpcError};

/// The answer to `server/discover`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Every version that the server speaks.
    pub supported_versions: Vec<String>,
    /// What it can.
    #[serde(default)]
    pub capabilities: Map<String, Value>,
    /// How its tools are to be used.
    #[serde(default)]
    pub instructions: Option<String>,
}

impl Discovery {
    /// Whether the server has the tasks extension.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.capabilities.get("extensions").and_then(|extensions| extensions.get(super::TASKS_EXTENSION)).is_some()
    }
}

/// A tool as `tools/list` shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON schema of its arguments.
    #[serde(default)]
    pub input_schema: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolPage {
    pub(super) tools: Vec<Tool>,
    #[serde(default)]
    pub(super) next_cursor: Option<String>,
}

/// One `tools/call`, kept so that it can be sent again with answers.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    answers: Option<Map<String, Value>>,
    state: Option<String>,
}

impl Call {
    /// A first call.
    #[must_use]
    pub fn new(tool: Tool, arguments: Map<String, Value>) -> Self {
        Self { tool, arguments, answers: None, state: None }
    }

    /// The same call again after [`Reply::InputRequired`], with the answers of this round and the state of the reply.
    #[must_use]
    pub fn retry(self, answers: Map<String, Value>, state: Option<String>) -> Self {
        Self { answers: Some(answers).filter(|answers| !answers.is_empty()), state, ..self }
    }

    pub(super) fn params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        params.insert("name".to_owned(), Value::from(self.tool.name.clone()));
        params.insert("arguments".to_owned(), Value::Object(self.arguments.clone()));
        if let Some(answers) = &self.answers {
            params.insert("inputResponses".to_owned(), Value::Object(answers.clone()));
        }
        if let Some(state) = &self.state {
            params.insert("requestState".to_owned(), Value::from(state.clone()));
        }
        params
    }
}

/// The three answers to `tools/call`.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The tool is done.
    Complete(CallResult),
    /// The tool asks before it starts: answer and call again.
    InputRequired {
        /// What it asks, by key; empty means "call again".
        questions: BTreeMap<String, Question>,
        /// Sent back unchanged with the answers.
        state: Option<String>,
    },
    /// The tool runs as a task.
    Task(Box<Task>),
}

impl Reply {
    pub(super) fn read(result: Value) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Asked {
            #[serde(default)]
            input_requests: BTreeMap<String, Question>,
            #[serde(default)]
            request_state: Option<String>,
        }
        const METHOD: &str = "tools/call";
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") => read(METHOD, result).map(Self::Complete),
            Some("task") => read(METHOD, result).map(|task| Self::Task(Box::new(task))),
            Some("input_required") => {
                let asked: Asked = read(METHOD, result)?;
                Ok(Self::InputRequired { questions: asked.input_requests, state: asked.request_state })
            }
            other => Err(ClientError::Unexpected { method: METHOD, what: format!("resultType is {other:?}") }),
        }
    }
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// Text, images, links …, each as the wire has it.
    #[serde(default)]
    pub content: Vec<Value>,
    /// The result as data.
    #[serde(default)]
    pub structured_content: Option<Value>,
    /// Whether the tool says that it failed.
    #[serde(default)]
    pub is_error: bool,
}

/// A question of a tool or task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Question {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// A task as `tasks/get` and the create reply show it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    #[serde(rename = "taskId")]
    pub id: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// The server's words on it; `i/n …` while it reports progress.
    #[serde(default)]
    pub status_message: Option<String>,
    /// When it was made, ISO 8601.
    pub created_at: String,
    /// When it last changed, ISO 8601.
    pub last_updated_at: String,
    /// How long it lives from its creation, in ms; `None` for ever.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// How often the server wants to be asked, in ms.
    #[serde(default)]
    pub poll_interval_ms: Option<u64>,
    /// What it asks, by key, while `input_required`.
    #[serde(default, rename = "inputRequests")]
    pub questions: BTreeMap<String, Question>,
    /// Its result, when completed.
    #[serde(default)]
    pub result: Option<CallResult>,
    /// Its error, when failed.
    #[serde(default)]
    pub error: Option<RpcError>,
}

/// How far a tool is that runs within its request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is.
    #[serde(default)]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default)]
    pub message: Option<String>,
}

/// Reads a result into `T`.
pub(super) fn read<T: DeserializeOwned>(method: &'static str, result: Value) -> Result<T, ClientError> {
    serde_json::from_value(result).map_err(|error| ClientError::Unexpected { method, what: error.to_string() })
}
