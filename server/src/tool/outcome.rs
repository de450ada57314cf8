//! What a tool returns.

use serde::ser::{SerializeMap, Serializer};
use serde::{Serialize, Serialize as SerializeTrait};
use tokkuri_core::Text;
use tokkuri_core::run::Stop;
use tokkuri_core::task::Fault;
use tokkuri_core::wire::{COMPLETE, Json};

use crate::tool::{AskError, Tool};

/// The result of a call (MCP 2026-07-28, `CallToolResult`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// What it says.
    pub content: Vec<Content>,
    /// What it returns to programs.
    pub structured: Option<Json>,
    /// Whether the tool could not do what it was asked to.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<Json>,
}

/// One item of a result's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Any other content block, as its JSON.
    Block(Json),
}

impl ToolResult {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// The tool could not do what it was asked to, and says why: a result with `isError`, not a JSON-RPC error.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A value for programs, with its JSON as text for everyone else.
    ///
    /// # Errors
    /// If the value has no form in JSON.
    pub fn structured(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let json = Json::of(value)?;
        Ok(Self { content: vec![Content::Text(json.as_str().to_owned())], structured: Some(json), ..Self::default() })
    }

    /// The same, marked as an error.
    #[must_use]
    pub fn into_error(mut self) -> Self {
        self.is_error = true;
        self
    }
}

impl SerializeTrait for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", COMPLETE)?;
        map.serialize_entry("content", &self.content)?;
        if let Some(structured) = &self.structured {
            map.serialize_entry("structuredContent", structured)?;
        }
        map.serialize_entry("isError", &self.is_error)?;
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl SerializeTrait for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                map.end()
            }
            Self::Block(json) => json.serialize(serializer),
        }
    }
}

/// What a body returned, as the result or the error of its call: too large a result and one that breaks the tool's own output
/// schema are faults of the server.
///
/// # Errors
/// The JSON-RPC error that the call ends with.
pub(crate) fn settle(
    tool: &Tool,
    max_result_bytes: usize,
    outcome: Result<ToolResult, ToolError>,
) -> Result<Json, Fault<Json>> {
    let result = match outcome {
        Ok(result) | Err(ToolError(Kind::Failed(result))) => result,
        Err(ToolError(Kind::Rpc(fault))) => return Err(fault),
        Err(ToolError(Kind::Stopped(_) | Kind::Suspended)) => return Err(Fault::internal("The tool gave up waiting.")),
    };
    if let (Some(schema), false) = (&tool.output, result.is_error) {
        let Some(structured) = &result.structured else {
            return Err(Fault::internal("The tool returned no structured content, which its output schema promises."));
        };
        if let Err(faults) = schema.check(structured) {
            tracing::error!(tool = %tool.name, faults, "the result breaks the tool's own output schema");
            return Err(Fault::internal("The tool's result breaks its own output schema."));
        }
    }
    let json = Json::of(&result).map_err(|error| Fault::internal(format!("The result is not JSON: {error}")))?;
    let bytes = json.as_str().len();
    if bytes > max_result_bytes {
        return Err(Fault::internal(format!(
            "The tool's result has {bytes} bytes; this server takes {max_result_bytes} (tasks.max_result_bytes)."
        )));
    }
    Ok(json)
}

/// What can stand for a [`ToolResult`].
pub trait IntoToolResult {
    /// The result.
    ///
    /// # Errors
    /// If it has no form in JSON.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::default())
    }
}

/// A value for programs: `Ok(Structured(report))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoToolResult for Structured<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        ToolResult::structured(&self.0).map_err(|error| ToolError::internal(format!("the result is not JSON: {error}")))
    }
}

/// How a run ends without a result.
///
/// Any error converts into it with `?`: it becomes a result with `isError` whose text is the error's, since that is how MCP
/// tools say that they could not do it. For a JSON-RPC error there is [`ToolError::rpc`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A result with `isError`.
    Failed(ToolResult),
    /// A JSON-RPC error.
    Rpc(Fault<Json>),
    /// The run was told to stop and did.
    Stopped(Stop),
    /// The run asked something that was not answered yet, in a mode in which it is run again once it is.
    Suspended,
}

impl ToolError {
    /// The tool could not do it, and says why: a result with `isError`.
    pub fn failed(text: impl Into<String>) -> Self {
        Self(Kind::Failed(ToolResult::error(text)))
    }

    /// A JSON-RPC error: the task fails with it. For what is wrong with the request itself or with the server.
    pub fn rpc(code: i64, message: impl Into<Text>, data: Option<Json>) -> Self {
        Self(Kind::Rpc(Fault { code, message: message.into(), data }))
    }

    /// A fault of the tool's own (-32603).
    pub fn internal(message: impl Into<Text>) -> Self {
        Self(Kind::Rpc(Fault::internal(message)))
    }

    /// Why the run was told to stop, if that is what it ended with.
    pub const fn stop(&self) -> Option<Stop> {
        match &self.0 {
            Kind::Stopped(stop) => Some(*stop),
            Kind::Failed(_) | Kind::Rpc(_) | Kind::Suspended => None,
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        match (&error as &dyn std::any::Any).downcast_ref::<AskError>() {
            Some(AskError::Stopped(stop)) => Self(Kind::Stopped(*stop)),
            Some(AskError::Suspended) => Self(Kind::Suspended),
            Some(_) | None => Self::failed(error.to_string()),
        }
    }
}
