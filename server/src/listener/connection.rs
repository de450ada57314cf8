//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::pulse::{Busy, Pulse, Watched};
use super::{ConnectionLimits, Tls};

/// How long a connection that was asked to end may still take.
const LEAVING: Duration = Duration::from_secs(5);

/// Serves one connection until it ends, is over its time, or `stop` fires and its requests are answered.
pub(super) async fn serve(
    stream: TcpStream,
    http: &auto::Builder<TokioExecutor>,
    router: Router,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let Some(tls) = tls else { return requests(stream, http, router, limits, stop).await };
    match tokio::time::timeout(limits.header_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => requests(stream, http, router, limits, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http: &auto::Builder<TokioExecutor>,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let pulse = Arc::new(Pulse::new());
    let stream = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
    let mut connection = std::pin::pin!(http.serve_connection(stream, Answers { router, pulse: Arc::clone(&pulse) }));
    tokio::select! {
        ended = connection.as_mut() => return log(ended),
        () = pulse.used_up(&limits) => {
            // Whatever is under way is not read by the client, and what is idle has nothing to lose.
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(limits.header_timeout.min(LEAVING), connection).await;
            return;
        }
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    // Requests that are under way are answered, but a client that does not read them is not waited for.
    tokio::select! {
        ended = connection.as_mut() => log(ended),
        () = pulse.used_up(&limits) => {}
    }
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Answers the requests of one connection.
#[derive(Debug)]
struct Answers {
    router: Router,
    pulse: Arc<Pulse>,
}

impl Service<Request<Incoming>> for Answers {
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Held>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let shared = request.version() == Version::HTTP_2;
        let busy = self.pulse.begin(shared);
        // A router is always ready.
        let answer = tower_service::Service::call(&mut self.router.clone(), request);
        Box::pin(async move { Ok(answer.await?.map(|body| Held { body, rest: Bytes::new(), shared, busy })) })
    }
}

/// A body whose connection is busy for as long as it is not sent.
#[derive(Debug)]
struct Held {
    body: Body,
    /// What is left of a piece that is too large to be handed over at once.
    rest: Bytes,
    /// Whether other answers share the connection (HTTP/2).
    shared: bool,
    busy: Busy,
}

/// How much of an answer is handed over at a time on a shared connection. What was handed over is kept there until the client makes room for
/// it, and nobody looks whether it does; the rest waits here, where it is seen.
const PIECE: usize = 16 << 10;

impl Held {
    fn next_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.shared {
            return Pin::new(&mut self.body).poll_frame(cx);
        }
        self.busy.is_asked();
        let piece = self.next_piece(cx);
        if matches!(piece, Poll::Ready(Some(Ok(_)))) && !self.is_end_stream() {
            self.busy.has_handed_over();
        }
        piece
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
