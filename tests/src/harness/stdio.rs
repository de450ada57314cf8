//! A client that starts its server itself and speaks to it over standard input and output, in either era.
//!
//! One message a line, each way. Everything on the server's standard output has to be such a message, and is judged by the
//! schemas; its log goes to standard error, and is printed if the test fails.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::thread;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::client::in_envelope;
use super::earlier::EARLIER;
use super::schema::{self, Era};
use super::server::Log;
use super::{Bed, DEADLINE, LOOK_AGAIN, is_terminal};

/// A client with a server of its own. Dropping it kills the server.
#[derive(Debug)]
pub struct Stdio {
    server: Child,
    to_server: Option<ChildStdin>,
    from_server: Lines<BufReader<ChildStdout>>,
    log: Log,
    era: Era,
    capabilities: Value,
    last_id: i64,
    /// What came for listens while something else was waited for.
    heard: VecDeque<Value>,
    /// Its directory is there for as long as the server is.
    _bed: Bed,
}

impl Stdio {
    /// Starts a server for a client of the modern era that declares `capabilities`.
    pub fn modern(bed: &Bed, capabilities: Value) -> Self {
        Self::start(bed, Era::Modern, capabilities)
    }

    /// Starts a server and initializes as a client of 2025-11-25 that declares `capabilities`.
    pub async fn earlier(bed: &Bed, capabilities: Value) -> Self {
        let mut client = Self::start(bed, Era::Earlier, capabilities.clone());
        let params = json!({"protocolVersion": EARLIER, "capabilities": capabilities,
            "clientInfo": {"name": "tokkuri-tests", "version": "0"}});
        let reply = client.request("initialize", params).await;
        assert_eq!(reply["result"]["protocolVersion"], EARLIER, "{reply}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    fn start(bed: &Bed, era: Era, capabilities: Value) -> Self {
        let (stderr, theirs) = std::io::pipe().expect("a pipe");
        let mut command = Command::from(bed.command(&["--stdio"]));
        command.stdin(std::process::Stdio::piped()).stderr(theirs).kill_on_drop(true);
        let mut server = command.spawn().expect("start the server");
        // The command holds an end of the pipe.
        drop(command);
        let log = Log::default();
        log.follow(stderr);
        let from_server = BufReader::new(server.stdout.take().expect("stdout is piped")).lines();
        let to_server = server.stdin.take();
        Self {
            server,
            to_server,
            from_server,
            log,
            era,
            capabilities,
            last_id: 0,
            heard: VecDeque::new(),
            _bed: bed.clone(),
        }
    }

    /// Sends a request and waits for its response, which it judges.
    ///
    /// # Panics
    /// If no response comes within the deadline, it breaks the schemas, or the server asks something.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.exchange(method, params, |asked| panic!("the server asked: {asked}")).await
    }

    /// `tools/call` of a tool that asks: each request of the server's gets what `answer` says. Returns the response and what
    /// was asked, in order.
    ///
    /// # Panics
    /// As [`Stdio::request`].
    pub async fn call_answering(
        &mut self,
        name: &str,
        arguments: Value,
        mut answer: impl FnMut(&Value) -> Value,
    ) -> (Value, Vec<Value>) {
        let mut asked = Vec::new();
        let params = json!({"name": name, "arguments": arguments});
        let heard = |request: &Value| {
            asked.push(request.clone());
            answer(request)
        };
        let response = self.exchange("tools/call", params, heard).await;
        (response, asked)
    }

    async fn exchange(&mut self, method: &str, params: Value, mut answer: impl FnMut(&Value) -> Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let params = match self.era {
            Era::Modern => in_envelope(params, &self.capabilities),
            Era::Earlier => params,
        };
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let response = loop {
            let message = self.read().await.unwrap_or_else(|| panic!("the server left before it answered {method}"));
            match message.get("method") {
                // An error of what had no id that could be read.
                None if message.get("id").is_none_or(Value::is_null) => {
                    assert!(message.get("error").is_some(), "a response to nothing: {message}");
                }
                None if message["id"] == id => break message,
                None => self.heard.push_back(message),
                Some(_) => {
                    self.hear(&message, &mut answer).await;
                    if subscription(&message).is_some() {
                        self.heard.push_back(message);
                    }
                }
            }
        };
        // What the status would be over HTTP.
        let status = match response["error"]["code"].as_i64() {
            Some(-32601) => 404,
            Some(-32022..=-32020) => 400,
            Some(_) | None => 200,
        };
        let faults = schema::response_faults(self.era, method, Some(&id), status, &response);
        assert!(faults.is_empty(), "{method} answered what breaks the rules:\n{}\n{response}", faults.join("\n"));
        response
    }

    /// `tools/call`
    pub async fn call_tool(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Polls a task until `done` says so, and returns that reply.
    ///
    /// # Panics
    /// If the deadline passes; with the last state.
    pub async fn wait_task(&mut self, id: &str, done: impl Fn(&Value) -> bool) -> Value {
        let start = std::time::Instant::now();
        loop {
            let reply = self.request("tasks/get", json!({"taskId": id})).await;
            if done(&reply["result"]) {
                return reply;
            }
            let status = reply["result"]["status"].as_str().unwrap_or_default();
            assert!(!is_terminal(status) && start.elapsed() < DEADLINE, "the last state: {reply}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Sends a `subscriptions/listen` under this id, and reads nothing.
    pub async fn listen(&mut self, id: &Value, notifications: Value) {
        let params = in_envelope(json!({"notifications": notifications}), &self.capabilities);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})).await;
    }

    /// Cancels a listen.
    pub async fn cancelled(&mut self, id: &Value) {
        let params = in_envelope(json!({"requestId": id}), &self.capabilities);
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    }

    /// Takes what has come for a listen while something else was waited for.
    pub fn heard(&mut self, id: &Value) -> Vec<Value> {
        let (of_it, others): (VecDeque<_>, VecDeque<_>) = self.heard.drain(..).partition(|message| is_of(message, id));
        self.heard = others;
        Vec::from(of_it)
    }

    /// The next message of a listen, judged as a stream's; a response to it is one as well.
    ///
    /// # Panics
    /// If none comes within the deadline, or it breaks the rules.
    pub async fn stream_message(&mut self, id: &Value) -> Value {
        let message = self.answer(id).await;
        let faults = schema::stream_faults(id, &message);
        assert!(faults.is_empty(), "a stream carried what breaks the rules:\n{}\n{message}", faults.join("\n"));
        message
    }

    /// The next message of a listen, whatever it is.
    ///
    /// # Panics
    /// If none comes within the deadline.
    pub async fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.heard.iter().position(|message| is_of(message, id)) {
            return self.heard.remove(at).expect("it is there");
        }
        loop {
            let message = self.read().await.expect("the server is there");
            if is_of(&message, id) {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    /// The acknowledgement of a listen: what was granted.
    ///
    /// # Panics
    /// If it is not what comes next.
    pub async fn acknowledged(&mut self, id: &Value) -> Value {
        let message = self.stream_message(id).await;
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
        message["params"]["notifications"].clone()
    }

    /// Closes the server's standard input, which ends it; gives the process's status and what it still wrote.
    ///
    /// # Panics
    /// If it does not end within the deadline.
    pub async fn close(mut self) -> (ExitStatus, Vec<Value>) {
        drop(self.to_server.take());
        let mut rest = Vec::new();
        while let Some(message) = self.read().await {
            rest.push(message);
        }
        let status = timeout(DEADLINE, self.server.wait()).await.expect("the server ends").expect("its status");
        (status, rest)
    }

    /// What the server has logged until now.
    pub fn log(&self) -> String {
        self.log.text().clone()
    }

    /// Sends a signal, by pid.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn signal(&self, signal: i32) {
        let pid = self.server.id().and_then(|pid| libc::pid_t::try_from(pid).ok()).expect("the server runs");
        // SAFETY: a bare system call on a child that has not been waited for, so the pid is still its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill {pid}");
    }

    /// Writes one message.
    ///
    /// # Panics
    /// If the server does not listen any more.
    pub async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    /// Writes one line, whatever it is.
    ///
    /// # Panics
    /// If the server does not listen any more.
    pub async fn write_line(&mut self, line: &str) {
        let to_server = self.to_server.as_mut().expect("open until it is closed");
        to_server.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }

    /// The next message; `None` at the end.
    async fn read(&mut self) -> Option<Value> {
        let line = timeout(DEADLINE, self.from_server.next_line()).await.expect("a line within the deadline");
        let line = line.expect("text")?;
        let message = super::reply::parse(&line);
        Some(message.unwrap_or_else(|| panic!("what is not JSON has no place on stdout: {line:?}")))
    }

    async fn hear(&mut self, message: &Value, answer: &mut impl FnMut(&Value) -> Value) {
        let faults = schema::notification_faults(self.era, message);
        assert!(faults.is_empty(), "the server said what breaks the rules:\n{}\n{message}", faults.join("\n"));
        if let Some(id) = message.get("id") {
            self.write(&json!({"jsonrpc": "2.0", "id": id, "result": answer(message)})).await;
        }
    }
}

/// The listen that a notification is of.
fn subscription(message: &Value) -> Option<&Value> {
    message["params"]["_meta"].get(super::listen::SUBSCRIPTION_ID)
}

/// Whether a message is of this listen: a notification, or its response.
fn is_of(message: &Value, id: &Value) -> bool {
    subscription(message) == Some(id) || message.get("method").is_none() && message.get("id") == Some(id)
}

impl Drop for Stdio {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of the server\n{}--- end of the log", self.log.text());
        }
    }
}
