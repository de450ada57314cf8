//! `subscriptions/listen` for one task: its states as the server tells them, instead of asking again and again.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::{Events, notification};
use super::{ANSWER_TIMEOUT, Client, ClientError, Task, envelope, shapes};

const METHOD: &str = "subscriptions/listen";

/// A stream that says nothing for so long, not even that it is alive, is taken to be dead.
const SILENCE: Duration = Duration::from_secs(60);

/// An open stream of one task's states. Dropping it tells the server that nobody follows any more.
#[derive(Debug)]
pub struct Following {
    response: reqwest::Response,
    events: Events,
    task: String,
}

impl Client {
    /// Follows a task: its current state comes first, then every change, the latest one if several came at once.
    ///
    /// # Errors
    /// Any [`ClientError`]; a server that does not offer it refuses it, and one that does not know the task does not grant
    /// it ([`ClientError::Unexpected`]). `tasks/get` tells more in either case.
    pub async fn follow(&self, id: &str) -> Result<Following, ClientError> {
        let params = Map::from_iter([
            ("_meta".to_owned(), envelope::meta(None, true)),
            ("notifications".to_owned(), json!({ "taskIds": [id] })),
        ]);
        let headers = envelope::headers(METHOD, None)?;
        let opening = async {
            let response = self.stream(self.id(), METHOD, params, headers).await?;
            let mut following = Following { response, events: Events::default(), task: id.to_owned() };
            match following.notification().await? {
                Some((method, params)) if method == "notifications/subscriptions/acknowledged" => {
                    let granted = params["notifications"]["taskIds"].as_array();
                    match granted.is_some_and(|ids| ids.iter().any(|granted| granted == id)) {
                        true => Ok(following),
                        false => Err(unexpected("the task was not granted")),
                    }
                }
                Some((method, _)) => Err(unexpected(format!("{method} came before the acknowledgement"))),
                None => Err(unexpected("the stream ended before the acknowledgement")),
            }
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(broken_off(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))),
        }
    }
}

impl Following {
    /// The next state of the task; `None` once the server has ended the stream. Nothing is lost if the future is dropped
    /// before its end.
    ///
    /// # Errors
    /// [`ClientError::BrokenOff`], [`ClientError::Unexpected`].
    pub async fn next(&mut self) -> Result<Option<Task>, ClientError> {
        loop {
            match self.notification().await? {
                None => return Ok(None),
                Some((method, params)) if method == "notifications/tasks" && params["taskId"] == *self.task => {
                    return shapes::read(METHOD, params).map(Some);
                }
                Some(_) => {}
            }
        }
    }

    /// The next notification; `None` at the end.
    async fn notification(&mut self) -> Result<Option<(String, Value)>, ClientError> {
        loop {
            if let Some(data) = self.events.next() {
                // What is no notification is the final result.
                return Ok(notification(&data));
            }
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| broken_off(format!("silent for {} s", SILENCE.as_secs())))?;
            match chunk.map_err(|error| broken_off(error.to_string()))? {
                Some(chunk) => self.events.push(&chunk),
                None => return Ok(None),
            }
            if self.events.pending() > super::exchange::LARGEST_ANSWER {
                return Err(unexpected("an event is larger than 1 GiB"));
            }
        }
    }
}

fn unexpected(what: impl Into<String>) -> ClientError {
    ClientError::Unexpected { method: METHOD, what: what.into() }
}

fn broken_off(reason: String) -> ClientError {
    ClientError::BrokenOff { method: METHOD, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{Answer, Scripted};

    macro_rules! events {
        ($($json:literal),*) => { concat!(": hello\n\n", $("event: message\ndata: ", $json, "\n\n"),*) };
    }

    async fn following(body: &'static str) -> Result<Following, ClientError> {
        let stream = vec![("content-type", "text/event-stream")];
        let server = Scripted::start(move |_| Answer::Raw(200, stream.clone(), body)).await;
        Client::new(&server.url, None).unwrap().follow("T1").await
    }

    #[tokio::test]
    async fn states_of_the_task_come_until_the_stream_ends() {
        let mut following = following(events!(
            r#"{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["T1"]}}}"#,
            r#"{"method":"notifications/tools/list_changed","params":{}}"#,
            r#"{"method":"notifications/tasks","params":{"taskId":"T2","status":"working"}}"#,
            r#"{"method":"notifications/tasks","params":{"taskId":"T1","status":"completed","createdAt":"","lastUpdatedAt":"","result":{"content":[{"type":"text","text":"\ud800"}]}}}"#,
            r#"{"id":1,"result":{}}"#
        ))
        .await
        .unwrap();
        let task = following.next().await.unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.status.as_str()), ("T1", "completed"));
        assert!(following.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_is_not_granted_is_an_error_that_says_so() {
        for (body, needle) in [
            (
                events!(r#"{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#),
                "not granted",
            ),
            (events!(r#"{"method":"notifications/tasks","params":{}}"#), "before the acknowledgement"),
            (events!(r#"{"id":1,"result":{}}"#), "ended before the acknowledgement"),
        ] {
            let line = following(body).await.unwrap_err().to_string();
            assert!(line.contains(needle), "{line}");
        }
        let refusing = |_: &_| Answer::Error(404, json!({ "code": -32601, "message": "no such method" }));
        let server = Scripted::start(refusing).await;
        let line = Client::new(&server.url, None).unwrap().follow("T1").await.unwrap_err().to_string();
        assert!(line.contains("refused subscriptions/listen: no such method"), "{line}");
        let sent = &server.of("subscriptions/listen")[0];
        assert_eq!(sent.params()["notifications"], json!({ "taskIds": ["T1"] }));
        assert_eq!(sent.header("mcp-method"), Some("subscriptions/listen"));
    }
}
