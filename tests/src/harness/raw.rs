//! HTTP/1.1 by hand: for bytes that no client library would send, and for connections that are cut where the test says.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{DEADLINE, reply};

/// One TCP connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// One response, read by hand.
#[derive(Clone, Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Header names (lower case) and values.
    pub headers: Vec<(String, String)>,
    /// The body, its chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON-RPC response in the body (the last message, if it is an event stream); null if there is none.
    pub fn message(&self) -> Value {
        let text = self.text();
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).filter_map(reply::parse).next_back();
        last.or_else(|| reply::parse(&text)).unwrap_or_default()
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    /// If nobody listens.
    pub async fn open(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("connect"), unread: Vec::new() }
    }

    /// Connects, and takes little at a time: whoever does not read it soon holds the other side up.
    ///
    /// # Panics
    /// If nobody listens.
    pub async fn open_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4 << 10).expect("a small buffer");
        Self { stream: socket.connect(address).await.expect("connect"), unread: Vec::new() }
    }

    /// Writes these bytes.
    ///
    /// # Panics
    /// If the server has closed the connection.
    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("write");
    }

    /// Reads one whole response.
    ///
    /// # Panics
    /// If it does not come within the deadline, or is not HTTP.
    pub async fn read_response(&mut self) -> Response {
        timeout(DEADLINE, self.response()).await.expect("a response within the deadline")
    }

    /// Writes a request and reads its response.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Response {
        self.write(bytes).await;
        self.read_response().await
    }

    /// Reads the head of a chunked response, and asserts its status.
    ///
    /// # Panics
    /// If it does not come within the deadline, or has another status.
    pub async fn read_head(&mut self, status: u16) {
        let head = timeout(DEADLINE, self.until(b"\r\n\r\n")).await.expect("a head within the deadline");
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }

    /// Reads the next chunk; empty at the end of the body.
    ///
    /// # Panics
    /// If it does not come within the deadline.
    pub async fn read_chunk(&mut self) -> Vec<u8> {
        timeout(DEADLINE, self.chunk()).await.expect("a chunk within the deadline")
    }

    async fn chunk(&mut self) -> Vec<u8> {
        let size = String::from_utf8_lossy(&self.until(b"\r\n").await).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).expect("a chunk size");
        let chunk = self.exactly(size).await;
        self.exactly(2).await;
        chunk
    }

    async fn response(&mut self) -> Response {
        let head = String::from_utf8_lossy(&self.until(b"\r\n\r\n").await).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status line");
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = Response { status, headers, body: Vec::new() };
        if response.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                response.body.extend(chunk);
            }
        } else if let Some(length) = response.header("content-length") {
            let length = length.parse().expect("a length");
            response.body = self.exactly(length).await;
        }
        response
    }

    /// The bytes before `mark`, which is taken too.
    async fn until(&mut self, mark: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.unread.windows(mark.len()).position(|window| window == mark) {
                let taken = self.unread.drain(..at + mark.len()).take(at).collect();
                return taken;
            }
            self.more().await;
        }
    }

    async fn exactly(&mut self, n: usize) -> Vec<u8> {
        while self.unread.len() < n {
            self.more().await;
        }
        self.unread.drain(..n).collect()
    }

    async fn more(&mut self) {
        let read = self.stream.read_buf(&mut self.unread).await.expect("read");
        assert_ne!(read, 0, "the server closed the connection after {:?}", String::from_utf8_lossy(&self.unread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn responses_are_read_whole_whether_chunked_or_measured() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut connection = Connection::open(listener.local_addr().unwrap()).await;
        let (mut server, _) = listener.accept().await.unwrap();
        server
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\ndat\r\n6\r\na: [1]\r\n0\r\n\r\n")
            .await
            .unwrap();
        server.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        let first = connection.read_response().await;
        assert_eq!((first.status, first.text().as_str()), (200, "data: [1]"));
        assert_eq!(first.message(), serde_json::json!([1]));
        let second = connection.read_response().await;
        assert_eq!((second.status, second.message()), (404, serde_json::json!({})));
    }
}
