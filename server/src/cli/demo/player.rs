//! The client's moves: call, wait for a state, look at what came of it.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{LIMIT, failed, limited};
use crate::cli::Stop;
use crate::cli::show::Show;
use crate::client::{Call, CallResult, Client, Reply, Task, TaskStatus};

/// How often tasks are looked at. Short, since a newcomer watches; the server only suggests an interval.
const POLL: Duration = Duration::from_millis(50);

/// Someone who plays a client.
#[derive(Debug)]
pub(super) struct Player {
    client: Client,
}

impl Player {
    pub(super) const fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// The server is there, has tasks, and has the demo's tools.
    pub(super) async fn expect_tools(&self) -> anyhow::Result<()> {
        let found = limited("an answer to server/discover", self.client.discover()).await??;
        if !found.has_tasks() {
            return Err(failed("expected the server to offer tasks, and it does not").into());
        }
        Ok(())
    }

    /// Calls a tool; `show` hears of progress within the request.
    pub(super) async fn call(&self, tool: &str, arguments: Value, show: &mut Show) -> anyhow::Result<Reply> {
        let tool = limited("the list of tools", self.client.tool(tool)).await??;
        let Value::Object(arguments) = arguments else {
            return Err(failed("a call's arguments are an object").into());
        };
        let call = Call::new(tool, arguments);
        let mut progress = |step| show.progress(&step);
        Ok(limited("a reply to tools/call", self.client.call(&call, &mut progress)).await??)
    }

    /// Calls a tool and expects a task.
    pub(super) async fn task(&self, tool: &str, arguments: Value, show: &mut Show) -> anyhow::Result<Task> {
        match self.call(tool, arguments, show).await? {
            Reply::Task(task) if task.status == TaskStatus::Working => Ok(*task),
            other => Err(failed(format!("expected a task that is working, got {other:?}")).into()),
        }
    }

    /// Polls a task until `wanted` holds of it.
    pub(super) async fn until(
        &self,
        task: &Task,
        what: &str,
        show: &mut Show,
        wanted: impl Fn(&Task) -> bool,
    ) -> anyhow::Result<Task> {
        let began = Instant::now();
        loop {
            let seen = limited("an answer to tasks/get", self.client.task(&task.id)).await??;
            if let Some(message) = &seen.status_message {
                show.status(message);
            }
            let status = seen.status.as_str();
            if wanted(&seen) {
                return Ok(seen);
            }
            if seen.status.is_terminal() {
                return Err(failed(format!("expected {what}, but the task is {status}: {}", end(&seen))).into());
            }
            if began.elapsed() > LIMIT {
                let limit = LIMIT.as_secs();
                return Err(failed(format!("expected {what} within {limit} s; the task is {status}")).into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Polls a task until it is completed with a result that is no error, and gives its structured content.
    pub(super) async fn completed(&self, task: &Task, show: &mut Show) -> anyhow::Result<Value> {
        let ended = self.until(task, "a completed task", show, |task| task.status == TaskStatus::Completed).await?;
        show.clear();
        match ended.result {
            Some(result) => Ok(structured(result)?),
            None => Err(failed("expected a completed task to carry its result").into()),
        }
    }

    /// Accepts a form.
    pub(super) async fn accept(&self, task: &Task, key: &str, content: Value) -> anyhow::Result<()> {
        let mut answers = Map::new();
        answers.insert(key.to_owned(), serde_json::json!({ "action": "accept", "content": content }));
        Ok(limited("an answer to tasks/update", self.client.answer(&task.id, answers)).await??)
    }
}

/// The structured content of a result that is no error.
pub(super) fn structured(result: CallResult) -> Result<Value, Stop> {
    match (result.is_error, result.structured_content) {
        (false, Some(structured)) => Ok(structured),
        (is_error, _) => Err(failed(format!(
            "expected a result with structured content, got one with isError={is_error}: {:?}",
            result.content
        ))),
    }
}

/// A number of a result.
pub(super) fn number(result: &Value, member: &str) -> Result<u64, Stop> {
    let number = result.get(member).and_then(Value::as_u64);
    number.ok_or_else(|| failed(format!("expected a number {member:?} in {result}")))
}

fn end(task: &Task) -> String {
    match (&task.result, &task.error) {
        (Some(result), _) => format!("{:?}", result.content),
        (None, Some(error)) => error.message.clone(),
        (None, None) => "no more is known".to_owned(),
    }
}
