//! A client that is not there, for tests of the demo tools: it keeps what it is told and answers what it is asked.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::replay::Replay;
use tokkuri_core::wire::Json;

use crate::tool::{
    AskError, Asks, CallInfo, Inline, Mode, ProgressSink, Round, RunContext, Session, Tool, ToolError, ToolResult,
    outcome,
};

type Watch = Box<dyn Fn(&str) + Send + Sync>;

/// Answers every question the same way; without an answer it cannot be asked.
#[derive(Clone, Default)]
pub(crate) struct Client(Arc<State>);

#[derive(Default)]
struct State {
    answer: Option<Value>,
    watch: Option<Watch>,
    told: Mutex<Vec<String>>,
    asked: Mutex<Vec<Value>>,
}

impl Client {
    pub(crate) fn answering(answer: Value) -> Self {
        Self(Arc::new(State { answer: Some(answer), ..State::default() }))
    }

    /// `watch` is called on the tool's own thread with each progress, before the tool goes on.
    pub(crate) fn watching(watch: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(State { watch: Some(Box::new(watch)), ..State::default() }))
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.0.told.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> Vec<Value> {
        self.0.asked.lock().unwrap().clone()
    }

    pub(crate) fn cx(&self) -> RunContext {
        let capabilities = Capabilities { form: self.0.answer.is_some(), ..Capabilities::default() };
        let inline = Inline {
            cancelled: CancellationToken::new(),
            progress: Some(Box::new(Ear(self.clone()))),
            round: Round::new(Replay::new(capabilities, BTreeMap::new(), BTreeMap::new())),
            asks: Asks::Session(Box::new(Ear(self.clone()))),
        };
        RunContext {
            mode: Mode::Inline(Arc::new(inline)),
            info: Arc::new(CallInfo::default()),
            capabilities,
            presence: None,
        }
    }

    /// Waits until it was told something that fits.
    pub(crate) async fn until(&self, fits: impl Fn(&str) -> bool) {
        wait(|| self.told().iter().any(|told| fits(told))).await;
    }

    /// Waits until no run has it any more.
    pub(crate) async fn alone(&self) {
        wait(|| Arc::strong_count(&self.0) == 1).await;
    }
}

/// Looks again and again until something holds; the caller's test has the limit of it.
pub(crate) async fn wait(holds: impl Fn() -> bool) {
    let looked = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looked).await.expect("it holds within 20 s");
}

struct Ear(Client);

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ear")
    }
}

impl ProgressSink for Ear {
    fn progress(&self, done: u64, total: Option<u64>, message: &str) {
        let told = format!("{done}/{} {message}", total.unwrap_or(0));
        if let Some(watch) = &self.0.0.watch {
            watch(&told);
        }
        self.0.0.told.lock().unwrap().push(told);
    }
}

impl Session for Ear {
    fn ask(&self, request: Json) -> Pin<Box<dyn Future<Output = Result<Json, AskError>> + Send + '_>> {
        self.0.0.asked.lock().unwrap().push(request.read().unwrap());
        let answer = match &self.0.0.answer {
            Some(answer) => Ok(Json::from(answer)),
            None => Err(AskError::Undeclared(Capabilities { form: true, ..Capabilities::default() })),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Runs a tool's body.
pub(crate) async fn call(tool: &Tool, arguments: Value, client: &Client) -> Result<ToolResult, ToolError> {
    tool.body.run(Json::from(&arguments), client.cx()).await
}

/// The text of a failure.
pub(crate) fn failure(result: Result<ToolResult, ToolError>) -> String {
    match result.map_err(|ToolError(kind)| kind) {
        Err(outcome::Kind::Failed(result)) => Json::of(&result.content).unwrap().as_str().to_owned(),
        other => panic!("no failure: {other:?}"),
    }
}

/// The structured content of a result, which fits the tool's own output schema.
pub(crate) fn structured(tool: &Tool, result: &ToolResult) -> Value {
    let tool = tool.clone().compiled().unwrap();
    let settled = outcome::settle(&tool, 4 << 20, Ok(result.clone())).expect("it fits the output schema");
    settled.read::<Value>().unwrap()["structuredContent"].take()
}
