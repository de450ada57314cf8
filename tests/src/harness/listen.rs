//! Streams of `subscriptions/listen`: read event by event, each judged by the schemas and by what every message of a stream
//! owes.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Client, DEADLINE, Prepared, is_terminal, reply, schema};

/// `_meta`'s key for the id of the listen request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// An open stream. Dropping it closes its connection.
#[derive(Debug)]
pub struct Listening {
    response: reqwest::Response,
    unread: Vec<u8>,
    id: Value,
    headers: Vec<(String, String)>,
}

/// One thing that came on a stream.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message: its bytes and what they say.
    Message(String, Value),
    /// A comment: a sign of life.
    Comment,
    /// The stream has ended.
    End,
}

impl Client {
    /// Follows these tasks, and reads the acknowledgement, which has to name exactly them.
    ///
    /// # Panics
    /// If the server does otherwise.
    pub async fn follow(&self, ids: &[&str]) -> Listening {
        let mut stream = self.listening(json!({"taskIds": ids})).listen().await;
        assert_eq!(stream.acknowledged().await, json!({"taskIds": ids}));
        stream
    }

    /// `subscriptions/listen`, prepared.
    pub fn listening(&self, notifications: Value) -> Prepared {
        self.prepare("subscriptions/listen", json!({"notifications": notifications}))
    }
}

impl Prepared {
    /// Sends it and expects a stream.
    ///
    /// # Panics
    /// If the answer is anything else.
    pub async fn listen(self) -> Listening {
        let response = self.respond().await.unwrap_or_else(|e| panic!("listen: {e:?}"));
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let kind = header("content-type").to_owned();
        if response.status() != 200 || !kind.starts_with("text/event-stream") {
            panic!("no stream: HTTP {} {}", response.status(), response.text().await.unwrap_or_default());
        }
        assert_eq!(header("x-accel-buffering"), "no");
        Listening::of(response, self.body["id"].clone())
    }
}

impl Prepared {
    /// As [`Prepared::listen`], but a connection that fails is an error, and another answer is its body.
    ///
    /// # Errors
    /// If there is no connection.
    pub async fn try_listen(self) -> Result<Result<Listening, String>, reqwest::Error> {
        let response = self.respond().await?;
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
        if response.status() != 200 || !kind.starts_with("text/event-stream") {
            let status = response.status();
            return Ok(Err(format!("HTTP {status} {}", response.text().await?)));
        }
        Ok(Ok(Listening::of(response, self.body["id"].clone())))
    }

    /// Sends it and looks only at the kind of the answer: whether it is a stream.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn is_stream(self) -> bool {
        let response = self.respond().await.unwrap_or_else(|e| panic!("listen: {e:?}"));
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
        kind.starts_with("text/event-stream")
    }
}

impl Listening {
    fn of(response: reqwest::Response, id: Value) -> Self {
        let headers = response.headers().iter().filter(|(name, _)| *name != "date");
        let mut headers: Vec<_> =
            headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into())).collect();
        headers.sort();
        Self { response, unread: Vec::new(), id, headers }
    }

    /// The headers that it began with, but for the date: what two streams have to share that nobody may tell apart.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The next thing, judged.
    ///
    /// # Panics
    /// If nothing comes within the deadline, or it breaks the rules.
    pub async fn event(&mut self) -> Event {
        timeout(DEADLINE, self.next()).await.expect("an event within the deadline")
    }

    /// The next thing, judged, whenever it comes. Dropping this loses nothing.
    ///
    /// # Panics
    /// If it breaks the rules.
    pub async fn next(&mut self) -> Event {
        let Some(text) = self.text().await else { return Event::End };
        if text.lines().all(|line| line.starts_with(':')) {
            return Event::Comment;
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(':')).collect();
        let data = match lines[..] {
            ["event: message", data] => data.strip_prefix("data: "),
            // What rmcp serves alone is framed by rmcp.
            [data] => data.strip_prefix("data: "),
            _ => None,
        };
        let data = data.unwrap_or_else(|| panic!("no event of one line: {text}"));
        let message = reply::parse(data).unwrap_or_else(|| panic!("no JSON: {data}"));
        let faults = schema::stream_faults(&self.id, &message);
        assert!(faults.is_empty(), "a stream carried what breaks the rules:\n{}\n{data}", faults.join("\n"));
        Event::Message(data.to_owned(), message)
    }

    /// The next message, with its bytes.
    ///
    /// # Panics
    /// If the stream ends.
    pub async fn raw(&mut self) -> (String, Value) {
        loop {
            match self.event().await {
                Event::Message(text, message) => return (text, message),
                Event::Comment => {}
                Event::End => panic!("the stream has ended"),
            }
        }
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.raw().await.1
    }

    /// The acknowledgement: what was granted.
    ///
    /// # Panics
    /// If it is not what comes next.
    pub async fn acknowledged(&mut self) -> Value {
        let message = self.message().await;
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
        message["params"]["notifications"].clone()
    }

    /// The next state of a task.
    ///
    /// # Panics
    /// If something else comes.
    pub async fn task(&mut self) -> Value {
        let message = self.message().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        message["params"].clone()
    }

    /// The states of one task up to its terminal one.
    ///
    /// # Panics
    /// If something else comes, or `lastUpdatedAt` goes back.
    pub async fn to_the_end(&mut self) -> Vec<Value> {
        let mut states: Vec<Value> = Vec::new();
        loop {
            let state = self.task().await;
            if let Some(before) = states.last() {
                let time =
                    |state: &Value| state["lastUpdatedAt"].as_str().unwrap_or_default().parse::<jiff::Timestamp>();
                assert!(time(before).expect("a time") <= time(&state).expect("a time"), "{before} before {state}");
            }
            let over = is_terminal(state["status"].as_str().unwrap_or_default());
            states.push(state);
            if over {
                return states;
            }
        }
    }

    /// Waits for so many signs of life.
    ///
    /// # Panics
    /// If a message comes meanwhile, or the end.
    pub async fn silent_for(&mut self, comments: usize) {
        for _ in 0..comments {
            match self.event().await {
                Event::Comment => {}
                other => panic!("nothing should come but signs of life: {other:?}"),
            }
        }
    }

    /// Reads the final result and the end of the stream.
    ///
    /// # Panics
    /// If something else comes.
    pub async fn ended(&mut self) {
        let message = self.message().await;
        assert_eq!(message["result"]["resultType"], "complete", "{message}");
        assert!(matches!(self.event().await, Event::End), "nothing follows the result");
    }

    /// Waits for the end of a stream that is cut off without a result.
    ///
    /// # Panics
    /// If a message comes before it.
    pub async fn closed(&mut self) {
        loop {
            match self.event().await {
                Event::Comment => {}
                Event::End => return,
                Event::Message(text, _) => panic!("nothing should come but the end: {text}"),
            }
        }
    }

    /// The next event as text; `None` at the end.
    async fn text(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|window| window == b"\n\n") {
                let text = String::from_utf8_lossy(&self.unread[..end]).into_owned();
                self.unread.drain(..end + 2);
                return Some(text);
            }
            // A server that goes may reset the connection after the last event.
            let chunk = self.response.chunk().await.ok()??;
            self.unread.extend(chunk.iter().filter(|byte| **byte != b'\r'));
        }
    }
}
