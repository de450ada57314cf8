//! The body of a tool behind one object-safe trait, whatever it was written as.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokkuri_core::wire::Json;

use crate::tool::{BlockingContext, IntoToolResult, PrepareContext, PrepareError, RunContext, ToolError, ToolResult};

/// The future of a run.
pub type BodyFuture = Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send>>;

/// What a tool does. Most tools are made by [`Tool::new`](crate::tool::Tool::new) and never see this trait.
pub trait Body: std::fmt::Debug + Send + Sync + 'static {
    /// Runs it. The arguments fit the tool's input schema.
    fn run(&self, arguments: Json, cx: RunContext) -> BodyFuture;
}

/// A tool as a type: for those who want state and a name for it.
pub trait RunTool: Send + Sync + 'static {
    /// Its arguments; their schema is the tool's input schema.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// What it returns.
    type Output: IntoToolResult + 'static;

    /// Runs it.
    fn run(
        &self,
        arguments: Self::Arguments,
        cx: RunContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// A tool's `prepare` behind one object-safe trait.
pub(crate) trait Prepare: std::fmt::Debug + Send + Sync + 'static {
    fn prepare(
        &self,
        arguments: Json,
        cx: PrepareContext,
    ) -> Pin<Box<dyn Future<Output = Result<(), PrepareError>> + Send>>;
}

fn read<A: DeserializeOwned>(arguments: &Json) -> Result<A, ToolError> {
    // The schema was checked; what is left is what a schema cannot say.
    arguments.read().map_err(|error| ToolError::failed(format!("the arguments do not fit: {error}")))
}

macro_rules! opaque {
    ($name:ident) => {
        impl<A, F> std::fmt::Debug for $name<A, F> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl<A, F> $name<A, F> {
            pub(crate) const fn new(body: F) -> Self {
                Self { body, arguments: PhantomData }
            }
        }
    };
}

pub(crate) struct Async<A, F> {
    body: F,
    arguments: PhantomData<fn(A)>,
}
opaque!(Async);

impl<A, F, Fut, R> Body for Async<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, RunContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoToolResult + 'static,
{
    fn run(&self, arguments: Json, cx: RunContext) -> BodyFuture {
        match read(&arguments) {
            Ok(arguments) => {
                let run = (self.body)(arguments, cx);
                Box::pin(async move { run.await?.into_tool_result() })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

pub(crate) struct Blocking<A, F> {
    body: std::sync::Arc<F>,
    arguments: PhantomData<fn(A)>,
}

impl<A, F> Blocking<A, F> {
    pub(crate) fn new(body: F) -> Self {
        Self { body: std::sync::Arc::new(body), arguments: PhantomData }
    }
}

impl<A, F> std::fmt::Debug for Blocking<A, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocking")
    }
}

impl<A, F, R> Body for Blocking<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, BlockingContext) -> Result<R, ToolError> + Send + Sync + 'static,
    R: IntoToolResult + 'static,
{
    fn run(&self, arguments: Json, cx: RunContext) -> BodyFuture {
        let body = std::sync::Arc::clone(&self.body);
        Box::pin(async move {
            let arguments = read(&arguments)?;
            let thread = cx.thread().await;
            let cx = BlockingContext::new(cx);
            let running = tokio::task::spawn_blocking(move || {
                // The thread is given back when the body has left it, not when nobody waits for the body any more.
                let _thread = thread;
                // Nobody may be waiting by now, since a thread that is called for may take a while to come.
                if cx.is_cancelled() {
                    return Err(ToolError::failed("the run was stopped before it began"));
                }
                body(arguments, cx)?.into_tool_result()
            });
            match running.await {
                Ok(outcome) => outcome,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(ToolError::failed("the server is shutting down")),
                },
            }
        })
    }
}

pub(crate) struct Typed<T> {
    tool: std::sync::Arc<T>,
}

impl<T> Typed<T> {
    pub(crate) fn new(tool: T) -> Self {
        Self { tool: std::sync::Arc::new(tool) }
    }
}

impl<T> std::fmt::Debug for Typed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }
}

impl<T: RunTool> Body for Typed<T> {
    fn run(&self, arguments: Json, cx: RunContext) -> BodyFuture {
        let tool = std::sync::Arc::clone(&self.tool);
        Box::pin(async move {
            let arguments = read(&arguments)?;
            tool.run(arguments, cx).await?.into_tool_result()
        })
    }
}

pub(crate) struct PrepareFn<A, F> {
    body: F,
    arguments: PhantomData<fn(A)>,
}
opaque!(PrepareFn);

impl<A, F, Fut> Prepare for PrepareFn<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, PrepareContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), PrepareError>> + Send + 'static,
{
    fn prepare(
        &self,
        arguments: Json,
        cx: PrepareContext,
    ) -> Pin<Box<dyn Future<Output = Result<(), PrepareError>> + Send>> {
        match arguments.read::<A>() {
            Ok(arguments) => Box::pin((self.body)(arguments, cx)),
            Err(error) => {
                let error = ToolError::failed(format!("the arguments do not fit: {error}"));
                Box::pin(std::future::ready(Err(PrepareError::Refused(error))))
            }
        }
    }
}
