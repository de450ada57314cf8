//! HTTP/2 without TLS (prior knowledge): many requests on one connection, and answers that are read as the test wants.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{DEADLINE, Prepared, reply};

/// One connection. Dropping it closes it.
#[derive(Debug)]
pub struct Http2 {
    sender: SendRequest<Full<Bytes>>,
    connection: JoinHandle<Result<(), hyper::Error>>,
    authority: SocketAddr,
}

/// An answer whose body is read bit by bit, or not at all.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    body: Incoming,
    unread: Vec<u8>,
}

impl Http2 {
    /// Connects.
    ///
    /// # Panics
    /// If nobody listens, or it is no HTTP/2.
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("connect");
        let (sender, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("a handshake of HTTP/2");
        Self { sender, connection: tokio::spawn(connection), authority: address }
    }

    /// Sends a request; over once its answer's head is there.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn try_send(&self, request: &Prepared) -> Result<Answer, hyper::Error> {
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let response = sender.send_request(request.to_http2(self.authority)).await?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.into_body(), unread: Vec::new() })
    }

    /// The same, on a connection that has to be open.
    ///
    /// # Panics
    /// If it is not, or the answer does not come within the deadline.
    pub async fn send(&self, request: &Prepared) -> Answer {
        timeout(DEADLINE, self.try_send(request)).await.expect("an answer within the deadline").expect("an answer")
    }

    /// Waits until the server has closed the connection.
    ///
    /// # Panics
    /// If it does not within the deadline.
    pub async fn closed(mut self) {
        // Whether politely or not.
        let _ = timeout(DEADLINE, &mut self.connection).await.expect("the connection is closed");
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.connection.is_finished()
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Answer {
    /// The whole answer, which is one JSON message.
    ///
    /// # Panics
    /// If it is not, or does not come within the deadline.
    pub async fn message(self) -> Value {
        let body = timeout(DEADLINE, self.body.collect()).await.expect("the body within the deadline");
        let text = String::from_utf8(body.expect("the body").to_bytes().to_vec()).expect("UTF-8");
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).filter_map(reply::parse).next_back();
        last.or_else(|| reply::parse(&text)).unwrap_or_else(|| panic!("no message: {text}"))
    }

    /// The next message of a stream of events; `None` at its end.
    ///
    /// # Panics
    /// If none comes within the deadline.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8(line).expect("UTF-8");
                if let Some(message) = line.strip_prefix("data:").and_then(reply::parse) {
                    return Some(message);
                }
            }
            let frame = timeout(DEADLINE, self.body.frame()).await.expect("more of the stream within the deadline")?;
            self.unread.extend_from_slice(&frame.expect("the stream").into_data().unwrap_or_default());
        }
    }

    /// Reads the next frame of the body, and returns how many bytes it has; `None` at the end.
    ///
    /// # Panics
    /// If none comes within the deadline, or the stream breaks.
    pub async fn frame(&mut self) -> Option<usize> {
        let frame = timeout(DEADLINE, self.body.frame()).await.expect("more within the deadline")?;
        Some(frame.expect("the stream").into_data().map(|data| data.len()).unwrap_or_default())
    }
}
