//! One request and its answer: a POST, then one JSON object or an event stream.

use std::time::Duration;

use http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use super::{
    Client, ClientError, Progress,
    answer::{Events, Message},
};

/// The largest answer that is read, in bytes: more than any server's `max_result_bytes`, less than memory.
pub(super) const LARGEST_ANSWER: usize = 1 << 30;

impl Client {
    /// Sends a request and waits for its result, within `limit` if there is one.
    pub(super) async fn exchange(
        &self,
        id: u64,
        method: &'static str,
        params: Map<String, Value>,
        headers: HeaderMap,
        limit: Option<Duration>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Value, ClientError> {
        let whole = self.post(id, method, params, headers, progress);
        match limit {
            None => whole.await,
            Some(limit) => match tokio::time::timeout(limit, whole).await {
                Ok(result) => result,
                Err(_) => Err(self.unreachable(format!("no answer within {} s", limit.as_secs()))),
            },
        }
    }

    async fn post(
        &self,
        id: u64,
        method: &'static str,
        params: Map<String, Value>,
        headers: HeaderMap,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Value, ClientError> {
        let (response, kind) = self.send(id, method, params, headers).await?;
        let reader = Reader { client: self, id, method, status: response.status().as_u16() };
        match kind.split(';').next().map(str::trim) {
            Some("text/event-stream") => reader.events(response, progress).await,
            Some("application/json") => reader.json(response).await,
            _ => Err(reader.not_mcp()),
        }
    }

    /// Sends a request whose answer has to be a stream, and hands that out.
    pub(super) async fn stream(
        &self,
        id: u64,
        method: &'static str,
        params: Map<String, Value>,
        headers: HeaderMap,
    ) -> Result<reqwest::Response, ClientError> {
        let (response, kind) = self.send(id, method, params, headers).await?;
        let reader = Reader { client: self, id, method, status: response.status().as_u16() };
        match kind.split(';').next().map(str::trim) {
            Some("text/event-stream") => Ok(response),
            Some("application/json") => match reader.json(response).await {
                Ok(_) => Err(reader.unexpected("it is no event stream".to_owned())),
                Err(error) => Err(error),
            },
            _ => Err(reader.not_mcp()),
        }
    }

    /// Sends a request: the answer, its body unread, and its kind in lower case.
    async fn send(
        &self,
        id: u64,
        method: &'static str,
        params: Map<String, Value>,
        headers: HeaderMap,
    ) -> Result<(reqwest::Response, String), ClientError> {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut request = self.http.post(self.url.clone()).headers(headers).body(body.to_string());
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.clone());
        }
        let response = request.send().await.map_err(|error| self.unreachable(innermost(&error)))?;
        let status = response.status().as_u16();
        if status == 401 || status == 403 {
            return Err(self.not_allowed(status, response.headers()));
        }
        let kind = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        Ok((response, kind))
    }

    fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Unreachable { url: self.url.to_string(), reason }
    }

    fn not_allowed(&self, status: u16, headers: &HeaderMap) -> ClientError {
        let challenge = headers
            .get(header::WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("no details")
            .to_owned();
        let url = self.url.to_string();
        match status {
            401 => ClientError::Unauthorized { url, challenge },
            _ => ClientError::Forbidden { url, challenge },
        }
    }
}

/// Reads the answer to one request.
struct Reader<'a> {
    client: &'a Client,
    id: u64,
    method: &'static str,
    status: u16,
}

impl Reader<'_> {
    async fn json(&self, mut response: reqwest::Response) -> Result<Value, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(self.unexpected("it is larger than 1 GiB".to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        match Message::read(&body, self.id) {
            Some(Message::Result(result)) => Ok(result),
            Some(Message::Error(error)) => Err(self.refused(error)),
            Some(Message::Progress(_) | Message::Other) => {
                Err(self.unexpected("it answers another request".to_owned()))
            }
            None => Err(self.not_mcp()),
        }
    }

    async fn events(
        &self,
        mut response: reqwest::Response,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Value, ClientError> {
        let mut events = Events::default();
        while let Some(chunk) = self.chunk(&mut response).await? {
            events.push(&chunk);
            while let Some(data) = events.next() {
                match Message::read(&data, self.id) {
                    Some(Message::Result(result)) => return Ok(result),
                    Some(Message::Error(error)) => return Err(self.refused(error)),
                    Some(Message::Progress(step)) => progress(step),
                    Some(Message::Other) => {}
                    None => return Err(self.unexpected("an event is no message".to_owned())),
                }
            }
            if events.pending() > LARGEST_ANSWER {
                return Err(self.unexpected("an event is larger than 1 GiB".to_owned()));
            }
        }
        Err(ClientError::BrokenOff { method: self.method, reason: "the stream ended without a result".to_owned() })
    }

    async fn chunk(&self, response: &mut reqwest::Response) -> Result<Option<bytes::Bytes>, ClientError> {
        response
            .chunk()
            .await
            .map_err(|error| ClientError::BrokenOff { method: self.method, reason: innermost(&error) })
    }

    fn refused(&self, error: super::RpcError) -> ClientError {
        ClientError::Refused { method: self.method, status: self.status, error }
    }

    fn unexpected(&self, what: String) -> ClientError {
        ClientError::Unexpected { method: self.method, what }
    }

    fn not_mcp(&self) -> ClientError {
        ClientError::NotMcp { url: self.client.url.to_string(), status: self.status }
    }
}

/// The cause at the bottom, which is the one that says something ("Connection refused").
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
