//! A node that is cut off from its peers, or from the database.

use std::time::Duration;

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::proxy::Mode;
use tokkuri_tests::harness::{Client, DEADLINE, LOOK_AGAIN};

use super::{POLL, cluster};

/// With signals lost by the network this time, and notifications off so that they do not help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_its_peers_cannot_reach_learns_from_the_database() {
    let cluster = cluster().without_notify().proxied().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    for mode in [Mode::Cut, Mode::BlackHole, Mode::Delay(5 * POLL), Mode::Pass] {
        cluster.peer_line(0).set(mode);
        let cancelled = a.create("slow", json!({"ms": 600_000})).await;
        let asked = a.create("ask", json!({"message": "Who?"})).await;
        b.wait_questions(&asked, &["ask"]).await;
        let mut stream = b.follow(&[&asked]).await;
        b.task_update(&asked, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
        b.task_cancel(&cancelled).await.acknowledged();
        assert_eq!(a.task_get(&cancelled).await.task_status(), "cancelled");
        assert_eq!(stream.to_the_end().await.last().unwrap()["status"], "completed", "{mode:?}");
        a.wait_runs(0).await;
        cluster.peer_line(0).heal();
    }
}

/// It cannot say so to anybody who asks for a task, but it stops its runs by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_reach_the_database_stops_its_runs() {
    let cluster = cluster().lease_ms(2000).proxied().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    for mode in [Mode::Cut, Mode::BlackHole] {
        let name = format!("{mode:?}");
        let lost = once_it_creates(&a, "slow", json!({"ms": 600_000})).await;
        let again = once_it_creates(&a, "restartable", json!({"name": name, "ms": 600_000})).await;
        a.wait_counter(&name, |counter| counter.started == 1).await;
        let done = b.create("slow", json!({"ms": 1})).await;
        b.wait_end(&done).await;
        cluster.database_line(0).set(mode);
        assert_eq!(b.wait_end(&lost).await.task_status(), "failed");
        b.wait_counter(&name, |counter| counter.started == 1).await;
        a.wait_runs(0).await;
        assert_eq!(a.counter(&name).await.finished, 0);
        cluster.database_line(0).heal();
        // It is a node again, and has lost nothing of what it can read.
        let read = once_it_answers(&a, &done).await;
        assert_eq!(read, "completed");
        assert_eq!(once_it_answers(&a, &lost).await, "failed");
        assert_eq!(once_it_answers(&a, &again).await, "working");
        assert_eq!(b.counter(&name).await.lost, 0);
        b.task_cancel(&again).await.acknowledged();
        b.wait_runs(0).await;
    }
}

/// A slow database is a slow database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_way_to_the_database_loses_nothing() {
    let cluster = cluster().proxied().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    cluster.database_line(0).set(Mode::Delay(Duration::from_millis(50)));
    let id = a.create("ask_many", json!({"n": 2, "parallel": true})).await;
    b.wait_questions(&id, &["q1", "q2"]).await;
    b.task_update(&id, json!({"q1": accept(json!({"name": "a"})), "q2": accept(json!({"name": "b"}))}))
        .await
        .acknowledged();
    assert_eq!(a.wait_end(&id).await.task_text(), "a,b");
}

/// A task at a node that may have to become a node of the cluster again first.
pub(super) async fn once_it_creates(client: &Client, tool: &str, arguments: Value) -> String {
    let start = std::time::Instant::now();
    loop {
        let reply = client.tool(tool, arguments.clone()).try_send_amid_faults().await.unwrap();
        if reply.message.get("result").is_some() {
            return reply.task_id();
        }
        assert!(reply.body.contains("Try again") && start.elapsed() < DEADLINE, "{}", reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn once_it_answers(client: &Client, id: &str) -> String {
    let start = std::time::Instant::now();
    loop {
        let reply = client.task_get(id).await;
        if reply.message.get("result").is_some() {
            return reply.task_status().to_owned();
        }
        assert!(reply.body.contains("Try again") && start.elapsed() < DEADLINE, "{}", reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
