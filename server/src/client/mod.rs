//! A small MCP client of the modern era (2026-07-28) over HTTP, as `call`, `task …` and `demo` use it.
//!
//! It speaks what those commands need and no more: discovery, tools, tasks. Every request carries its whole context
//! (there are no sessions), declares the tasks extension and both ways of elicitation, and is one POST whose answer
//! may be JSON or an event stream.
//!
//! ```no_run
//! # async fn example() -> Result<(), tokkuri_server::client::ClientError> {
//! use tokkuri_server::client::{Call, Client, Reply};
//!
//! let client = Client::new("http://127.0.0.1:8080/mcp", None)?;
//! let tool = client.tool("hash_files").await?;
//! let call = Call::new(tool, serde_json::Map::new());
//! match client.call(&call, &mut |_| {}).await? {
//!     Reply::Complete(result) => println!("{:?}", result.content),
//!     Reply::Task(task) => println!("poll {} until it is terminal", task.id),
//!     Reply::InputRequired { questions, .. } => println!("answer {questions:?} and call again"),
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod envelope;
mod error;
mod exchange;
mod follow;
mod shapes;

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Map, Value, json};

pub(crate) use answer::Events;
pub use error::{ClientError, RpcError};
pub use follow::Following;
pub use shapes::{Call, CallResult, Discovery, Progress, Question, Reply, Task, TaskStatus, Tool};

/// The protocol version that this client speaks.
pub const PROTOCOL_VERSION: &str = "2026-07-28";

/// The name of the tasks extension, as capabilities declare it.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may take for anything that does not run a tool.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Pages of `tools/list` read before the server is taken to be going in circles.
const MOST_PAGES: usize = 1000;

/// A connection to one MCP endpoint; cheap to keep, safe to share.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    url: reqwest::Url,
    token: Option<http::HeaderValue>,
    next_id: AtomicU64,
    tasks: bool,
}

impl Client {
    /// A client of the endpoint at `url` that shows `token` (if any) with every request. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::BadUrl`], [`ClientError::BadToken`].
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        let bad = |reason: String| ClientError::BadUrl { url: url.to_owned(), reason };
        let url = reqwest::Url::parse(url).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("this client speaks http and https, not {}", url.scheme())));
        }
        // The roots are the system's, or those that SSL_CERT_FILE and SSL_CERT_DIR name.
        crate::listener::use_ring();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A token goes to the endpoint that was named and nowhere else.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let token = token.map(envelope::bearer).transpose()?;
        Ok(Self {
            http: builder.build().map_err(|error| bad(error.to_string()))?,
            url,
            token,
            next_id: AtomicU64::new(1),
            tasks: true,
        })
    }

    /// The same, but without the tasks extension: the server answers every call within its request.
    #[must_use]
    pub fn without_tasks(self) -> Self {
        Self { tasks: false, ..self }
    }

    /// `server/discover`: who the server is and what it can.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn discover(&self) -> Result<Discovery, ClientError> {
        let result = self.short("server/discover", Map::new()).await?;
        shapes::read("server/discover", result)
    }

    /// `tools/list`, all pages.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn tools(&self) -> Result<Vec<Tool>, ClientError> {
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut params = Map::new();
            if let Some(cursor) = cursor.take() {
                params.insert("cursor".to_owned(), Value::from(cursor));
            }
            let result = self.short("tools/list", params).await?;
            let page: shapes::ToolPage = shapes::read("tools/list", result)?;
            tools.extend(page.tools);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(ClientError::Unexpected { method: "tools/list", what: format!("more than {MOST_PAGES} pages") })
    }

    /// The tool named `name`.
    ///
    /// # Errors
    /// [`ClientError::UnknownTool`] with the names there are; any other [`ClientError`].
    pub async fn tool(&self, name: &str) -> Result<Tool, ClientError> {
        let tools = self.tools().await?;
        match tools.iter().position(|tool| tool.name == name) {
            Some(at) => Ok(tools.into_iter().nth(at).expect("the position was just found")),
            None => Err(ClientError::UnknownTool {
                name: name.to_owned(),
                known: tools.into_iter().map(|tool| tool.name).collect(),
            }),
        }
    }

    /// `tools/call`. Dropping the future before its end tells the server that the request is cancelled.
    ///
    /// `progress` hears of the progress that a tool makes within its request; a task's is in its `status_message`.
    ///
    /// # Errors
    /// Any [`ClientError`]; a tool that failed is no error but a result with `is_error`.
    pub async fn call(&self, call: &Call, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Reply, ClientError> {
        let id = self.id();
        let mut params = call.params();
        params.insert("_meta".to_owned(), envelope::meta(Some(id), self.tasks));
        let mut headers = envelope::headers("tools/call", Some(&call.tool.name))?;
        envelope::mirror_arguments(&mut headers, &call.tool.input_schema, &call.arguments)?;
        let result = self.exchange(id, "tools/call", params, headers, None, progress).await?;
        Reply::read(result)
    }

    /// `tasks/get`.
    ///
    /// # Errors
    /// Any [`ClientError`]; a task that is unknown, expired or another's is refused with -32602.
    pub async fn task(&self, id: &str) -> Result<Task, ClientError> {
        let result = self.short("tasks/get", task_params(id)).await?;
        shapes::read("tasks/get", result)
    }

    /// `tasks/update`: answers some of the task's questions. Keys that are not outstanding are ignored by the server.
    ///
    /// # Errors
    /// Any [`ClientError`]; an answer that breaks its question's schema is refused with -32602.
    pub async fn answer(&self, id: &str, answers: Map<String, Value>) -> Result<(), ClientError> {
        let mut params = task_params(id);
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        self.short("tasks/update", params).await.map(drop)
    }

    /// `tasks/cancel`: returns when the server has acknowledged it.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn cancel(&self, id: &str) -> Result<(), ClientError> {
        self.short("tasks/cancel", task_params(id)).await.map(drop)
    }

    /// A request that runs no tool, and so has a time limit.
    async fn short(&self, method: &'static str, mut params: Map<String, Value>) -> Result<Value, ClientError> {
        let id = self.id();
        params.insert("_meta".to_owned(), envelope::meta(None, self.tasks));
        let task = params.get("taskId").and_then(Value::as_str);
        let headers = envelope::headers(method, task)?;
        self.exchange(id, method, params, headers, Some(ANSWER_TIMEOUT), &mut |_| {}).await
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

fn task_params(id: &str) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("taskId".to_owned(), json!(id));
    params
}

fn is_loopback(url: &reqwest::Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}
