//! A tool and everything that is said about it.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokkuri_core::Text;
use tokkuri_core::admission::TaskMode;

use crate::tool::body::{Async, Blocking, Body, Prepare, PrepareFn, RunTool, Typed};
use crate::tool::schema::{self, BadSchema, Validator};
use crate::tool::{BlockingContext, IntoToolResult, PrepareContext, PrepareError, RunContext, ToolError};

/// A tool: its name, its schemas, how it relates to tasks, and its body.
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tool {
    pub(crate) name: Text,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input_schema: Arc<Map<String, Value>>,
    pub(crate) output_schema: Option<Arc<Map<String, Value>>>,
    pub(crate) annotations: Option<Annotations>,
    pub(crate) scopes: Vec<Text>,
    pub(crate) mode: TaskMode,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) poll_interval_ms: Option<u64>,
    pub(crate) grace: Duration,
    pub(crate) restartable: bool,
    /// Whether it is a tool of the user's handler, which runs it in the request as well.
    pub(crate) wrapped: bool,
    pub(crate) body: Arc<dyn Body>,
    pub(crate) prepare: Option<Arc<dyn Prepare>>,
    pub(crate) input: Option<Arc<Validator>>,
    pub(crate) output: Option<Arc<Validator>>,
}

/// Hints about what a tool does (MCP 2026-07-28, `ToolAnnotations`). They are hints: nothing is enforced by them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It reaches beyond this system.
    pub open_world: Option<bool>,
}

impl Tool {
    /// A tool whose body is an async function of its arguments and a context. The input schema is that of `A`.
    pub fn new<A, F, Fut, R>(name: impl Into<Text>, body: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        Self::with_body(name, schema::of::<A>(), Async::new(body))
    }

    /// A tool whose body blocks: it runs on a thread of its own, and hears of a cancel only by asking
    /// ([`BlockingContext::is_cancelled`]). Nobody can end it from outside: a body that does not ask goes on when its task is over,
    /// and has its place among the node's runs and its thread until it returns.
    pub fn blocking<A, F, R>(name: impl Into<Text>, body: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, BlockingContext) -> Result<R, ToolError> + Send + Sync + 'static,
        R: IntoToolResult + 'static,
    {
        Self::with_body(name, schema::of::<A>(), Blocking::new(body))
    }

    /// A tool whose body is a type that implements [`RunTool`].
    pub fn from_type<T: RunTool>(name: impl Into<Text>, tool: T) -> Self {
        Self::with_body(name, schema::of::<T::Arguments>(), Typed::new(tool))
    }

    /// A tool with a schema and a body of one's own making: the arguments arrive as JSON text.
    pub fn with_body(name: impl Into<Text>, input_schema: Map<String, Value>, body: impl Body) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: String::new(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
            annotations: None,
            scopes: Vec::new(),
            mode: TaskMode::None,
            ttl_ms: None,
            poll_interval_ms: None,
            grace: Duration::ZERO,
            restartable: false,
            wrapped: false,
            body: Arc::new(body),
            prepare: None,
            input: None,
            output: None,
        }
    }

    /// The name that clients call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it relates to tasks.
    pub const fn mode(&self) -> TaskMode {
        self.mode
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it does, for models and people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Hints about what it does.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Whether calls become tasks. Default: [`TaskMode::None`].
    #[must_use]
    pub const fn task(mut self, mode: TaskMode) -> Self {
        self.mode = mode;
        self
    }

    /// The scopes that a caller needs. They are stored with each task.
    #[must_use]
    pub fn scopes<S: Into<Text>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Its structured content is a `T`. A result that is not fails the task with -32603.
    #[must_use]
    pub fn output<T: JsonSchema>(self) -> Self {
        let schema = schema::of::<T>();
        self.output_schema(schema)
    }

    /// Its structured content fits this JSON schema (2020-12).
    #[must_use]
    pub fn output_schema(mut self, schema: Map<String, Value>) -> Self {
        self.output_schema = Some(Arc::new(schema));
        self
    }

    /// How long its tasks are kept after their creation, instead of `tasks.ttl_ms`.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl_ms = Some(ttl.as_millis() as u64);
        self
    }

    /// How often clients are asked to poll its tasks, instead of `tasks.poll_interval_ms`.
    #[must_use]
    pub const fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval_ms = Some(interval.as_millis() as u64);
        self
    }

    /// How long a cancelled run may go on to clean up: its waits return [`Stop::Cancelled`](crate::tool::Stop::Cancelled) and
    /// it has that long until it is dropped. Without a grace it is dropped at its next await. A run whose task was taken over
    /// ([`Stop::Lost`](crate::tool::Stop::Lost), [`Stop::LeaseLost`](crate::tool::Stop::LeaseLost)) has it as well; what it
    /// returns is thrown away.
    #[must_use]
    pub const fn cancel_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// It may be run again from the start if its node is lost: a run that was interrupted anywhere did no harm. Answers that
    /// were recorded are given again.
    #[must_use]
    pub const fn restartable(mut self) -> Self {
        self.restartable = true;
        self
    }

    /// Runs before a task exists (and before an inline run), and may ask the client on the original request.
    #[must_use]
    pub fn prepare<A, F, Fut>(mut self, prepare: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, PrepareContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), PrepareError>> + Send + 'static,
    {
        self.prepare = Some(Arc::new(PrepareFn::new(prepare)));
        self
    }

    /// Compiles its schemas.
    pub(crate) fn compiled(mut self) -> Result<Self, BadSchema> {
        self.input = Some(Arc::new(Validator::new(&self.name, "input", &self.input_schema)?));
        if let Some(schema) = &self.output_schema {
            self.output = Some(Arc::new(Validator::new(&self.name, "output", schema)?));
        }
        Ok(self)
    }
}
