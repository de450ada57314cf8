//! What the body of a tool may do while it runs, as a task or in the request.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokkuri_core::Text;
use tokkuri_core::id::{Key, TaskId};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::run::Stop;
use tokkuri_core::wire::Json;

use crate::engine::{Presence, TaskRun, Ticket, WAITING};
use crate::tool::ask::{self, AskError, Consent, Elicited, Root};

mod inline;

pub(crate) use inline::{Asks, Inline, ProgressSink, Round, Session};

/// Who called, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallInfo {
    /// The tool's name.
    pub tool: Text,
    /// Issuer and subject of the caller's token, or the host's scope.
    pub principal: Text,
    /// The OAuth client, empty without authorization.
    pub client: Text,
    /// The resource that the token was for, empty without authorization.
    pub resource: Text,
    /// The caller's scopes; empty without authorization.
    pub scopes: Vec<Text>,
    /// W3C `traceparent` of the call.
    pub traceparent: Option<Text>,
}

/// What a tool's body has while it runs. Cheap to clone.
///
/// Every wait on it ends with [`AskError::Stopped`] once the run has to stop. Without a grace
/// ([`Tool::cancel_grace`](crate::tool::Tool::cancel_grace)) the body does not even see that: its future is dropped.
#[derive(Clone, Debug)]
pub struct RunContext {
    pub(crate) mode: Mode,
    pub(crate) info: Arc<CallInfo>,
    /// What the request that started the run declared.
    pub(crate) capabilities: Capabilities,
    /// What the run takes up of its node, which it does for as long as there is a context of it; none in a test of a tool alone.
    pub(crate) presence: Option<Arc<Presence>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// As a task.
    Task(TaskRun),
    /// In the request.
    Inline(Arc<Inline>),
}

/// Whether a missing answer is waited for, or ends a blocking run for this round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Async,
    Blocking,
}

impl RunContext {
    /// Who called, and how.
    pub fn info(&self) -> &CallInfo {
        &self.info
    }

    /// The task that this run is of, if it is one.
    pub fn task_id(&self) -> Option<TaskId> {
        match &self.mode {
            Mode::Task(run) => Some(run.id()),
            Mode::Inline(_) => None,
        }
    }

    /// Says how far the run is: a task's `statusMessage`, `done/total message`, or a progress notification of the request.
    ///
    /// Cheap to call often: what comes faster than it can be told is conflated, and the last one always arrives.
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: impl AsRef<str>) {
        let (total, message) = (total.into(), message.as_ref());
        match &self.mode {
            Mode::Task(run) => run.progress(status_message(done, total, message)),
            Mode::Inline(inline) => inline.progress(done, total, message),
        }
    }

    /// Whether the run has to stop: the task was cancelled, expired or lost; outside a task, the client is gone.
    pub fn is_cancelled(&self) -> bool {
        match &self.mode {
            Mode::Task(run) => run.stop().is_some(),
            Mode::Inline(inline) => inline.cancelled.is_cancelled(),
        }
    }

    /// Waits until the run has to stop, and says why.
    pub async fn cancelled(&self) -> Stop {
        match &self.mode {
            Mode::Task(run) => run.stopped().await,
            Mode::Inline(inline) => {
                inline.cancelled.cancelled().await;
                Stop::Cancelled
            }
        }
    }

    /// Asks the user to fill in a form with the fields of `T`: a flat struct of strings, numbers, booleans and unit enums.
    ///
    /// A key that was asked before gives its first answer, whatever is asked now.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, the client cannot be asked this, or `T` is no flat form.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<Key>,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let schema = ask::form_schema::<T>()?;
        let answer = self.ask(key.into(), ask::form(message, &schema), Wait::Async).await?;
        ask::read_form(&answer)
    }

    /// Asks the user to fill in a form with this schema, and gives the content as JSON.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, or the client cannot be asked this.
    pub async fn elicit_form(
        &self,
        key: impl Into<Key>,
        message: &str,
        schema: &Map<String, Value>,
    ) -> Result<Elicited<Json>, AskError> {
        let answer = self.ask(key.into(), ask::form(message, schema), Wait::Async).await?;
        ask::read_form(&answer)
    }

    /// Asks the user to open a URL. Consent is not completion: what the user did there, the tool learns elsewhere.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, or the client cannot be asked this.
    pub async fn elicit_url(&self, key: impl Into<Key>, message: &str, url: &str) -> Result<Consent, AskError> {
        let answer = self.ask(key.into(), ask::url(message, url), Wait::Async).await?;
        ask::read_consent(&answer)
    }

    /// Asks the client's model (`sampling/createMessage`); `params` and the answer are the protocol's.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, or the client cannot be asked this.
    pub async fn sample(&self, key: impl Into<Key>, params: &impl Serialize) -> Result<Json, AskError> {
        let params = serde_json::to_value(params).map_err(|error| AskError::Unreadable(error.to_string()))?;
        self.ask(key.into(), ask::sample(&params), Wait::Async).await
    }

    /// Asks the client for its roots.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, or the client cannot be asked this.
    pub async fn roots(&self, key: impl Into<Key>) -> Result<Vec<Root>, AskError> {
        let answer = self.ask(key.into(), ask::roots(), Wait::Async).await?;
        ask::read_roots(&answer)
    }

    /// Asks a question in the form of the wire (`{"method":…,"params":…}`) and gives the answer as it came.
    ///
    /// # Errors
    /// [`AskError`]: the run has to stop, or the client cannot be asked this.
    pub async fn ask_raw(&self, key: impl Into<Key>, request: Json) -> Result<Json, AskError> {
        self.ask(key.into(), request, Wait::Async).await
    }

    /// A thread to block; waits until one is free, and says so.
    pub(crate) async fn thread(&self) -> Option<Ticket> {
        let mut thread = self.presence.as_ref()?.thread();
        if thread.waits() {
            let say = |message: &str| {
                if let Mode::Task(run) = &self.mode {
                    run.progress(message.into());
                }
            };
            say(WAITING);
            thread.turn().await;
            say("");
        }
        Some(thread)
    }

    async fn ask(&self, key: Key, request: Json, wait: Wait) -> Result<Json, AskError> {
        match &self.mode {
            Mode::Task(run) => run.ask(key, request).await,
            Mode::Inline(inline) => inline.ask(key, request, wait).await,
        }
    }
}

/// What a blocking body has: the same, but its waits block the thread that it runs on.
#[derive(Clone, Debug)]
pub struct BlockingContext {
    cx: RunContext,
    runtime: tokio::runtime::Handle,
}

impl BlockingContext {
    pub(crate) fn new(cx: RunContext) -> Self {
        Self { cx, runtime: tokio::runtime::Handle::current() }
    }

    /// Who called, and how.
    pub fn info(&self) -> &CallInfo {
        self.cx.info()
    }

    /// The task that this run is of, if it is one.
    pub fn task_id(&self) -> Option<TaskId> {
        self.cx.task_id()
    }

    /// See [`RunContext::progress`].
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: impl AsRef<str>) {
        self.cx.progress(done, total, message);
    }

    /// Whether the run has to stop. A blocking body only learns it by asking.
    pub fn is_cancelled(&self) -> bool {
        self.cx.is_cancelled()
    }

    /// See [`RunContext::elicit`].
    ///
    /// # Errors
    /// [`AskError`]; among them [`AskError::Suspended`] in a request of the modern era, where the tool is run again once the
    /// answer is there. Pass it on with `?`.
    pub fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<Key>,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let schema = ask::form_schema::<T>()?;
        ask::read_form(&self.ask_raw(key, ask::form(message, &schema))?)
    }

    /// See [`RunContext::elicit_url`].
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn elicit_url(&self, key: impl Into<Key>, message: &str, url: &str) -> Result<Consent, AskError> {
        ask::read_consent(&self.ask_raw(key, ask::url(message, url))?)
    }

    /// See [`RunContext::sample`].
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn sample(&self, key: impl Into<Key>, params: &impl Serialize) -> Result<Json, AskError> {
        let params = serde_json::to_value(params).map_err(|error| AskError::Unreadable(error.to_string()))?;
        self.ask_raw(key, ask::sample(&params))
    }

    /// See [`RunContext::roots`].
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn roots(&self, key: impl Into<Key>) -> Result<Vec<Root>, AskError> {
        ask::read_roots(&self.ask_raw(key, ask::roots())?)
    }

    /// See [`RunContext::ask_raw`].
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub fn ask_raw(&self, key: impl Into<Key>, request: Json) -> Result<Json, AskError> {
        self.runtime.block_on(self.cx.ask(key.into(), request, Wait::Blocking))
    }
}

fn status_message(done: u64, total: Option<u64>, message: &str) -> Text {
    use std::fmt::Write;
    let mut text = String::new();
    let written = match total {
        Some(total) => write!(text, "{done}/{total}"),
        None => write!(text, "{done}"),
    };
    written.expect("a String takes everything");
    if !message.is_empty() {
        text.push(' ');
        text.push_str(message);
    }
    text.into()
}
