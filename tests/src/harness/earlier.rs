//! A client of the 2025-11-25 era: `initialize`, a session if the server mints one, plain requests.

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::{DEADLINE, Reply, Server, client, schema};

/// The newest revision before the modern era.
pub const EARLIER: &str = "2025-11-25";

/// A client that has initialized.
#[derive(Debug)]
pub struct EarlierClient {
    http: reqwest::Client,
    url: String,
    session: Option<String>,
    token: Option<String>,
    ids: AtomicI64,
    /// The result of `initialize`.
    pub initialized: Value,
}

impl EarlierClient {
    /// Initializes as a client that declares `capabilities`.
    ///
    /// # Panics
    /// If the server does not answer as the revision says.
    pub async fn connect(server: &Server, capabilities: Value) -> Self {
        Self::connect_as(server, capabilities, None).await
    }

    /// The same, showing an access token.
    ///
    /// # Panics
    /// If the server does not answer as the revision says.
    pub async fn connect_as(server: &Server, capabilities: Value, token: Option<String>) -> Self {
        Self::at(server.url(), capabilities, token).await
    }

    /// The same, of the first node alone: a session counts where it is kept.
    ///
    /// # Panics
    /// If the server does not answer as the revision says.
    pub async fn near(server: &Server, capabilities: Value, token: Option<String>) -> Self {
        Self::at(format!("http://{}/mcp", server.http()), capabilities, token).await
    }

    async fn at(url: String, capabilities: Value, token: Option<String>) -> Self {
        tokkuri_server::listener::use_ring();
        let http = reqwest::Client::builder().timeout(DEADLINE).no_proxy().build().expect("an HTTP client");
        let ids = AtomicI64::new(1);
        let mut client = Self { http, url, session: None, token, ids, initialized: Value::Null };
        let params = json!({"protocolVersion": EARLIER, "capabilities": capabilities,
            "clientInfo": {"name": "tokkuri-tests", "version": "0"}});
        let reply = client.request("initialize", params).await;
        client.initialized = reply.result().clone();
        client.session = reply.headers.get("mcp-session-id").map(|id| id.to_str().expect("visible ASCII").to_owned());
        let reply = client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""));
        client
    }

    /// Shows another access token from now on.
    pub fn show(&mut self, token: Option<String>) {
        self.token = token;
    }

    /// The session's name; its client may claim another one.
    pub fn session(&mut self) -> &mut Option<String> {
        &mut self.session
    }

    /// GET or DELETE on the session: the status and, unless it is a stream, the body.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub async fn on_session(&self, verb: reqwest::Method) -> (u16, String) {
        let request = self.http.request(verb, &self.url).header("accept", "text/event-stream");
        let response = self.with_headers(request).send().await.expect("an answer");
        let status = response.status().as_u16();
        let is_stream = response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let body = if is_stream { String::new() } else { response.text().await.expect("a body") };
        (status, body)
    }

    fn with_headers(&self, mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request = request.header("mcp-protocol-version", EARLIER);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    /// `tools/call`
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Reply {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// `tools/call` of a tool that asks: each request of the server's gets what `answer` says, on the session, while the call
    /// is open. Returns the reply and what was asked, in order.
    ///
    /// # Panics
    /// As [`EarlierClient::send`], and if the server does not take an answer.
    pub async fn call_answering(
        &self,
        name: &str,
        arguments: Value,
        mut answer: impl FnMut(&Value) -> Value,
    ) -> (Reply, Vec<Value>) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let mut asked = Vec::new();
        let reply = self
            .exchange(&call, async |message| {
                if let Some(id) = message.get("id") {
                    asked.push(message.clone());
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": answer(message)});
                    let accepted = self.post(&answer).await;
                    assert_eq!(accepted.status(), 202, "an answer to the server is accepted");
                }
            })
            .await;
        (reply, asked)
    }

    /// `tools/call` whose connection is closed as soon as the server has begun to answer.
    pub async fn call_and_hang_up(&self, name: &str, arguments: Value) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let params = json!({"name": name, "arguments": arguments});
        drop(self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await);
    }

    /// Ends the session (DELETE), and gives the status.
    ///
    /// # Panics
    /// If there is no session, or no answer.
    pub async fn end_session(&self) -> u16 {
        let session = self.session.as_deref().expect("the server minted a session");
        let request =
            self.http.delete(&self.url).header("mcp-protocol-version", EARLIER).header("mcp-session-id", session);
        request.send().await.expect("an answer").status().as_u16()
    }

    /// Sends a message as it is, and judges the answer.
    ///
    /// # Panics
    /// If the server cannot be reached, or its answer breaks the schemas.
    pub async fn send(&self, message: Value) -> Reply {
        self.exchange(&message, async |_| {}).await
    }

    async fn exchange(&self, message: &Value, hear: impl AsyncFnMut(&Value)) -> Reply {
        let response = self.post(message).await;
        let reply = client::read_hearing(response, &message["id"], hear).await.expect("a whole answer");
        let method = message["method"].as_str().unwrap_or_default();
        schema::judge(schema::Era::Earlier, method, message.get("id"), &reply);
        reply
    }

    /// Sends a message as it is, whatever comes back.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub async fn send_unjudged(&self, message: Value) -> Reply {
        let response = self.post(&message).await;
        client::read(response, &message["id"]).await.expect("a whole answer")
    }

    async fn post(&self, message: &Value) -> reqwest::Response {
        let mut request = self.http.post(&self.url).header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        request = match (message["method"] == "initialize", &self.token) {
            (false, _) => self.with_headers(request),
            (true, Some(token)) => request.bearer_auth(token),
            (true, None) => request,
        };
        request.body(message.to_string()).send().await.expect("an answer")
    }
}
