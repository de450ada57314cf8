//! A load balancer: requests go to the nodes in turn, sessions of the earlier era stay with the node that opened them. A request
//! that a node has taken goes to no other one, whatever becomes of it: it may have been carried out.
//!
//! The probe tools of the test bed are about one process. Through a balancer they are about all of them: gates and holds are
//! set on every node, counters are added up.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use axum::http::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::background::Background;
use super::reply;

const SESSION: &str = "mcp-session-id";
/// Probe tools that change something in the process, or tell what only its own streams hear.
const EVERYWHERE: [&str; 5] = ["open", "hold", "release", "test_trigger_tool_change", "test_trigger_prompt_change"];
/// Probe tools that read counts of the process.
const SUMMED: [&str; 3] = ["counter", "runs", "held"];

/// The nodes that are up, by position; `None` for one that is down.
pub type Nodes = Arc<Mutex<Vec<Option<SocketAddr>>>>;

/// A balancer; dropping it closes its connections.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    _background: Background,
}

impl Balancer {
    /// Balances over these nodes, which may change.
    ///
    /// # Panics
    /// If there is no port to be had.
    pub fn start(nodes: Nodes) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let background = Background::start("balancer");
        let listener = background.listener(listener);
        let client = Client::builder(TokioExecutor::new()).build_http();
        let turns = Turns { nodes, next: AtomicUsize::new(0), sessions: Mutex::default(), client };
        let app = axum::Router::new().fallback(forward).with_state(Arc::new(turns));
        background.spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { address, _background: background }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Debug)]
struct Turns {
    nodes: Nodes,
    next: AtomicUsize,
    sessions: Mutex<HashMap<HeaderValue, SocketAddr>>,
    client: Client<HttpConnector, Body>,
}

impl Turns {
    /// All that are up, beginning with the one whose turn it is.
    fn in_turn(&self) -> Vec<SocketAddr> {
        let nodes = lock(&self.nodes);
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        (0..nodes.len()).filter_map(|n| nodes[(first + n) % nodes.len()]).collect()
    }

    async fn send(&self, request: &Whole, to: SocketAddr) -> Result<Response<Body>, Error> {
        let mut forwarded = request.to(to);
        forwarded.headers_mut().remove(CONNECTION);
        let mut response = self.client.request(forwarded).await?.map(Body::new);
        for hop in [CONNECTION, TRANSFER_ENCODING] {
            response.headers_mut().remove(hop);
        }
        if let Some(session) = response.headers().get(SESSION) {
            lock(&self.sessions).insert(session.clone(), to);
        }
        Ok(response)
    }

    /// The first node that takes it.
    async fn send_in_turn(&self, request: &Whole) -> Option<Response<Body>> {
        for node in self.in_turn() {
            match self.send(request, node).await {
                Err(error) if error.is_connect() => {}
                taken => return taken.ok(),
            }
        }
        None
    }

    /// Every node; what they answer is one answer.
    async fn send_everywhere(&self, request: &Whole, sum: bool) -> Option<Response<Body>> {
        let mut bodies = Vec::new();
        let mut last = None;
        for node in self.in_turn() {
            let (head, body) = self.send(request, node).await.ok()?.into_parts();
            bodies.push(axum::body::to_bytes(body, usize::MAX).await.ok()?);
            last = Some(head);
        }
        let mut head = last?;
        let body = bodies.last()?.clone();
        let body = if sum { summed(&bodies).unwrap_or(body) } else { body };
        head.headers.remove(CONTENT_LENGTH);
        Some(Response::from_parts(head, Body::from(body)))
    }
}

async fn forward(State(turns): State<Arc<Turns>>, request: Request<Body>) -> Response<Body> {
    let Ok(request) = Whole::read(request).await else {
        return refuse(StatusCode::BAD_REQUEST, "the body broke off");
    };
    let session = request.head.headers.get(SESSION).and_then(|session| lock(&turns.sessions).get(session).copied());
    let probe = request.probe();
    let is = |names: &[&str]| probe.as_deref().is_some_and(|probe| names.contains(&probe));
    let response = match session {
        Some(node) => turns.send(&request, node).await.ok(),
        None if is(&EVERYWHERE) => turns.send_everywhere(&request, false).await,
        None if is(&SUMMED) => turns.send_everywhere(&request, true).await,
        None => turns.send_in_turn(&request).await,
    };
    response.unwrap_or_else(|| refuse(StatusCode::SERVICE_UNAVAILABLE, "No node answers. Try again."))
}

fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(why.to_owned()));
    *response.status_mut() = status;
    response
}

/// A request with all of its body, so that it can be sent more than once.
struct Whole {
    head: axum::http::request::Parts,
    body: Bytes,
}

impl Whole {
    async fn read(request: Request<Body>) -> Result<Self, axum::Error> {
        let (head, body) = request.into_parts();
        Ok(Self { head, body: axum::body::to_bytes(body, usize::MAX).await? })
    }

    fn to(&self, node: SocketAddr) -> Request<Body> {
        let mut request = Request::new(Body::from(self.body.clone()));
        let path = self.head.uri.path_and_query().map_or("/", |it| it.as_str());
        *request.uri_mut() = format!("http://{node}{path}").parse::<Uri>().unwrap_or_default();
        *request.method_mut() = self.head.method.clone();
        *request.headers_mut() = self.head.headers.clone();
        request
    }

    /// The tool that it calls.
    fn probe(&self) -> Option<String> {
        let message: Value = serde_json::from_slice(&self.body).ok()?;
        (message["method"] == "tools/call").then(|| message["params"]["name"].as_str().map(str::to_owned))?
    }
}

/// The counts of all answers, in the shape of one.
fn summed(bodies: &[Bytes]) -> Option<Bytes> {
    let mut sum: serde_json::Map<String, Value> = serde_json::Map::new();
    let (mut answer, mut frame) = (Value::Null, ("", ""));
    for body in bodies {
        // JSON, or the one event that carries it.
        let body = std::str::from_utf8(body).ok()?;
        let (before, data) = body.split_once("data: {").map_or(("", body), |(before, _)| {
            let start = before.len() + "data: ".len();
            (&body[..start], &body[start..])
        });
        let (data, after) = data.split_at(data.find('\n').unwrap_or(data.len()));
        frame = (before, after);
        answer = reply::parse(data)?;
        let counts: Value = serde_json::from_str(answer["result"]["content"][0]["text"].as_str()?).ok()?;
        for (name, count) in counts.as_object()? {
            let before = sum.get(name).and_then(Value::as_u64).unwrap_or(0);
            sum.insert(name.clone(), json!(before + count.as_u64()?));
        }
    }
    answer["result"]["content"][0]["text"] = Value::String(Value::Object(sum).to_string());
    Some(Bytes::from(format!("{}{answer}{}", frame.0, frame.1)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up() {
        let answer = |n: u64| {
            let text = json!({"runs": n, "lost": 1}).to_string();
            Bytes::from(json!({"id": 1, "result": {"content": [{"type": "text", "text": text}]}}).to_string())
        };
        let sum: Value = serde_json::from_slice(&summed(&[answer(2), answer(3)]).unwrap()).unwrap();
        let counts: Value = serde_json::from_str(sum["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(counts, json!({"runs": 5, "lost": 2}));
        assert!(summed(&[Bytes::from_static(b"{\"error\":{}}")]).is_none());
        let event = |n| [b"event: message\ndata: ".as_slice(), &answer(n), b"\n\n"].concat().into();
        let sum = summed(&[event(1), event(1)]).unwrap();
        let data = sum.strip_prefix(b"event: message\ndata: ").and_then(|rest| rest.strip_suffix(b"\n\n")).unwrap();
        let sum: Value = serde_json::from_slice(data).unwrap();
        assert!(sum["result"]["content"][0]["text"].as_str().unwrap().contains("2"));
    }
}
