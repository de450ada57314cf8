//! Accepts connections and serves HTTP/1.1 and HTTP/2 on them, within limits that a public server can live with.
//!
//! What a stranger can hold without having shown anything is bounded here: how many connections, how large a head, and how long
//! a connection may keep silent, dribble or not read. What a request may do is the door's affair.

mod connection;
mod pulse;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use tls::{Tls, TlsError, use_ring};

/// What one listener and its connections may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How many connections there may be at once. A further one is told 503 and closed.
    pub max_connections: usize,
    /// How large the head of a request may be, in bytes; 8 KiB at least. Beyond it the answer is 431.
    pub max_header_bytes: usize,
    /// How many headers a request may have. Beyond it the answer is 431.
    pub max_headers: usize,
    /// How many requests may be under way at once on one HTTP/2 connection.
    pub max_concurrent_requests: u32,
    /// How long a client may take to send a head, from its first byte (or from the opening of the connection); also for the TLS
    /// handshake. On HTTP/2 after the first request it has the idle time: what comes need not be of a head.
    pub header_timeout: Duration,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Duration,
    /// How long a client may read nothing of what it is sent, before its connection is closed.
    pub write_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_header_bytes: 32 << 10,
            max_headers: 100,
            max_concurrent_requests: 100,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
        }
    }
}

/// How many connections over the limit are told so at once; the others are closed without a word.
const TURNED_AWAY: usize = 64;

/// What a connection over the limit is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 142\r\n\r\n{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"The server has as many connections as it takes (server.max_connections). Try again soon.\"}}";

/// Serves until `stop` fires, then lets requests that are under way end. Dropping the future ends every connection.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    accept(listener, router, protocol(&limits), limits, tls, stop).await;
}

/// The same for what speaks HTTP/2 alone, as gRPC does. No web page can make a browser do that unasked.
pub(crate) async fn serve_http2(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    accept(listener, router, protocol(&limits).http2_only(), limits, tls, stop).await;
}

async fn accept(
    listener: TcpListener,
    router: Router,
    http: auto::Builder<TokioExecutor>,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS)));
    let turning_away = Arc::new(Semaphore::new(TURNED_AWAY));
    let http = Arc::new(http);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) if is_the_clients(&error) => continue,
            // Out of file descriptors, most likely: connections that end give some back.
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted at the moment");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // A reply is written at once; waiting for more to send along only adds latency.
        let _ = stream.set_nodelay(true);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (http, router, tls, stop) = (Arc::clone(&http), router.clone(), tls.clone(), stop.clone());
            connections.spawn(async move {
                connection::serve(stream, &http, router, limits, tls, stop).await;
                drop(place);
            });
        } else if let (Ok(place), None) = (Arc::clone(&turning_away).try_acquire_owned(), &tls) {
            connections.spawn(async move {
                let _ = tokio::time::timeout(Duration::from_secs(2), turn_away(stream)).await;
                drop(place);
            });
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn protocol(limits: &ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        // Time is looked after by the connection itself, which tells a slow head from an idle connection.
        .header_read_timeout(None)
        .max_headers(limits.max_headers)
        .max_buf_size(limits.max_header_bytes.max(8 << 10));
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_concurrent_requests)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        // A peer that is gone is found out although it has requests open.
        .keep_alive_interval(limits.idle_timeout)
        .keep_alive_timeout(limits.header_timeout);
    http
}

/// Whether the connection failed before it was accepted, which says nothing about the next one.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Says that there is no room, and reads on for a moment: closing with unread bytes would reset the connection, and the client
/// might never see the answer.
async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(FULL).await?;
    stream.shutdown().await?;
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_answer_of_a_full_server_is_as_long_as_it_says() {
        let text = std::str::from_utf8(super::FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let message: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(message["error"]["code"], -32603);
    }
}
