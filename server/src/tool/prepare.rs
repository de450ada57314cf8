//! What a tool may do before its task exists: look at the arguments, refuse, and ask on the request itself.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokkuri_core::id::Key;
use tokkuri_core::wire::Json;

use crate::tool::ask::{self, AskError, Consent, Elicited};
use crate::tool::context::{Inline, Wait};
use crate::tool::{CallInfo, ToolError, ToolResult};

/// What a tool's `prepare` has. What it asks, the client answers by sending the call again, so `prepare` runs again from its
/// start: it should do nothing that may not be done twice.
///
/// Answers are kept for the body: [`PrepareContext::elicit`] gives them here, and the keys are not the body's to use.
#[derive(Clone, Debug)]
pub struct PrepareContext {
    pub(crate) inline: Arc<Inline>,
    pub(crate) info: Arc<CallInfo>,
    pub(crate) prepared: Prepared,
    /// What the request declared.
    pub(crate) capabilities: tokkuri_core::payload::Capabilities,
}

/// What `prepare` leaves to the body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared(Arc<std::sync::Mutex<Option<Json>>>);

impl Prepared {
    pub(crate) fn take(&self) -> Option<Json> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// Why a call is not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrepareError {
    /// The tool refuses the call: its reply, and no task.
    Refused(ToolError),
    /// There is nothing left to do: the reply, and no task.
    Answered(ToolResult),
    /// A question cannot be asked, or is not answered yet.
    Ask(AskError),
}

impl From<AskError> for PrepareError {
    fn from(error: AskError) -> Self {
        Self::Ask(error)
    }
}

impl From<ToolError> for PrepareError {
    fn from(error: ToolError) -> Self {
        Self::Refused(error)
    }
}

impl PrepareContext {
    /// Who called, and how.
    pub fn info(&self) -> &CallInfo {
        &self.info
    }

    /// Asks the user to fill in a form with the fields of `T`, on the request itself.
    ///
    /// # Errors
    /// [`AskError`]: the client cannot be asked this, or earlier eras cannot be asked at all. Pass it on with `?`.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<Key>,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let schema = ask::form_schema::<T>()?;
        ask::read_form(&self.inline.ask(key.into(), ask::form(message, &schema), Wait::Async).await?)
    }

    /// Asks the user to open a URL, on the request itself.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub async fn elicit_url(&self, key: impl Into<Key>, message: &str, url: &str) -> Result<Consent, AskError> {
        ask::read_consent(&self.inline.ask(key.into(), ask::url(message, url), Wait::Async).await?)
    }

    /// Asks a question in the form of the wire and gives the answer as it came.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub async fn ask_raw(&self, key: impl Into<Key>, request: Json) -> Result<Json, AskError> {
        self.inline.ask(key.into(), request, Wait::Async).await
    }

    /// Replaces the arguments that the body gets: the way to hand on what was answered. They are what the task stores, so
    /// they have to be of the body's argument type.
    ///
    /// # Errors
    /// If they have no form in JSON.
    pub fn set_arguments(&self, arguments: &impl serde::Serialize) -> Result<(), ToolError> {
        let arguments =
            Json::of(arguments).map_err(|error| ToolError::internal(format!("the arguments are not JSON: {error}")))?;
        *self.prepared.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(arguments);
        Ok(())
    }
}
