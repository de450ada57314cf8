//! Two nodes of one store in one process: what the one stores, the other is told of.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, watch};
use tokkuri_core::id::NodeId;
use tokkuri_core::procedure::{Answered, Written};
use tokkuri_core::signal::Subscription;
use tokkuri_core::store::Request;
use tokkuri_core::task::Status;
use tokkuri_core::wire::Json;

use super::*;
use crate::engine::testing::{self, caller, create, until, within};
use crate::engine::{NodeLoop, Peers};
use crate::store::{MemoryStore, Reply, Store};

/// A store in memory that counts loads, holds them up while it is told to, and gives hints.
#[derive(Debug)]
struct Counting {
    tasks: MemoryStore,
    loads: AtomicUsize,
    held: watch::Sender<bool>,
    hints: Mutex<Option<mpsc::Receiver<(TaskId, Revision)>>>,
}

impl Counting {
    fn new() -> Arc<Self> {
        let (held, _) = watch::channel(false);
        Arc::new(Self { tasks: MemoryStore::new(), loads: AtomicUsize::new(0), held, hints: Mutex::new(None) })
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }
}

impl Store for Counting {
    fn carry_out(&self, request: Request<Json>) -> Reply {
        let is_load = matches!(request, Request::Load { .. });
        let answer = self.tasks.carry_out(request);
        if !is_load {
            return answer;
        }
        self.loads.fetch_add(1, Ordering::SeqCst);
        let mut held = self.held.subscribe();
        Reply::Later(Box::pin(async move {
            held.wait_for(|held| !held).await.expect("the store outlives its answers");
            answer.answer().await
        }))
    }

    fn visible_after_ms(&self) -> u64 {
        0
    }

    fn hints(&self) -> Option<mpsc::Receiver<(TaskId, Revision)>> {
        self.hints.lock().unwrap().take()
    }
}

/// Remembers what it was told.
#[derive(Debug, Default)]
struct Told {
    signals: Mutex<Vec<(NodeId, TaskId, Revision)>>,
    published: Mutex<Vec<(TaskId, Revision)>>,
}

impl Peers for Told {
    fn signal(&self, node: NodeId, id: TaskId, revision: Revision) {
        self.signals.lock().unwrap().push((node, id, revision));
    }

    fn publish(&self, id: TaskId, revision: Revision) {
        self.published.lock().unwrap().push((id, revision));
    }
}

fn engine(store: &Arc<Counting>, peers: Option<Arc<dyn Peers>>) -> Arc<Engine> {
    let store: Arc<dyn Store> = Arc::<Counting>::clone(store);
    let engine = testing::engine(store);
    if let Some(peers) = peers {
        engine.set_peers(peers);
    }
    engine
}

fn alone(store: &Arc<Counting>) -> Arc<Engine> {
    engine(store, None)
}

async fn cancel(engine: &Arc<Engine>, id: TaskId) -> Revision {
    match engine.cancel(id, caller()).await {
        Written::Done(task) => task.revision,
        other => panic!("{other:?}"),
    }
}

async fn next(subscription: &mut Subscription<Json>) -> Option<Status> {
    within(poll_fn(|cx| subscription.poll_next(cx))).await.map(|task| task.status())
}

/// Over once there is no run on this node.
async fn idle(engine: &Arc<Engine>) {
    until(|| engine.registry.is_empty()).await;
}

#[tokio::test]
async fn a_hint_stops_a_run_that_another_node_cancelled_with_one_load() {
    let store = Counting::new();
    let (here, there) = (alone(&store), alone(&store));
    let id = create(&here).await;
    let revision = cancel(&there, id).await;
    let before = store.loads();
    here.hint(id, Some(revision));
    idle(&here).await;
    assert_eq!(store.loads(), before + 1);
}

#[tokio::test]
async fn nothing_is_read_for_what_is_known_and_for_what_is_nobodys_here() {
    let store = Counting::new();
    let (here, there) = (alone(&store), alone(&store));
    let (mine, theirs) = (create(&here).await, create(&there).await);
    let before = store.loads();
    here.hint(mine, Some(Revision::FIRST));
    here.hint(theirs, Some(Revision(9)));
    here.hint(theirs, None);
    // A hint that is worth a load shows that those before it were not.
    here.hint(mine, None);
    until(|| here.hints.lock().is_empty() && store.loads() > before).await;
    assert_eq!(store.loads(), before + 1);
}

#[tokio::test]
async fn hints_that_come_while_the_task_is_read_are_taken_together() {
    let store = Counting::new();
    let (here, there) = (alone(&store), alone(&store));
    let id = create(&there).await;
    let mut subscription = here.follow(caller(), vec![id]).await.unwrap();
    assert_eq!(next(&mut subscription).await, Some(Status::Working));
    let before = store.loads();
    store.held.send_replace(true);
    here.hint(id, None);
    until(|| store.loads() > before).await;
    // The reading that is held up is older than this.
    let commit = tokio::spawn({
        let there = Arc::clone(&there);
        async move { cancel(&there, id).await }
    });
    for revision in 2..100 {
        here.hint(id, Some(Revision(revision)));
    }
    store.held.send_replace(false);
    within(commit).await.unwrap();
    here.hint(id, Some(Revision(2)));
    assert_eq!(next(&mut subscription).await, Some(Status::Cancelled));
    // Two for the hints and one for the cancel itself, and one if the cancel came too late for the second.
    assert!(store.loads() <= before + 4, "{} loads", store.loads() - before);
}

#[tokio::test]
async fn a_storm_of_hints_reads_no_more_than_so_many_tasks_at_a_time() {
    let store = Counting::new();
    let here = alone(&store);
    let mut ids = Vec::new();
    for _ in 0..3 * AT_ONCE {
        ids.push(create(&here).await);
    }
    let before = store.loads();
    store.held.send_replace(true);
    for id in &ids {
        here.hint(*id, None);
    }
    until(|| store.loads() >= before + AT_ONCE).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.loads(), before + AT_ONCE);
    store.held.send_replace(false);
    until(|| here.hints.lock().is_empty()).await;
    assert_eq!(store.loads(), before + ids.len());
}

#[tokio::test]
async fn the_stores_own_hints_reach_followers() {
    let store = Counting::new();
    let (sender, receiver) = mpsc::channel(8);
    let (here, there) = (alone(&store), alone(&store));
    *store.hints.lock().unwrap() = Some(receiver);
    let mut looking = NodeLoop::new(Arc::clone(&here));
    looking.begin().await;
    let id = create(&there).await;
    let mut subscription = here.follow(caller(), vec![id]).await.unwrap();
    assert_eq!(next(&mut subscription).await, Some(Status::Working));
    let revision = cancel(&there, id).await;
    let looking = tokio::spawn(looking.run());
    sender.send((id, revision)).await.unwrap();
    assert_eq!(next(&mut subscription).await, Some(Status::Cancelled));
    looking.abort();
}

#[tokio::test]
async fn peers_are_told_of_what_is_stored_and_of_nothing_else() {
    let store = Counting::new();
    let told = Arc::new(Told::default());
    let (here, there) = (engine(&store, Some(Arc::<Told>::clone(&told))), alone(&store));
    let (mine, theirs) = (create(&here).await, create(&there).await);
    told.published.lock().unwrap().clear();

    let Answered::Task(_) = here.get(theirs, caller()).await else { panic!("it is there") };
    assert!(matches!(here.update(theirs, caller(), BTreeMap::new()).await, Written::Done(_)));
    assert!(told.published.lock().unwrap().is_empty(), "nothing was stored");

    let revision = cancel(&here, theirs).await;
    assert_eq!(*told.signals.lock().unwrap(), [(there.node(), theirs, revision)]);
    assert_eq!(*told.published.lock().unwrap(), [(theirs, revision)]);

    let revision = cancel(&here, mine).await;
    assert_eq!(told.signals.lock().unwrap().len(), 1, "its own runs it finds by itself");
    assert_eq!(*told.published.lock().unwrap(), [(theirs, Revision(2)), (mine, revision)]);
}
