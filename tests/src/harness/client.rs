//! A client of the modern era (2026-07-28) over real HTTP.
//!
//! [`Client::prepare`] builds a request with the envelope and headers that the revision asks for; a test that wants it
//! otherwise changes what it likes before [`Prepared::send`]. Every answer is judged by [`super::schema`] unless the request
//! says [`Prepared::unjudged`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::{DEADLINE, Reply, reply, schema};

/// The revision of the modern era.
pub const MODERN: &str = "2026-07-28";
/// The identifier of the tasks extension.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// Client capabilities to declare.
pub mod caps {
    use serde_json::{Value, json};

    /// Everything a client can declare: tasks, both kinds of elicitation, sampling, roots.
    pub fn all() -> Value {
        with_tasks(without_tasks())
    }

    /// Everything but the tasks extension.
    pub fn without_tasks() -> Value {
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
    }

    /// The tasks extension and nothing else.
    pub fn only_tasks() -> Value {
        with_tasks(json!({}))
    }

    /// These capabilities and the tasks extension.
    pub fn with_tasks(mut capabilities: Value) -> Value {
        capabilities["extensions"][super::TASKS] = json!({});
        capabilities
    }
}

/// A client: an endpoint, what it declares, and the ids that it has used. Clones share connections and ids.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    capabilities: Value,
    token: Option<String>,
    ids: Arc<AtomicI64>,
}

impl Client {
    /// A client of the endpoint `url` that declares [`caps::all`].
    ///
    /// # Panics
    /// If there is no HTTP client to be had.
    pub fn new(url: String) -> Self {
        tokkuri_server::listener::use_ring();
        let http = reqwest::Client::builder().timeout(DEADLINE).no_proxy().build().expect("an HTTP client");
        Self { http, url, capabilities: caps::all(), token: None, ids: Arc::new(AtomicI64::new(1)) }
    }

    /// The same client, of another endpoint of the same service.
    #[must_use]
    pub fn at(&self, url: String) -> Self {
        Self { url, ..self.clone() }
    }

    /// The same client on connections of its own, which waits no longer than this for an answer.
    ///
    /// # Panics
    /// If there is no HTTP client to be had.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(patience).no_proxy().build().expect("an HTTP client");
        Self { http, ..self.clone() }
    }

    /// The same client, declaring `capabilities` instead.
    #[must_use]
    pub fn declaring(&self, capabilities: Value) -> Self {
        Self { capabilities, ..self.clone() }
    }

    /// The same client, showing this access token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same client on connections of its own.
    #[must_use]
    pub fn on_a_new_connection(&self) -> Self {
        Self { http: Self::new(String::new()).http, ..self.clone() }
    }

    /// A request with everything in place: id, envelope, headers.
    ///
    /// # Panics
    /// If `params` is not an object.
    pub fn prepare(&self, method: &str, params: Value) -> Prepared {
        let params = in_envelope(params, &self.capabilities);
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        }
        .map(header_text);
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let prepared = Prepared {
            client: self.clone(),
            verb: Method::POST,
            headers: Vec::new(),
            body: json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
            bytes: None,
            judged: true,
        };
        let prepared = prepared
            .header(CONTENT_TYPE.as_str(), "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        let prepared = match &self.token {
            Some(token) => prepared.header("authorization", &format!("Bearer {token}")),
            None => prepared,
        };
        match name {
            Some(name) => prepared.header("mcp-name", &name),
            None => prepared,
        }
    }

    /// Sends a request.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        self.prepare(method, params).send().await
    }

    /// `tools/call`, prepared.
    pub fn tool(&self, name: &str, arguments: Value) -> Prepared {
        self.prepare("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// `tools/call`
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Reply {
        self.tool(name, arguments).send().await
    }

    /// Calls a tool that has to become a task, and returns the id.
    ///
    /// # Panics
    /// If it does not become one.
    pub async fn create(&self, name: &str, arguments: Value) -> String {
        self.call_tool(name, arguments).await.task_id()
    }

    /// `tasks/get`
    pub async fn task_get(&self, id: &str) -> Reply {
        self.request("tasks/get", json!({"taskId": id})).await
    }

    /// `tasks/update`
    pub async fn task_update(&self, id: &str, input_responses: Value) -> Reply {
        self.request("tasks/update", json!({"taskId": id, "inputResponses": input_responses})).await
    }

    /// `tasks/cancel`
    pub async fn task_cancel(&self, id: &str) -> Reply {
        self.request("tasks/cancel", json!({"taskId": id})).await
    }

    /// `server/discover`
    pub async fn discover(&self) -> Reply {
        self.request("server/discover", json!({})).await
    }

    /// `tools/list`
    pub async fn tools_list(&self) -> Reply {
        self.request("tools/list", json!({})).await
    }

    /// The names of the tools that the server lists, all pages.
    ///
    /// # Panics
    /// If a tool has no name.
    pub async fn tool_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.request("tools/list", params).await;
            for tool in page.result()["tools"].as_array().expect("a list of tools") {
                names.push(tool["name"].as_str().expect("a tool has a name").to_owned());
            }
            match page.result().get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return names,
            }
        }
    }
}

/// Parameters with the envelope of the modern era.
///
/// # Panics
/// If `params` is not an object.
pub(super) fn in_envelope(mut params: Value, capabilities: &Value) -> Value {
    let meta = params.as_object_mut().expect("params are an object").entry("_meta").or_insert(json!({}));
    meta[PROTOCOL_VERSION] = MODERN.into();
    meta[CLIENT_CAPABILITIES] = capabilities.clone();
    meta[CLIENT_INFO] = json!({"name": "tokkuri-tests", "version": "0"});
    params
}

/// An accepted form with this content.
pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// A header value as the revision encodes it: itself, or `=?base64?…?=` where it could not be carried as it is.
pub fn header_text(value: &str) -> String {
    let plain = value.bytes().all(|b| (b' '..=b'~').contains(&b))
        && value.trim() == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain { value.to_owned() } else { sentinel(value) }
}

/// `=?base64?…?=`
pub fn sentinel(value: &str) -> String {
    use base64::Engine as _;
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(value))
}

/// A request that has not been sent.
#[derive(Clone, Debug)]
pub struct Prepared {
    client: Client,
    verb: Method,
    headers: Vec<(String, String)>,
    /// The JSON-RPC message; ignored once [`Prepared::bytes`] was called.
    pub body: Value,
    bytes: Option<Vec<u8>>,
    judged: bool,
}

impl Prepared {
    /// Sets a header, in place of what it was.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self = self.without_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header beside what is there.
    #[must_use]
    pub fn second_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.body["id"] = id.into();
        self
    }

    /// Sets a parameter.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body["params"][name] = value.into();
        self
    }

    /// Sets a key of `_meta`.
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body["params"]["_meta"][name] = value.into();
        self
    }

    /// Sends these bytes in place of the message.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.bytes = Some(bytes.into());
        self
    }

    /// Uses another HTTP method.
    #[must_use]
    pub fn verb(mut self, verb: Method) -> Self {
        self.verb = verb;
        self
    }

    /// Leaves the answer unjudged: for requests whose answers the schemas do not cover.
    #[must_use]
    pub fn unjudged(mut self) -> Self {
        self.judged = false;
        self
    }

    /// The request as HTTP/1.1, for [`super::raw`].
    pub fn to_http(&self) -> Vec<u8> {
        let body = self.payload();
        let url = reqwest::Url::parse(&self.client.url).expect("the endpoint is a URL");
        let mut head = format!("{} {} HTTP/1.1\r\n", self.verb, url.path());
        head += &format!("host: {}:{}\r\n", url.host_str().unwrap_or_default(), url.port().unwrap_or(80));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    }

    /// The request as HTTP/2, for [`super::http2`].
    pub(super) fn to_http2(
        &self,
        authority: std::net::SocketAddr,
    ) -> hyper::Request<http_body_util::Full<bytes::Bytes>> {
        let url = reqwest::Url::parse(&self.client.url).expect("the endpoint is a URL");
        let mut request =
            hyper::Request::builder().method(self.verb.as_str()).uri(format!("http://{authority}{}", url.path()));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(http_body_util::Full::from(self.payload())).expect("a request")
    }

    /// Sends it and reads the answer, up to the final response where it is an event stream.
    ///
    /// # Panics
    /// If the server cannot be reached, does not answer within the deadline, or answers what breaks the schemas.
    pub async fn send(self) -> Reply {
        match self.try_send().await {
            Ok(reply) => reply,
            Err(e) => panic!("{} {}: {e:?}", self.body["method"], self.client.url),
        }
    }

    /// As [`Prepared::send`], but a connection that fails is an error.
    ///
    /// # Errors
    /// If there is no connection, or it ends before the answer does.
    ///
    /// # Panics
    /// If the answer breaks the schemas.
    pub async fn try_send(&self) -> Result<Reply, reqwest::Error> {
        let reply = read(self.respond().await?, &self.body["id"]).await?;
        if self.judged {
            let method = self.body["method"].as_str().unwrap_or_default();
            schema::judge(schema::Era::Modern, method, self.body.get("id"), &reply);
        }
        Ok(reply)
    }

    /// As [`Prepared::try_send`], but an answer with a status of 500 and above is not judged: whoever asks in the middle of
    /// faults does so by itself.
    ///
    /// # Errors
    /// If there is no connection, or it ends before the answer does.
    ///
    /// # Panics
    /// If another answer breaks the schemas.
    pub async fn try_send_amid_faults(&self) -> Result<Reply, reqwest::Error> {
        let reply = read(self.respond().await?, &self.body["id"]).await?;
        if self.judged && reply.status < 500 {
            let method = self.body["method"].as_str().unwrap_or_default();
            schema::judge(schema::Era::Modern, method, self.body.get("id"), &reply);
        }
        Ok(reply)
    }

    /// Sends it; the body of the answer is still to be read.
    pub(super) async fn respond(&self) -> Result<reqwest::Response, reqwest::Error> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().expect("a header name");
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        }
        let request = self.client.http.request(self.verb.clone(), &self.client.url).headers(headers);
        request.body(self.payload()).send().await
    }

    fn payload(&self) -> Vec<u8> {
        self.bytes.clone().unwrap_or_else(|| self.body.to_string().into_bytes())
    }
}

/// Reads a response: all of it, or up to the event that answers `id`.
pub(super) async fn read(response: reqwest::Response, id: &Value) -> Result<Reply, reqwest::Error> {
    read_hearing(response, id, async |_| {}).await
}

/// The same; `hear` is told of each message before the response as soon as it is there.
pub(super) async fn read_hearing(
    mut response: reqwest::Response,
    id: &Value,
    mut hear: impl AsyncFnMut(&Value),
) -> Result<Reply, reqwest::Error> {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let mut bytes = Vec::new();
    if !kind.starts_with("text/event-stream") {
        while let Some(chunk) = response.chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        let body = String::from_utf8_lossy(&bytes).into_owned();
        let message = reply::parse(&body).unwrap_or_default();
        return Ok(Reply { status, headers, response: body.clone(), body, message, notifications: Vec::new() });
    }
    let mut notifications = Vec::new();
    let mut read = 0;
    loop {
        while let Some(end) = find(&bytes[read..], b"\n\n") {
            let event = String::from_utf8_lossy(&bytes[read..read + end]).into_owned();
            read += end + 2;
            let data: Vec<&str> =
                event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
            let data = data.join("\n");
            let Some(message) = reply::parse(&data) else {
                continue;
            };
            if message.get("method").is_none() && message.get("id") == Some(id) {
                let body = String::from_utf8_lossy(&bytes).into_owned();
                return Ok(Reply { status, headers, body, response: data, message, notifications });
            }
            hear(&message).await;
            notifications.push(message);
        }
        match response.chunk().await? {
            // Line ends of an event stream may be CRLF.
            Some(chunk) => bytes.extend(chunk.iter().filter(|b| **b != b'\r')),
            None => break,
        }
    }
    let body = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Reply { status, headers, body, response: String::new(), message: Value::Null, notifications })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
