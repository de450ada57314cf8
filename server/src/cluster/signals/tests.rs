//! Nodes of one store in one process, with real gRPC between them. None of them looks at the store by itself.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Instant;

use tokio::net::TcpListener;
use tokkuri_core::procedure::Written;
use tokkuri_core::store::{Node, Request};
use tokkuri_core::task::Status;

use super::*;
use crate::cluster::{Grpc, Serving};
use crate::config::{GrpcConfig, Secret};
use crate::engine::testing::{self, caller, create, until, within};
use crate::store::{MemoryStore, Store};

struct Member {
    engine: Arc<Engine>,
    serving: Option<Serving>,
}

/// A node of `store` that says it is reached at `address`, or where it listens.
async fn member_at(store: &Arc<dyn Store>, config: &GrpcConfig, signals: bool, address: Option<SocketAddr>) -> Member {
    let engine = testing::engine(Arc::clone(store));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = address.unwrap_or(listener.local_addr().unwrap());
    let node = Node {
        id: engine.node(),
        name: address.to_string().into(),
        address: Some(address.to_string().into()),
        version: "test".into(),
    };
    store.carry_out(Request::Join { node: Box::new(node), lease_ms: 60_000 }).answer().await;
    let grpc = Grpc::new(&engine, listener, config, signals).unwrap();
    let serving = Some(grpc.serve(&engine).await);
    Member { engine, serving }
}

async fn member(store: &Arc<dyn Store>) -> Member {
    member_at(store, &GrpcConfig::default(), true, None).await
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn cancel(engine: &Arc<Engine>, id: TaskId) {
    assert!(matches!(engine.cancel(id, caller()).await, Written::Done(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_the_run_on_another_node_that_was_unknown_before() {
    let store = store();
    let (here, there) = (member(&store).await, member(&store).await);
    let id = create(&there.engine).await;
    until(|| there.engine.alive() == 1).await;
    cancel(&here.engine, id).await;
    until(|| there.engine.alive() == 0).await;
    until(|| here.count("sent") >= 1).await;
    assert_eq!(here.count("lost"), 0);
    until(|| there.count("received") >= 1).await;
    assert_eq!(there.count("late"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_on_another_node_hear_of_changes_within_milliseconds() {
    let store = store();
    let (here, there) = (member(&store).await, member(&store).await);
    let knows = |member: &Member, other: &Member| {
        let other = other.engine.node();
        let peers = Arc::clone(&member.serving.as_ref().unwrap().signals);
        move || peers.neighbours().contains_key(&other)
    };
    // The first one looked before the second one came.
    let first = create(&there.engine).await;
    cancel(&here.engine, first).await;
    until(knows(&here, &there)).await;
    until(knows(&there, &here)).await;
    let mut took = Vec::new();
    for _ in 0..20 {
        let id = create(&here.engine).await;
        let mut subscription = there.engine.follow(caller(), vec![id]).await.unwrap();
        let mut next = async || within(poll_fn(|cx| subscription.poll_next(cx))).await.map(|task| task.status());
        assert_eq!(next().await, Some(Status::Working));
        let start = Instant::now();
        cancel(&here.engine, id).await;
        assert_eq!(next().await, Some(Status::Cancelled));
        took.push(start.elapsed());
    }
    took.sort();
    // A machine that is busy with other tests may take longer now and then.
    assert!(took[10] < Duration::from_millis(50), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_show_each_other_their_token() {
    let store = store();
    let config = |token: &str| GrpcConfig { token: Some(Secret::new(token)), ..GrpcConfig::default() };
    let here = member_at(&store, &config("right"), true, None).await;
    let there = member_at(&store, &config("right"), true, None).await;
    let wrong = member_at(&store, &config("wrong"), true, None).await;
    let id = create(&there.engine).await;
    cancel(&wrong.engine, id).await;
    until(|| wrong.count("lost") >= 1).await;
    assert_eq!(there.count("received"), 0);
    assert_eq!(there.engine.alive(), 1, "it has heard of nothing");
    let id = create(&there.engine).await;
    cancel(&here.engine, id).await;
    until(|| there.count("received") >= 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_signals_nothing_is_sent_and_nothing_is_taken() {
    let store = store();
    let here = member(&store).await;
    let mute = member_at(&store, &GrpcConfig::default(), false, None).await;
    let (theirs, mine) = (create(&mute.engine).await, create(&here.engine).await);
    cancel(&here.engine, theirs).await;
    until(|| here.count("lost") >= 1).await;
    cancel(&mute.engine, mine).await;
    assert_eq!((mute.count("received"), mute.count("sent")), (0, 0));
    assert_eq!((mute.engine.alive(), here.engine.alive()), (1, 1), "nobody was told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_answer_holds_nobody_up_and_what_it_misses_is_counted() {
    let store = store();
    // It takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = member(&store).await;
    let there = member_at(&store, &GrpcConfig::default(), true, Some(silent.local_addr().unwrap())).await;
    for _ in 0..50 {
        let id = create(&there.engine).await;
        let start = Instant::now();
        cancel(&here.engine, id).await;
        assert!(start.elapsed() < DEADLINE / 2, "the cancel waited for nobody");
    }
    until(|| here.count("lost") >= 1).await;
    assert_eq!(there.engine.alive(), 50);
}

#[tokio::test]
async fn a_signal_for_a_node_that_is_gone_is_lost() {
    let store = store();
    let here = member(&store).await;
    let gone = testing::engine(Arc::clone(&store));
    let id = create(&gone).await;
    cancel(&here.engine, id).await;
    until(|| here.count("lost") == 1).await;
    assert_eq!(here.count("sent"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_it_is_known_is_late() {
    let store = store();
    let (here, there) = (member(&store).await, member(&store).await);
    let id = create(&there.engine).await;
    let mut peer = PeerClient::new(Credentials::none().channel(&there.address()).unwrap());
    let mut tell = async |revision, times| {
        let signal = Signal { task_id: id.to_string(), revision, kind: Kind::Run.into() };
        peer.signal(SignalRequest { signals: vec![signal; times] }).await.map(|_| ())
    };
    tell(1, 1).await.unwrap();
    assert_eq!((there.count("received"), there.count("late")), (1, 1));
    assert_eq!(tell(1, MAX_BATCH + 1).await.unwrap_err().code(), Code::InvalidArgument);
    let nonsense = Signal { task_id: "no id".to_owned(), ..Signal::default() };
    let refused = peer.signal(SignalRequest { signals: vec![nonsense] }).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    drop(here);
}

impl Member {
    /// How many signals were `sent`, `lost`, `received`, `late`.
    fn count(&self, what: &str) -> u64 {
        let name = format!("tokkuri_signals_{what}_total");
        let samples = self.engine.metrics().samples();
        samples.iter().find(|sample| sample.name == name).map_or(0, |sample| sample.value as u64)
    }

    fn address(&self) -> String {
        self.serving.as_ref().unwrap().address.to_string()
    }
}
