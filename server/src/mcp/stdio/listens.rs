//! The listens of a client over stdio that speak of tasks: which are open, and what goes to and fro between them and rmcp.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use rmcp::ServerHandler;
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokkuri_core::task::Fault;
use tokkuri_core::wire::Json;

use crate::client::Events;
use crate::engine::followers::NotFollowed;
use crate::mcp::envelope::{Message, Params, RawId};
use crate::mcp::handler::Handler;
use crate::mcp::ladder::Call;
use crate::mcp::listen::{self, Granted, Listening, Opening, Others, Stream};
use crate::mcp::{fault, tasks};

/// How many of rmcp's messages wait for one stream to pass them on.
const WAITING: usize = 16;

type Output = tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>;

/// The listens of one client.
pub(super) struct Listens<H> {
    handler: Handler<H>,
    listening: Arc<Listening>,
    streams: TaskTracker,
    client: Output,
    rmcp: Output,
    /// By the client's ids, each with what closes it.
    open: Mutex<HashMap<String, CancellationToken>>,
    /// Where rmcp's messages under our own ids go.
    routes: Mutex<HashMap<String, mpsc::Sender<Bytes>>>,
    /// Our own ids begin with this, which nobody can know.
    prefix: String,
    next: AtomicU64,
    gone: CancellationToken,
}

/// Where a message of rmcp's goes.
pub(super) enum Route {
    Client,
    Stream(mpsc::Sender<Bytes>),
    /// To a stream that has ended.
    Nowhere,
}

impl<H: ServerHandler> Listens<H> {
    pub(super) fn new(
        handler: Handler<H>,
        listening: Arc<Listening>,
        streams: TaskTracker,
        client: Box<dyn AsyncWrite + Send + Unpin>,
        rmcp: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            handler,
            listening,
            streams,
            client: client.into(),
            rmcp: rmcp.into(),
            open: Mutex::default(),
            routes: Mutex::default(),
            prefix: format!("tokkuri-{:016x}-", getrandom::u64().map_err(io::Error::other)?),
            next: AtomicU64::new(0),
            gone: CancellationToken::new(),
        }))
    }

    /// Takes a line of the client's, if it is a listen that speaks of tasks or closes one.
    pub(super) fn take(self: &Arc<Self>, line: &[u8]) -> bool {
        match Message::read(line) {
            Ok(Message::Request(..)) => self.begin(line),
            Ok(Message::Notification(body)) if body.method == "notifications/cancelled" => {
                body.params.is_some_and(|params| self.cancel(params))
            }
            Ok(Message::Notification(_) | Message::Response) | Err(_) => false,
        }
    }

    /// The client has gone: nobody listens any more.
    pub(super) async fn end(&self) {
        self.gone.cancel();
        // rmcp may have left first.
        let _ = self.rmcp.lock().await.shutdown().await;
    }

    /// Says something to rmcp.
    pub(super) async fn tell_rmcp(&self, line: &[u8]) -> io::Result<()> {
        self.rmcp.lock().await.write_all(line).await
    }

    /// Says something to the client: whole lines.
    pub(super) async fn tell_client(&self, line: &[u8]) {
        let mut client = self.client.lock().await;
        // A client that does not listen is about to close its other end as well.
        if client.write_all(line).await.is_ok() {
            let _ = client.flush().await;
        }
    }

    /// Where a message of rmcp's is to go.
    pub(super) fn route(&self, line: &[u8]) -> Route {
        if self.next.load(Ordering::Relaxed) == 0 {
            return Route::Client;
        }
        let Some(id) = serde_json::from_slice::<Addressed<'_>>(line).ok().and_then(Addressed::id) else {
            return Route::Client;
        };
        match lock(&self.routes).get(&*id) {
            Some(stream) => Route::Stream(stream.clone()),
            None if id.starts_with(&self.prefix) => Route::Nowhere,
            None => Route::Client,
        }
    }

    fn begin(self: &Arc<Self>, line: &[u8]) -> bool {
        if !self.handler.shared.calls.engine.settings().enabled {
            return false;
        }
        let Some(call) = of_tasks(line) else { return false };
        let closed = self.gone.child_token();
        let key = key(call.id);
        let taken = lock(&self.open).insert(key.clone(), closed.clone());
        let (listens, line) = (Arc::clone(self), line.to_vec());
        if let Some(other) = taken {
            lock(&self.open).insert(key, other);
            self.streams.spawn(async move {
                let fault = Fault {
                    code: fault::INVALID_REQUEST,
                    message: "A listen with this id is open.".into(),
                    data: None,
                };
                listens.refuse(&line, &fault).await;
            });
            return true;
        }
        self.streams.spawn(async move {
            listens.listen(&line, &closed).await;
            lock(&listens.open).remove(&key);
        });
        true
    }

    /// Closes the listen that a cancellation names.
    fn cancel(&self, params: &RawValue) -> bool {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
        }
        let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params.get()) else { return false };
        let Some(id) = RawId::of(cancelled.request_id) else { return false };
        match lock(&self.open).get(&key(id)) {
            Some(closed) => {
                closed.cancel();
                true
            }
            None => false,
        }
    }

    async fn listen(&self, line: &[u8], closed: &CancellationToken) {
        let Some(call) = of_tasks(line) else { return };
        let own = format!("{}{}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed));
        let opened = tokio::select! {
            opened = self.open(&call, &own) => Some(opened),
            () = closed.cancelled() => None,
        };
        match opened {
            Some(Ok(stream)) => self.write(stream, closed).await,
            Some(Err(fault)) => self.refuse(line, &fault).await,
            None => {}
        }
        let asked = lock(&self.routes).remove(&own).is_some();
        if asked {
            let cancelled = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":\"{own}\"}}}}\n"
            );
            // Where rmcp has left, nothing is left to cancel.
            let _ = self.tell_rmcp(cancelled.as_bytes()).await;
        }
    }

    async fn open(&self, call: &Call<'_>, own: &str) -> Result<Stream, Fault<Json>> {
        if !call.meta.declared.tasks {
            return Err(fault::needs_tasks());
        }
        let id = serde_json::value::to_raw_value(own).expect("a string has a form in JSON");
        let under_own_id = Call { id: RawId::of(&id).expect("a string may be an id"), ..call.clone() };
        let asked = listen::read(&under_own_id, true)?;
        let shared = &self.handler.shared;
        let caller = shared.owners.resolve(None, &shared.identity.name);
        let permit = self.listening.permit(&caller)?;
        let others = match asked.others {
            Some(request) => self.ask_rmcp(own, &request).await,
            None => None,
        };
        let tasks = asked.tasks.unwrap_or_default();
        let opening = Opening { caller, tasks, others, permit, until: None };
        self.listening.open(&shared.calls.engine, call.id, opening).await.map_err(|why| match why {
            NotFollowed::LacksScope { needed } => fault::lacks_scope(&needed),
            NotFollowed::Unavailable(unavailable) => fault::unavailable(&unavailable),
        })
    }

    /// Asks rmcp for the other filters: what it granted of them, and its messages.
    async fn ask_rmcp(&self, own: &str, request: &[u8]) -> Option<(Granted, Others)> {
        let (sender, mut receiver) = mpsc::channel(WAITING);
        lock(&self.routes).insert(own.to_owned(), sender);
        self.tell_rmcp(&[request, b"\n"].concat()).await.ok()?;
        let events = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        let events = futures_util::StreamExt::map(events, Ok::<Bytes, Infallible>);
        let mut response = Response::new(Body::from_stream(events));
        response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/event-stream"));
        Others::open(response).await
    }

    /// Writes what comes on a stream, a message a line, until it ends or is closed. It is asked for more only when the client has
    /// taken what there was.
    async fn write(&self, mut stream: Stream, closed: &CancellationToken) {
        let mut events = Events::default();
        loop {
            // Only here, not in the middle of a line.
            let frame = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                frame = stream.frame() => frame,
            };
            let Some(Ok(frame)) = frame else { return };
            let Ok(data) = frame.into_data() else { continue };
            events.push(&data);
            while let Some(mut message) = events.next() {
                message.push(b'\n');
                self.tell_client(&message).await;
            }
        }
    }

    async fn refuse(&self, line: &[u8], fault: &Fault<Json>) {
        let Some(call) = of_tasks(line) else { return };
        let Ok(body) = tasks::refuse(&call, fault).into_body().collect().await;
        self.tell_client(&[&*body.to_bytes(), b"\n"].concat()).await;
    }
}

/// Whom a message of rmcp's is for: the request that it answers, or the subscription that it belongs to.
#[derive(Deserialize)]
struct Addressed<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<About<'a>>,
}

#[derive(Deserialize)]
struct About<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId", borrow, default)]
    subscription: Option<&'a RawValue>,
}

impl<'a> Addressed<'a> {
    /// The id, if it is a string.
    fn id(self) -> Option<Cow<'a, str>> {
        let raw = self.id.or(self.params?.meta?.subscription)?;
        serde_json::from_str(raw.get()).ok()
    }
}

/// A listen of the modern era that speaks of tasks.
fn of_tasks(line: &[u8]) -> Option<Call<'_>> {
    let Ok(Message::Request(id, body)) = Message::read(line) else { return None };
    if body.method != "subscriptions/listen" {
        return None;
    }
    // What is wrong with the envelope is rmcp's to say, as it is of any other request.
    let meta = Params::read(body.params).ok()?.claim().ok()?.required().ok()?;
    let call = Call { id, method: body.method, name: None, params: body.params?, meta };
    (call.meta.version == ProtocolVersion::V_2026_07_28.as_str() && listen::names_tasks(&call)).then_some(call)
}

/// The same for every spelling of an id.
fn key(id: RawId<'_>) -> String {
    let text = id.as_str();
    match serde_json::from_str::<String>(text) {
        Ok(string) => format!("\"{string}"),
        Err(_) => text.to_owned(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
