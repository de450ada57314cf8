//! The entries that may stand several times: `[[tool]]` and `[[upstream]]`.

use serde_json::{Map, Value};

use super::TaskMode;

/// `[[tool]]`: a command of this machine served as a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolConfig {
    /// The tool's name, 1 to 128 of `[A-Za-z0-9_.-]`. Needed.
    pub name: String,
    /// What the tool does, told to clients. Default: nothing.
    pub description: Option<String>,
    /// Whether calls become tasks. Default `none`.
    pub task: TaskMode,
    /// Scopes that a caller needs. Default: none.
    pub scopes: Vec<String>,
    /// Program and arguments, run without a shell. Needed.
    pub command: Vec<String>,
    /// JSON schema of the arguments, with `type = "object"` at its root. Default: any object.
    pub input_schema: Map<String, Value>,
    /// How long the command may run, in ms. Default: as long as its task lives.
    pub timeout_ms: Option<u64>,
    /// How long the command may go on after it was asked to stop, in ms. Default 0: killed at once.
    pub on_cancel_ms: u64,
    /// Life of its tasks, in ms. Default: `tasks.ttl_ms`.
    pub ttl_ms: Option<u64>,
    /// How often clients are told to poll, in ms. Default: `tasks.poll_interval_ms`.
    pub poll_interval_ms: Option<u64>,
}

/// How an upstream server is reached; exactly one of `url` and `command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// `url`: streamable HTTP.
    Url(String),
    /// `command`: program and arguments, spoken to over its standard streams.
    Command(Vec<String>),
}

/// `[[upstream]]`: another MCP server whose tools are served here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// What it is called in logs. Needed.
    pub name: String,
    /// How it is reached. Needed.
    pub reach: Reach,
    /// Put before the names of its tools. Default: nothing.
    pub prefix: String,
    /// Whether calls of its tools become tasks. Default `optional`.
    pub task: TaskMode,
    /// Scopes that a caller needs. Default: none.
    pub scopes: Vec<String>,
    /// Environment variable that holds the token shown to it. Default: none.
    pub token_env: Option<String>,
}
