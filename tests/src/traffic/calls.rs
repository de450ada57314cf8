//! One request of a client: sent to one node, recorded whatever comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::balancer::Nodes;
use crate::harness::client::accept;
use crate::harness::{Client, Listening, Prepared, Reply};
use crate::history::{Life, Micros, Recorder, State, What};

/// How long a follower follows.
const FOLLOWS: Duration = Duration::from_secs(120);

/// A principal that asks nodes and records the answers. Clones are the same principal.
#[derive(Clone, Debug)]
pub struct Caller {
    name: String,
    client: Client,
    nodes: Nodes,
    recorder: Recorder,
    /// Tasks that were answered not to be there.
    gone: Arc<Mutex<BTreeSet<String>>>,
}

impl Caller {
    /// One that shows what `client` shows.
    pub fn new(name: &str, client: Client, nodes: Nodes, recorder: Recorder) -> Self {
        Self { name: name.into(), client, nodes, recorder, gone: Arc::default() }
    }

    /// The same, not queueing behind others.
    #[must_use]
    pub fn on_connections_of_its_own(&self, patience: Duration) -> Self {
        Self { client: self.client.with_patience(patience), ..self.clone() }
    }

    /// Whose tasks these are.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The record.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether a read has said that there is no such task.
    pub fn is_gone(&self, task: &str) -> bool {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).contains(task)
    }

    /// Calls a tool that becomes a task; its id, if that was answered.
    pub async fn create(&self, node: usize, tool: &str, arguments: Value, life: &Life) -> Option<String> {
        let (node, client) = self.at(node)?;
        let sent = self.recorder.now();
        let reply = self.send(node, client.tool(tool, arguments)).await?;
        let result = &reply.message["result"];
        if result["resultType"] != "task" {
            match result.is_null() {
                true => self.not_expected(node, sent, "tools/call", &reply),
                // A tool that may run in the request did so.
                false => self.record(node, sent, What::AtTheLimit),
            }
            return None;
        }
        let task = result["taskId"].as_str()?.to_owned();
        let what = What::Created {
            task: task.clone(),
            life: life.clone(),
            created: millis(&result["createdAt"]),
            ttl_ms: result["ttlMs"].as_u64().unwrap_or(u64::MAX / 2_000),
        };
        self.record(node, sent, what);
        Some(task)
    }

    /// `tasks/get`; the state, if one was answered.
    pub async fn read(&self, node: usize, task: &str) -> Option<State> {
        let (node, client) = self.at(node)?;
        let sent = self.recorder.now();
        let reply = self.send(node, client.prepare("tasks/get", json!({"taskId": task}))).await?;
        if reply.message["error"]["code"] == -32602 {
            self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(task.to_owned());
            self.record(node, sent, What::NotFound { task: task.into() });
            return None;
        }
        if reply.message.get("result").is_none() {
            self.not_expected(node, sent, "tasks/get", &reply);
            return None;
        }
        let state = state_of(&reply.message["result"], |member| reply.raw(&["result", member]).to_owned());
        self.record(node, sent, What::Read { task: task.into(), state: state.clone() });
        Some(state)
    }

    /// Answers a question with a name that nobody else gives.
    pub async fn answer(&self, node: usize, task: &str, key: &str, name: &str) -> bool {
        let Some((node, client)) = self.at(node) else { return false };
        let sent = self.recorder.now();
        let answers = json!({key: accept(json!({"name": name}))});
        let request = client.prepare("tasks/update", json!({"taskId": task, "inputResponses": answers}));
        let acknowledged = self.acknowledged(node, sent, "tasks/update", request).await;
        let (task, key, name) = (task.into(), key.into(), name.into());
        self.record(node, sent, What::Answered { task, key, name, acknowledged });
        acknowledged
    }

    /// `tasks/cancel`; whether it was acknowledged.
    pub async fn cancel(&self, node: usize, task: &str) -> bool {
        let Some((node, client)) = self.at(node) else { return false };
        let sent = self.recorder.now();
        let request = client.prepare("tasks/cancel", json!({"taskId": task}));
        let acknowledged = self.acknowledged(node, sent, "tasks/cancel", request).await;
        self.record(node, sent, What::Cancelled { task: task.into(), acknowledged });
        acknowledged
    }

    /// Opens a stream of the task's states, with the node that serves it.
    pub async fn follow(&self, node: usize, task: &str) -> Option<(usize, Listening)> {
        let (node, client) = self.at(node)?;
        let sent = self.recorder.now();
        let client = client.with_patience(FOLLOWS);
        match client.listening(json!({"taskIds": [task]})).try_listen().await {
            Ok(Ok(stream)) => Some((node, stream)),
            Ok(Err(answer)) if answer.contains("Try again") => {
                self.record(node, sent, What::Later { what: "subscriptions/listen".into() });
                None
            }
            Ok(Err(answer)) => {
                self.record(node, sent, What::Unexpected { what: "subscriptions/listen".into(), answer });
                None
            }
            Err(e) => {
                self.record(node, sent, What::Unheard { what: "subscriptions/listen".into(), why: format!("{e:?}") });
                None
            }
        }
    }

    /// Records something of this principal.
    pub fn record(&self, node: usize, sent: Micros, what: What) {
        self.recorder.record(&self.name, node, sent, what);
    }

    /// The node, or the next one that is up.
    fn at(&self, node: usize) -> Option<(usize, Client)> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let positions = (0..nodes.len()).map(|n| (node + n) % nodes.len());
        let (node, address) = positions.filter_map(|n| Some((n, nodes[n]?))).next()?;
        Some((node, self.client.at(format!("http://{address}/mcp"))))
    }

    async fn send(&self, node: usize, request: Prepared) -> Option<Reply> {
        let sent = self.recorder.now();
        match request.try_send_amid_faults().await {
            Ok(reply) => Some(reply),
            Err(e) => {
                let what = request.body["method"].as_str().unwrap_or_default().to_owned();
                self.record(node, sent, What::Unheard { what, why: format!("{e:?}") });
                None
            }
        }
    }

    async fn acknowledged(&self, node: usize, sent: Micros, what: &str, request: Prepared) -> bool {
        let Some(reply) = self.send(node, request).await else { return false };
        if reply.message.get("result").is_some() {
            return true;
        }
        // A task may expire meanwhile.
        if reply.message["error"]["code"] != -32602 {
            self.not_expected(node, sent, what, &reply);
        }
        false
    }

    /// Sorts an answer that is not the one that was asked for.
    fn not_expected(&self, node: usize, sent: Micros, what: &str, reply: &Reply) {
        let what = what.to_owned();
        let what = if reply.message["error"]["code"] == -32600 && reply.body.contains("max_per_principal") {
            What::AtTheLimit
        } else if reply.body.contains("Try again") {
            What::Later { what }
        } else {
            What::Unexpected { what, answer: format!("HTTP {} {}", reply.status, reply.body) }
        };
        self.record(node, sent, what);
    }
}

/// The state in a task as the wire has it; `raw` gives the bytes of a member.
pub fn state_of(task: &Value, raw: impl Fn(&str) -> String) -> State {
    let has = |member: &str| task.get(member).is_some();
    let questions = task["inputRequests"].as_object().into_iter().flatten();
    let questions: BTreeMap<String, String> =
        questions.map(|(key, request)| (key.clone(), request.to_string())).collect();
    let outcome = ["result", "error"].into_iter().find(|member| has(member)).map(raw);
    State {
        status: task["status"].as_str().unwrap_or_default().into(),
        message: task["statusMessage"].as_str().map(str::to_owned),
        updated: millis(&task["lastUpdatedAt"]),
        questions,
        outcome,
        text: task["result"]["content"][0]["text"].as_str().map(str::to_owned),
    }
}

fn millis(time: &Value) -> i64 {
    time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_millisecond)
}
