//! H19: a node is killed. Its tasks end or run again within its lease and one sweep; those of others are not touched.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, Cluster, Reply};

use super::cluster;

const LEASE: Duration = Duration::from_secs(2);

pub(super) fn short_lease() -> tokkuri_tests::harness::cluster::Options {
    cluster().lease_ms(2000)
}

/// Asserts that the run of this task was lost with its server, and that the task says so.
pub(super) fn was_lost(read: &Reply) {
    let result = read.result();
    assert_eq!((read.task_status(), &result["error"]["code"]), ("failed", &json!(-32603)), "{}", read.body);
    let why = result["statusMessage"].as_str().expect("a failed task says why");
    assert!(why.contains("server"), "{why}");
    assert_eq!(result["error"]["message"], why);
}

/// Sums the counter over the nodes that are up.
pub(super) async fn counted(cluster: &Cluster, name: &str) -> (u64, u64) {
    let counter = cluster.balanced().counter(name).await;
    (counter.started, counter.finished)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tasks_of_a_node_that_is_killed_end_or_run_again() {
    let mut cluster = short_lease().start(3);
    let (a, b, c) = (cluster.client(0), cluster.client(1), cluster.client(2));
    let done = a.create("nul", json!({})).await;
    let completed = a.wait_status(&done, "completed").await;
    let stopped = a.create("slow", json!({"ms": 60_000})).await;
    a.task_cancel(&stopped).await.acknowledged();
    let cancelled = a.task_get(&stopped).await;
    let working = a.create("slow", json!({"ms": 60_000})).await;
    let asking = a.create("ask", json!({"message": "Who?"})).await;
    let wrapped = a.create("wrapped_slow", json!({"ms": 60_000})).await;
    let again = a.create("restartable", json!({"name": "again", "ms": 1000})).await;
    a.wait_counter("again", |counter| counter.started == 1).await;
    let asks_again = a.create("restartable_ask", json!({"name": "asks", "n": 2})).await;
    a.wait_questions(&asks_again, &["q1"]).await;
    b.task_update(&asks_again, json!({"q1": accept(json!({"name": "Ada"}))})).await.acknowledged();
    a.wait_questions(&asks_again, &["q2"]).await;
    a.wait_questions(&asking, &["ask"]).await;
    // Of another node, alive.
    let others = c.create("slow", json!({"ms": 600_000})).await;
    // Stored, and its reply on no wire yet.
    a.hold("before_reply").await;
    let mut unanswered = Connection::open(cluster.node(0).http()).await;
    unanswered.write(&a.tool("count", json!({"name": "unanswered", "ms": 60_000})).to_http()).await;
    a.wait_held("before_reply").await;

    cluster.kill(0).await;
    let killed = Instant::now();
    // What had ended is as it was, at once and byte for byte, lone surrogates and large numbers included.
    for client in [&b, &c] {
        assert_eq!(client.task_get(&done).await.raw(&["result"]), completed.raw(&["result"]));
        assert_eq!(client.task_get(&stopped).await.raw(&["result"]), cancelled.raw(&["result"]));
    }
    for id in [&working, &asking, &wrapped] {
        was_lost(&b.wait_end(id).await);
    }
    println!("lost tasks have ended {:?} after the kill; the lease is {LEASE:?}", killed.elapsed());
    assert_eq!(c.wait_end(&again).await.task_text(), "counted");
    c.wait_questions(&asks_again, &["q2"]).await;
    c.task_update(&asks_again, json!({"q2": accept(json!({"name": "Bob"}))})).await.acknowledged();
    assert_eq!(b.wait_end(&asks_again).await.task_text(), "Ada,Bob");
    assert_eq!(counted(&cluster, "again").await, (1, 1), "one new attempt");
    assert_eq!(counted(&cluster, "asks").await, (1, 1), "one new attempt");
    assert_eq!(counted(&cluster, "unanswered").await, (0, 0));
    assert_eq!(b.task_get(&others).await.task_status(), "working");

    // It comes back, and touches nothing of what others run.
    cluster.start(0);
    let a = cluster.client(0);
    assert_eq!(a.task_get(&done).await.raw(&["result"]), completed.raw(&["result"]));
    for id in [&working, &asking, &wrapped] {
        was_lost(&a.task_get(id).await);
    }
    assert_eq!(a.task_get(&others).await.task_status(), "working");
    a.task_cancel(&others).await.acknowledged();
    c.wait_runs(0).await;
}

/// Whoever comes first after all nodes were killed takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_all_nodes_were_killed_nothing_works_for_ever() {
    let mut cluster = short_lease().start(2);
    let mut tasks = Vec::new();
    for node in 0..2 {
        tasks.push(cluster.client(node).create("slow", json!({"ms": 60_000})).await);
    }
    let again = cluster.client(1).create("restartable", json!({"name": "again", "ms": 100_000})).await;
    cluster.client(1).wait_counter("again", |counter| counter.started == 1).await;
    cluster.kill(0).await;
    cluster.kill(1).await;
    cluster.start(1);
    let client = cluster.client(1);
    for id in &tasks {
        was_lost(&client.wait_end(id).await);
    }
    client.wait_counter("again", |counter| counter.started == 1).await;
    assert_eq!(client.task_get(&again).await.task_status(), "working");
}

/// Nodes that start at once on a database that has nothing yet, and again on one that has everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_make_one_database() {
    let cluster = cluster().start(5);
    let id = cluster.client(0).create("slow", json!({"ms": 1})).await;
    for node in 0..5 {
        cluster.client(node).wait_end(&id).await;
    }
    let second = super::cluster().on(cluster.database().to_owned()).start(3);
    assert_eq!(second.client(2).task_get(&id).await.task_status(), "completed");
}

/// A node that starts while others run tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_touches_nothing() {
    let first = cluster().start(1);
    let client: Client = first.client(0);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(client.create("slow", json!({"ms": 600_000})).await);
    }
    for _ in 0..3 {
        let more = cluster().on(first.database().to_owned()).start(2);
        for id in &tasks {
            assert_eq!(more.client(1).task_get(id).await.task_status(), "working");
        }
    }
    assert_eq!(client.runs().await, 5);
}
