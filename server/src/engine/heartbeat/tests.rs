use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_core::access::{Caller, Owner, Scopes};
use tokkuri_core::id::{Attempt, TaskId};
use tokkuri_core::payload::Capabilities;
use tokkuri_core::procedure::{Answered, Created};
use tokkuri_core::store::{NodeState, Outcome, Unavailable};
use tokkuri_core::task::{Status, Task};
use tokkuri_core::time::Millis;

use super::*;
use crate::engine::{NewTask, NodeLoop, TaskSettings};
use crate::store::{MemoryStore, Reply, Store};
use crate::tool::{CallInfo, RunContext, Tool, ToolSet};

const SOON: Duration = Duration::from_secs(20);

/// A store that several nodes share, with a clock that is moved by hand, which can be cut off.
#[derive(Debug)]
struct Shared {
    inner: MemoryStore,
    clock: Arc<AtomicU64>,
}

/// One node's way to it.
#[derive(Debug)]
struct Way {
    shared: Arc<Shared>,
    is_cut: AtomicBool,
}

impl Shared {
    fn new() -> Arc<Self> {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let source = Arc::clone(&clock);
        let inner = MemoryStore::with_clock(Arc::new(move || Millis(source.load(Ordering::SeqCst))));
        Arc::new(Self { inner, clock })
    }

    async fn ask(&self, request: Request<Json>) -> Outcome<Json> {
        self.inner.carry_out(request).answer().await.outcome
    }

    async fn nodes(&self) -> Vec<NodeState> {
        match self.ask(Request::Nodes).await {
            Outcome::Nodes(nodes) => nodes,
            other => panic!("{other:?}"),
        }
    }
}

impl Store for Way {
    fn carry_out(&self, request: Request<Json>) -> Reply {
        let answer = self.shared.inner.carry_out(request.clone());
        if !self.is_cut.load(Ordering::SeqCst) {
            return answer;
        }
        let now = Millis(self.shared.clock.load(Ordering::SeqCst));
        let outcome = Outcome::Unavailable(Unavailable { why: "cut off".into(), maybe_done: true });
        Reply::Now(Answer { now, outcome })
    }

    fn visible_after_ms(&self) -> u64 {
        0
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Tools that run until they are told to stop.
fn tools() -> ToolSet {
    let endless =
        |name| Tool::new(name, |_: Nothing, cx: RunContext| async move { Ok(format!("{:?}", cx.cancelled().await)) });
    let mut tools = ToolSet::new();
    tools.add(endless("once")).unwrap();
    tools.add(endless("again").restartable()).unwrap();
    tools
}

/// A node that serves.
struct Serving {
    engine: Arc<Engine>,
    way: Arc<Way>,
    looping: tokio::task::JoinHandle<()>,
}

async fn node(shared: &Arc<Shared>, name: &str, lease_ms: u64, max_runs: usize) -> Serving {
    let way = Arc::new(Way { shared: Arc::clone(shared), is_cut: AtomicBool::new(false) });
    let settings = TaskSettings { poll_interval_ms: 20, lease_ms, max_runs, ..TaskSettings::default() };
    let store: Arc<dyn Store> = Arc::<Way>::clone(&way);
    let engine = Arc::new(Engine::new(store, tools(), settings).unwrap());
    engine.identify(name, Some("127.0.0.1:1".into()));
    let mut node = NodeLoop::new(Arc::clone(&engine));
    node.begin().await;
    assert!(engine.lease_held());
    let looping = tokio::spawn(node.run());
    Serving { engine, way, looping }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.looping.abort();
    }
}

fn ann() -> Caller {
    let text = |text: &'static str| Text::new_static(text);
    let owner = Owner { principal: text("ann"), server: text("s"), client: text(""), resource: text("") };
    Caller { owner, scopes: Scopes::Unrestricted }
}

impl Serving {
    async fn try_create(&self, tool: &str) -> Created<Json> {
        let info = CallInfo {
            tool: tool.into(),
            principal: "ann".into(),
            client: Text::default(),
            resource: Text::default(),
            scopes: Vec::new(),
            traceparent: None,
        };
        let tool = Arc::clone(self.engine.tools().find(tool).unwrap());
        let arguments = Json::parse("{}").unwrap();
        let new = NewTask { tool, arguments, caller: ann(), capabilities: Capabilities::default(), info };
        self.engine.create(new).await
    }

    async fn create(&self, tool: &str) -> TaskId {
        match self.try_create(tool).await {
            Created::Task(task) => task.id,
            other => panic!("{other:?}"),
        }
    }

    async fn get(&self, id: TaskId) -> Arc<Task<Json>> {
        match self.engine.get(id, ann()).await {
            Answered::Task(task) => task,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the task, as it is read here, is so.
    async fn until(&self, id: TaskId, what: &str, is: impl Fn(&Task<Json>) -> bool) -> Arc<Task<Json>> {
        eventually(what, async || Some(self.get(id).await).filter(|task| is(task))).await
    }
}

/// Waits for a state.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waited = async {
        loop {
            match look().await {
                Some(found) => break found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(SOON, waited).await.unwrap_or_else(|_| panic!("it never came: {what}"))
}

fn truth(it: bool) -> Option<()> {
    it.then_some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_leaves_alone_what_runs_on_one_that_lives() {
    let shared = Shared::new();
    let first = node(&shared, "first", 60_000, 9).await;
    let task = first.create("once").await;
    let second = node(&shared, "second", 60_000, 9).await;
    let read = second.get(task).await;
    assert_eq!((read.node, read.status()), (first.engine.node(), Status::Working));
    let names: BTreeMap<_, _> = shared.nodes().await.into_iter().map(|it| (it.node.id, it.node.name)).collect();
    assert_eq!(names, BTreeMap::from([(first.engine.node(), "first".into()), (second.engine.node(), "second".into())]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_stops_its_runs_and_comes_back_as_another() {
    let shared = Shared::new();
    let first = node(&shared, "first", 300, 9).await;
    let (once, again) = (first.create("once").await, first.create("again").await);
    let before = first.engine.node();
    eventually("both run", async || truth(first.engine.alive() == 2)).await;
    first.way.is_cut.store(true, Ordering::SeqCst);
    // The store's clock stands still: it is by its own that the node stops.
    eventually("the runs stop", async || truth(first.engine.alive() == 0)).await;
    assert!(!first.engine.lease_held());
    assert_eq!(first.engine.closed(), Some(Closed::NoLease));
    assert!(matches!(first.try_create("once").await, Created::Unavailable(_)));
    first.way.is_cut.store(false, Ordering::SeqCst);
    eventually("it joins again", async || truth(first.engine.lease_held())).await;
    assert_ne!(first.engine.node(), before);
    // It holds the tasks of its earlier self as little as anybody's. They are orphans once the store says so.
    assert_eq!(first.get(again).await.attempt, Attempt::FIRST);
    shared.clock.fetch_add(301, Ordering::SeqCst);
    // Whichever incarnation is there by then takes them over.
    let task = first.until(again, "it runs again", |task| task.attempt > Attempt::FIRST).await;
    assert_eq!(task.status(), Status::Working);
    first.until(once, "it has failed", |task| task.status() == Status::Failed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_taken_over_by_another() {
    let shared = Shared::new();
    let first = node(&shared, "first", 60_000, 9).await;
    let second = node(&shared, "second", 600_000, 9).await;
    let (once, again) = (first.create("once").await, first.create("again").await);
    first.way.is_cut.store(true, Ordering::SeqCst);
    shared.ask(Request::Resign { node: first.engine.node() }).await;
    let task = second.until(again, "it runs on the second node", |task| task.node == second.engine.node()).await;
    assert_eq!(task.attempt, Attempt::FIRST.next());
    second.until(once, "it has failed", |task| task.status() == Status::Failed).await;
    eventually("the second node runs it", async || truth(second.engine.alive() == 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_drains_takes_nothing_new_and_hands_over_what_it_can() {
    let shared = Shared::new();
    // One place: the others wait.
    let first = node(&shared, "first", 60_000, 1).await;
    let runs = first.create("again").await;
    let (waits, waits_too) = (first.create("once").await, first.create("again").await);
    eventually("the first one runs, the others wait", async || truth(first.engine.queued() == 2)).await;
    let second = node(&shared, "second", 60_000, 9).await;
    let drain = Request::Drain { node: first.engine.node(), drain: Some(3_600_000) };
    assert_eq!(shared.ask(drain).await, Outcome::Drained(true));
    for id in [waits, waits_too] {
        let task =
            second.until(id, "what waited runs on the second node", |task| task.node == second.engine.node()).await;
        assert_eq!(task.status(), Status::Working);
    }
    assert!(first.engine.is_draining() && !second.engine.is_draining());
    assert_eq!(first.engine.closed(), Some(Closed::Draining));
    assert!(matches!(first.try_create("once").await, Created::Unavailable(_)));
    assert_eq!(first.get(runs).await.node, first.engine.node(), "what runs is let to");
    // Its time is over.
    let drain = Request::Drain { node: first.engine.node(), drain: Some(0) };
    assert_eq!(shared.ask(drain).await, Outcome::Drained(true));
    second.until(runs, "what may run again does", |task| task.node == second.engine.node()).await;
    eventually("nothing runs on the node that drains", async || truth(first.engine.alive() == 0)).await;
    // And back.
    assert_eq!(shared.ask(Request::Drain { node: first.engine.node(), drain: None }).await, Outcome::Drained(true));
    eventually("it takes tasks again", async || truth(first.engine.closed().is_none())).await;
    first.create("once").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_must_not_run_twice_is_not_handed_over() {
    let shared = Shared::new();
    let first = node(&shared, "first", 60_000, 9).await;
    let second = node(&shared, "second", 60_000, 9).await;
    let (once, again) = (first.create("once").await, first.create("again").await);
    eventually("both run", async || truth(first.engine.alive() == 2)).await;
    shared.ask(Request::Drain { node: first.engine.node(), drain: Some(0) }).await;
    second.until(again, "it runs again", |task| task.node == second.engine.node()).await;
    let task = second.get(once).await;
    assert_eq!((task.node, task.status(), first.engine.alive()), (first.engine.node(), Status::Working, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_shuts_down_leaves_nothing_to_be_waited_for() {
    let shared = Shared::new();
    let first = node(&shared, "first", 3_600_000, 2).await;
    let (once, again, waits) = (first.create("once").await, first.create("again").await, first.create("once").await);
    eventually("two run, one waits", async || truth((first.engine.alive(), first.engine.queued()) == (2, 1))).await;
    let second = node(&shared, "second", 3_600_000, 9).await;
    first.engine.shut_down(Duration::from_millis(50)).await;
    assert!(first.engine.closed().is_some());
    for id in [again, waits] {
        second.until(id, "it runs on the second node", |task| task.node == second.engine.node()).await;
    }
    second.until(once, "it has failed", |task| task.status() == Status::Failed).await;
    assert_eq!(shared.nodes().await.len(), 1);
}

#[tokio::test]
async fn a_process_that_has_its_store_for_itself_never_loses_it() {
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let source = Arc::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::new(move || Millis(source.load(Ordering::SeqCst)))));
    let settings = TaskSettings { lease_ms: 100, poll_interval_ms: 10, ..TaskSettings::default() };
    let engine = Arc::new(Engine::new(store, tools(), settings).unwrap());
    let mut node = NodeLoop::new(Arc::clone(&engine));
    node.begin().await;
    let before = engine.node();
    clock.fetch_add(86_400_000, Ordering::SeqCst);
    let held = tokio::time::timeout(Duration::from_millis(300), node.run()).await;
    assert!(held.is_err() && engine.lease_held());
    assert_eq!(engine.node(), before);
}
