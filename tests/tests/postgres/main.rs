//! The Postgres store against a real server: the contract, several stores on one database, a server that goes away, and what
//! the planner makes of its statements.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod failing;
mod hints;
mod opening;
mod plans;
mod sharing;
mod speed;
mod times;
mod tls;

use std::sync::Arc;

use tokkuri_server::store::contract::{self, Subject};
use tokkuri_server::store::postgres::PostgresOptions;
use tokkuri_server::store::{PostgresStore, Store};
use tokkuri_server::tokkuri_core::Text;
use tokkuri_server::tokkuri_core::access::Owner;
use tokkuri_server::tokkuri_core::id::{NodeId, TaskId};
use tokkuri_server::tokkuri_core::payload::Capabilities;
use tokkuri_server::tokkuri_core::store::{Answer, Outcome, Request};
use tokkuri_server::tokkuri_core::task::{Command, Draft, Task};
use tokkuri_server::tokkuri_core::time::Millis;
use tokkuri_server::tokkuri_core::wire::Json;
use tokkuri_tests::harness::Postgres;

type Shared = Arc<Task<Json>>;

const NODE: NodeId = NodeId(0xf00d_0000_0000_0001);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_the_contract() {
    contract::check_all(async || Subject::new(Arc::new(open(&Postgres::shared().url()).await))).await.unwrap();
}

/// Settings of the database must not weaken what the store promises.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_the_contract_whatever_the_databases_defaults_are() {
    let make = async || {
        let postgres = Postgres::shared();
        let url = postgres.url();
        let name = url.rsplit('/').next().unwrap();
        postgres.psql(&url, &format!("alter database {name} set default_transaction_isolation = serializable"));
        postgres.psql(&url, &format!("alter database {name} set timezone = 'Asia/Kathmandu'"));
        Subject::new(Arc::new(open(&format!("{url}?connections=2&notify=off")).await))
    };
    contract::check_all(make).await.unwrap();
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::from_url(url).unwrap()).await.unwrap()
}

async fn ask(store: &PostgresStore, request: Request<Json>) -> Answer<Json> {
    store.carry_out(request).answer().await
}

async fn load(store: &PostgresStore, id: TaskId) -> Option<Shared> {
    match ask(store, Request::Load { id }).await.outcome {
        Outcome::Loaded(task) => task,
        outcome => panic!("{outcome:?}"),
    }
}

async fn inserted(store: &PostgresStore, draft: Draft<Json>) -> Shared {
    match ask(store, Request::Insert { draft: Box::new(draft), limit: None }).await.outcome {
        Outcome::Inserted(task) => task,
        outcome => panic!("{outcome:?}"),
    }
}

async fn committed(store: &PostgresStore, loaded: &Shared, command: Command<Json>) -> Shared {
    let next = applied(loaded, loaded.updated, command);
    let commit = Request::Commit { expected: loaded.revision, task: Arc::clone(&next) };
    assert_eq!(ask(store, commit).await.outcome, Outcome::Committed);
    next
}

fn applied(loaded: &Shared, now: Millis, command: Command<Json>) -> Shared {
    let mut next = Task::clone(loaded);
    next.apply(now, command, &mut Vec::new()).unwrap();
    Arc::new(next)
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn id(n: u64) -> TaskId {
    let mut bytes = [7; 18];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    TaskId::from_bytes(bytes)
}

fn owner(principal: &str) -> Owner {
    Owner { principal: principal.into(), server: "s".into(), client: Text::default(), resource: Text::default() }
}

fn draft(n: u64) -> Draft<Json> {
    Draft {
        id: id(n),
        owner: owner("a"),
        tool: "tool".into(),
        scopes: Vec::new(),
        granted: Vec::new(),
        capabilities: Capabilities::ALL,
        traceparent: None,
        restartable: false,
        arguments: json(r#"{"n":1}"#),
        node: NODE,
        ttl_ms: 3_600_000,
        poll_interval_ms: 1_000,
        keep_ms: 0,
        max_questions: 8,
        status_message: None,
    }
}
