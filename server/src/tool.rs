//! How a tool is declared, and what its body may do.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use tokkuri_server::tool::{RunContext, TaskMode, Tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Count {
//!     /// How far to count.
//!     to: u64,
//! }
//!
//! let count = Tool::new("count", |args: Count, cx: RunContext| async move {
//!     for n in 1..=args.to {
//!         cx.progress(n, args.to, "counting");
//!         tokio::task::yield_now().await;
//!     }
//!     Ok(format!("counted to {}", args.to))
//! })
//! .description("Counts")
//! .task(TaskMode::Optional);
//! ```
//!
//! The same body runs as a task and in the request. What differs is hidden behind [`RunContext`].

mod ask;
mod body;
mod context;
mod declare;
pub(crate) mod outcome;
mod prepare;
mod schema;
mod set;
pub(crate) mod wrapped;

pub use ask::{AskError, Consent, Elicited, Root};
pub use body::{Body, BodyFuture, RunTool};
pub(crate) use context::{Asks, Inline, Mode, ProgressSink, Round, Session};
pub use context::{BlockingContext, CallInfo, RunContext};
pub use declare::{Annotations, Tool};
pub use outcome::{Content, IntoToolResult, Structured, ToolError, ToolResult};
pub(crate) use prepare::Prepared;
pub use prepare::{PrepareContext, PrepareError};
pub use schema::BadSchema;
pub use set::{AddToolError, ToolSet};
pub use tokkuri_core::admission::TaskMode;
pub use tokkuri_core::run::Stop;
pub use tokkuri_core::wire::Json;
