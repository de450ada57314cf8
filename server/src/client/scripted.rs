//! A server for tests that answers by script over real loopback HTTP and keeps what it was sent.

use std::sync::{Arc, Mutex};

use axum::{
    body::Body,
    http::{HeaderMap, Response},
};
use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn params(&self) -> &Value {
        &self.body["params"]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What the script says.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A result, as JSON.
    Result(Value),
    /// A result at the end of an event stream, after these notifications.
    Stream(Vec<Value>, Value),
    /// A JSON-RPC error with its HTTP status.
    Error(u16, Value),
    /// Anything: status, headers, body.
    Raw(u16, Vec<(&'static str, &'static str)>, &'static str),
}

/// The running server; ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Scripted {
    /// Starts it; `script` answers every request.
    pub(crate) async fn start(mut script: impl FnMut(&Seen) -> Answer + Send + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Mutex::new(move |request: &Seen| script(request)));
        let kept = Arc::clone(&seen);
        let handle = move |headers: HeaderMap, body: String| {
            let body = serde_json::from_str(&body).unwrap();
            let request = Seen { headers, body };
            let answer = (script.lock().unwrap())(&request);
            let id = request.body["id"].clone();
            kept.lock().unwrap().push(request);
            std::future::ready(respond(answer, &id))
        };
        let router = axum::Router::new().route("/mcp", axum::routing::post(handle));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Every request of one method so far.
    pub(crate) fn of(&self, method: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|request| request.method() == method);
        seen
    }
}

fn respond(answer: Answer, id: &Value) -> Response<Body> {
    let builder = Response::builder();
    let json = "application/json";
    match answer {
        Answer::Result(result) => builder
            .header("content-type", json)
            .body(Body::from(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())),
        Answer::Error(status, error) => builder
            .status(status)
            .header("content-type", json)
            .body(Body::from(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())),
        Answer::Stream(notifications, result) => {
            let mut text = String::from(": open\n\n");
            for message in notifications {
                text.push_str(&format!("event: message\ndata: {message}\n\n"));
            }
            let last = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            text.push_str(&format!("data: {last}\n\n"));
            builder.header("content-type", "text/event-stream; charset=utf-8").body(Body::from(text))
        }
        Answer::Raw(status, headers, body) => headers
            .into_iter()
            .fold(builder.status(status), |builder, (name, value)| builder.header(name, value))
            .body(Body::from(body)),
    }
    .unwrap()
}
