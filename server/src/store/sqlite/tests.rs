//! The SQLite store keeps the contract, and what a file adds to it: restarts, other processes, failing disks.

mod failing;
mod opening;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tempfile::TempDir;
use tokkuri_core::Text;
use tokkuri_core::access::Owner;
use tokkuri_core::id::{Attempt, NodeId, TaskId};
use tokkuri_core::store::{Answer, Node};
use tokkuri_core::task::{Command, Draft, Task};

use super::*;
use crate::store::contract::{self, HandClock, Subject};

/// A directory of its own for a file, which goes with it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("tokkuri.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).unwrap()
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn owner() -> Owner {
    Owner { principal: "a".into(), server: "s".into(), client: Text::default(), resource: Text::default() }
}

fn id(n: u32) -> TaskId {
    let mut bytes = [7; 18];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    TaskId::from_bytes(bytes)
}

fn draft(n: u32) -> Draft<Json> {
    let draft = Draft::new(id(n), owner(), "tool", json(r#"{"n":1e300}"#), NodeId(u64::MAX));
    Draft { ttl_ms: 60_000, keep_ms: 30_000, max_questions: 4, ..draft }
}

fn insert(n: u32) -> Request<Json> {
    Request::Insert { draft: Box::new(draft(n)), limit: None }
}

async fn ask(store: &SqliteStore, request: Request<Json>) -> Answer<Json> {
    let answer = store.carry_out(request).answer();
    tokio::time::timeout(Duration::from_secs(30), answer).await.expect("an answer, whatever the file does")
}

async fn load(store: &SqliteStore, n: u32) -> Option<Arc<Task<Json>>> {
    match ask(store, Request::Load { id: id(n) }).await.outcome {
        Outcome::Loaded(task) => task,
        outcome => panic!("{outcome:?}"),
    }
}

async fn inserted(store: &SqliteStore, n: u32) -> Arc<Task<Json>> {
    match ask(store, insert(n)).await.outcome {
        Outcome::Inserted(task) => task,
        outcome => panic!("{outcome:?}"),
    }
}

fn applied(task: &Task<Json>, now: Millis, command: Command<Json>) -> Arc<Task<Json>> {
    let mut next = task.clone();
    next.apply(now, command, &mut Vec::new()).unwrap();
    Arc::new(next)
}

/// Does something with the writer's connection, after all that was handed in before.
fn with(store: &SqliteStore, act: impl FnOnce(&Connection) + Send + 'static) {
    let (done, is_done) = channel();
    let act = Box::new(move |connection: &Connection| {
        act(connection);
        done.send(()).unwrap();
    });
    assert!(store.writer.send(Order::With(act)));
    is_done.recv_timeout(Duration::from_secs(30)).unwrap();
}

/// Holds the writer until the sender is dropped: what is handed in meanwhile comes together.
fn hold(store: &SqliteStore) -> Sender<()> {
    let (release, is_released) = channel();
    let (begun, has_begun) = channel();
    let wait = Box::new(move |_: &Connection| {
        begun.send(()).unwrap();
        assert!(is_released.recv().is_err());
    });
    assert!(store.writer.send(Order::With(wait)));
    has_begun.recv_timeout(Duration::from_secs(30)).unwrap();
    release
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_the_contract_when_time_is_moved_by_hand() {
    let place = Place::new();
    let nth = std::cell::Cell::new(0);
    let make = async || {
        let clock = HandClock::new();
        let path = place.0.path().join(nth.replace(nth.get() + 1).to_string());
        let store = SqliteStore::open_with_clock(&path, clock.source()).unwrap();
        Subject::with_clock(Arc::new(store), clock)
    };
    contract::check_all(make).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_the_contract_by_the_wall_clock() {
    let place = Place::new();
    let nth = std::cell::Cell::new(0);
    let make = async || {
        let path = place.0.path().join(nth.replace(nth.get() + 1).to_string());
        Subject::new(Arc::new(SqliteStore::open(&path).unwrap()))
    };
    contract::check_all(make).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_as_it_was_after_a_restart_but_the_leases() {
    let place = Place::new();
    let store = place.open();
    let first = inserted(&store, 1).await;
    let ended = inserted(&store, 2).await;
    let complete = Command::Complete { by: Attempt::FIRST, result: json(r#""\u0000\ud800""#), message: None };
    let ended = applied(&ended, ended.updated, complete);
    let commit = Request::Commit { expected: first.revision, task: Arc::clone(&ended) };
    assert_eq!(ask(&store, commit).await.outcome, Outcome::Committed);
    let joining = Node { id: first.node, name: "a".into(), address: None, version: "1".into() };
    ask(&store, Request::Join { node: Box::new(joining), lease_ms: 600_000 }).await;
    assert_eq!(ask(&store, Request::Orphans { limit: 9 }).await.outcome, Outcome::Orphans(vec![]));
    drop(store);

    let store = place.open();
    assert_eq!(load(&store, 1).await, Some(Arc::clone(&first)));
    assert_eq!(load(&store, 2).await, Some(ended));
    assert_eq!(ask(&store, Request::Count { owner: owner() }).await.outcome, Outcome::Live(1));
    assert_eq!(ask(&store, Request::Orphans { limit: 9 }).await.outcome, Outcome::Orphans(vec![Arc::clone(&first)]));
    let full = Request::Insert { draft: Box::new(draft(3)), limit: Some(1) };
    assert_eq!(ask(&store, full).await.outcome, Outcome::AtTheLimit);
    let next = applied(&first, first.updated, Command::Cancel);
    let commit = Request::Commit { expected: first.revision, task: next };
    assert_eq!(ask(&store, commit).await.outcome, Outcome::Committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_what_is_not_on_disk() {
    let place = Place::new();
    let store = place.open();
    let release = hold(&store);
    let promised = store.carry_out(insert(1));
    assert_eq!(load(&store, 1).await, None);
    assert_eq!(ask(&store, Request::Count { owner: owner() }).await.outcome, Outcome::Live(0));
    drop(release);
    assert!(matches!(promised.answer().await.outcome, Outcome::Inserted(_)));
    assert!(load(&store, 1).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_nobody_wants_is_written_all_the_same() {
    let place = Place::new();
    let store = place.open();
    let release = hold(&store);
    drop(store.carry_out(insert(1)));
    drop(release);
    // The writer takes orders in turn: this answer comes after that change.
    inserted(&store, 2).await;
    assert!(load(&store, 1).await.is_some());
    drop(store);
    assert!(load(&place.open(), 1).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_in_before_the_store_is_dropped_is_written() {
    let place = Place::new();
    let store = place.open();
    let release = hold(&store);
    let promised: Vec<_> = (0..2_000).map(|n| store.carry_out(insert(n))).collect();
    drop(release);
    drop(store);
    for promised in promised {
        assert!(matches!(promised.answer().await.outcome, Outcome::Inserted(_)));
    }
    assert_eq!(ask(&place.open(), Request::Count { owner: owner() }).await.outcome, Outcome::Live(2_000));
}

/// A change that was decided before a task's end, and raises it, may still be on its way to the disk: whoever was told "gone"
/// now would see the task again later.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_called_gone_only_after_the_changes_on_their_way() {
    let place = Place::new();
    let clock = HandClock::new();
    let store = SqliteStore::open_with_clock(&place.path(), clock.source()).unwrap();
    let task = inserted(&store, 1).await;
    let release = hold(&store);
    let cancelled = applied(&task, clock.now(), Command::Cancel);
    let commit = store.carry_out(Request::Commit { expected: task.revision, task: cancelled });
    clock.set(task.expires());
    let gone = store.carry_out(Request::Load { id: task.id });
    assert!(matches!(gone, Reply::Later(_)), "{gone:?}");
    assert!(matches!(store.carry_out(Request::Load { id: id(2) }), Reply::Now(_)), "what never was is no question");
    drop(release);
    assert_eq!(commit.answer().await.outcome, Outcome::Conflict);
    assert_eq!(gone.answer().await.outcome, Outcome::Loaded(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_where_it_was_though_the_machines_clock_was_set_back() {
    let place = Place::new();
    let clock = HandClock::new();
    let task = inserted(&SqliteStore::open_with_clock(&place.path(), clock.source()).unwrap(), 1).await;
    clock.set(task.origin.created.before(3_600_000));
    let store = SqliteStore::open_with_clock(&place.path(), clock.source()).unwrap();
    assert_eq!(ask(&store, Request::Load { id: task.id }).await.now, task.origin.created);
}
