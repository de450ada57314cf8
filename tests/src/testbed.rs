//! The test bed's own tools: what the conformance suite wants of tasks, and probes of every behaviour that has a claim.

mod asking;
mod conformance;
mod counting;
mod ending;
mod gates;
mod holding;
mod working;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::engine::probe::Probe;
use tokkuri_server::tool::{RunContext, Structured, Tool, ToolResult};

/// What the probe tools of one process share.
#[derive(Clone, Debug, Default)]
pub struct Bed {
    runs: Arc<AtomicU64>,
    counters: Arc<counting::Counters>,
    gates: Arc<gates::Gates>,
    holds: Arc<holding::Holds>,
}

impl Bed {
    /// A bed in which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// What holds the node at its named points.
    pub fn probe(&self) -> Arc<dyn Probe> {
        Arc::clone(&self.holds) as Arc<dyn Probe>
    }

    /// Counts a run as alive for as long as the guard is.
    fn alive(&self) -> Alive {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Alive(Arc::clone(&self.runs))
    }
}

/// A run that is alive.
#[derive(Debug)]
struct Alive(Arc<AtomicU64>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A tool without arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// All of them.
pub fn tools(bed: &Bed) -> Vec<Tool> {
    let mut tools = conformance::tools();
    tools.extend(working::tools(bed));
    tools.extend(asking::tools(bed));
    tools.extend(ending::tools(bed));
    tools.extend(counting::tools(bed));
    tools.extend(gates::tools(bed));
    tools.extend(holding::tools(bed));
    tools.push(runs(bed));
    tools.push(whoami());
    tools
}

fn runs(bed: &Bed) -> Tool {
    let runs = Arc::clone(&bed.runs);
    Tool::new("runs", move |_: Nothing, _| {
        let runs = runs.load(Ordering::SeqCst);
        async move { Ok(json_text(&serde_json::json!({ "runs": runs }))) }
    })
    .description("The runs now alive in this process")
}

fn whoami() -> Tool {
    Tool::new("whoami", |_: Nothing, cx: RunContext| async move {
        let info = cx.info();
        let seen = serde_json::json!({
            "principal": info.principal,
            "client": info.client,
            "resource": info.resource,
            "scopes": info.scopes,
            "traceparent": info.traceparent,
        });
        Ok(Structured(seen))
    })
    .description("The caller as a tool sees it")
    .task(tokkuri_server::tool::TaskMode::Optional)
}

/// JSON as the one text item of an answer.
fn json_text(value: &serde_json::Value) -> ToolResult {
    ToolResult::text(value.to_string())
}
