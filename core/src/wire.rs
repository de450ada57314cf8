//! The JSON shapes of the tasks extension: one home for them (MCP 2026-07-28, `io.modelcontextprotocol/tasks`).
//!
//! Values that only pass through (arguments, questions, answers, results) are [`Json`]: text that comes back byte for byte.

mod json;
mod params;
mod task;

pub use json::Json;
pub use params::{CancelParams, Declared, GetParams, UpdateParams, declared};
pub use task::{CreateTaskResult, DetailedTask, TaskNotification};

/// The name of the extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// `resultType` of every finished result.
pub const COMPLETE: &str = "complete";

/// The acknowledgement of `tasks/update` and `tasks/cancel`.
pub const ACK: &str = r#"{"resultType":"complete"}"#;
