//! What tests of several nodes in one process share: a caller, a tool that never ends, tasks.

use std::sync::Arc;
use std::time::Duration;

use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::id::TaskId;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::procedure::Created;
use tokkuri_core::wire::Json;

use super::{Engine, NewTask, TaskSettings};
use crate::store::Store;
use crate::tool::{CallInfo, RunContext, TaskMode, Tool, ToolSet};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

pub(crate) fn caller() -> Caller {
    let owner = Owner { principal: "a".into(), server: "s".into(), client: "".into(), resource: "".into() };
    Caller { owner, scopes: Scopes::Unrestricted }
}

/// A node with the tool `endless`, which runs until it is stopped. It looks at the store by itself once a minute only, and only if
/// its loop runs.
pub(crate) fn engine(store: Arc<dyn Store>) -> Arc<Engine> {
    let endless = Tool::new("endless", |_: Nothing, _: RunContext| async move {
        std::future::pending::<()>().await;
        Ok("never")
    });
    let mut tools = ToolSet::new();
    tools.add(endless.task(TaskMode::Optional)).unwrap();
    let settings = TaskSettings { poll_interval_ms: 60_000, ..TaskSettings::default() };
    Arc::new(Engine::new(store, tools, settings).unwrap())
}

/// A task that runs until it is stopped.
pub(crate) async fn create(engine: &Arc<Engine>) -> TaskId {
    // A node without a lease creates nothing.
    if !engine.lease_held() {
        tokio::spawn(Arc::clone(engine).keep_lease());
        engine.joined(Duration::from_secs(10)).await;
    }
    let owner = caller().owner;
    let new = NewTask {
        tool: Arc::clone(engine.tools().find("endless").unwrap()),
        arguments: Json::parse("{}").unwrap(),
        caller: caller(),
        capabilities: Capabilities::default(),
        info: CallInfo {
            tool: "endless".into(),
            principal: owner.principal,
            client: owner.client,
            resource: owner.resource,
            scopes: Vec::new(),
            traceparent: None,
        },
    };
    match engine.create(new).await {
        Created::Task(task) => task.id,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("it comes within ten seconds")
}

/// Over once it is so.
pub(crate) async fn until(so: impl Fn() -> bool) {
    within(async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
