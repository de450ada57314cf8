//! `tokkuri admin drain NODE`, as it is typed before a machine is taken away.

use std::time::Instant;

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, Cluster, DEADLINE, LOOK_AGAIN, Reply};

use super::{WAITING, cluster};

/// What `tokkuri admin nodes` shows of a node; asked at another one.
fn listed(cluster: &Cluster, at: usize, name: &str) -> Value {
    let nodes = cluster.admin_json(at, &["nodes"]);
    let found = nodes.as_array().and_then(|nodes| nodes.iter().find(|node| node["name"] == name));
    found.unwrap_or_else(|| panic!("{name} is not there: {nodes}")).clone()
}

/// Whether it shows of the first node that so many run there and so many wait.
fn has_load(cluster: &Cluster, runs: u64, queued: u64) -> bool {
    let node = listed(cluster, 1, "a");
    (&node["runs"], &node["queued"]) == (&json!(runs), &json!(queued))
}

/// Its row in the table.
fn row(cluster: &Cluster, at: usize, name: &str) -> String {
    let table = cluster.admin(at, &["nodes"]);
    let row = table.lines().find(|line| line.trim_end_matches('*').starts_with(name));
    row.unwrap_or_else(|| panic!("{name} is not there: {table}")).to_owned()
}

/// Waits for a state that no probe tells.
async fn until(what: &str, is: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < DEADLINE, "waited for {what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// A refusal that tells a balancer, or the client, to try again soon.
fn closed(reply: &Reply) {
    let error = reply.refused(503, -32603);
    assert!(error["message"].as_str().is_some_and(|it| it.contains("Try again")), "{}", reply.body);
    assert_eq!(error["data"]["retryAfterMs"], 1000);
    assert_eq!(reply.headers["retry-after"], "1");
}

/// A task, by whichever node takes it: one that drains is asked in its turn, and says so.
async fn create_in_turn(balanced: &Client, nodes: usize) -> String {
    for _ in 0..nodes {
        let reply = balanced.call_tool("slow", json!({"ms": 1})).await;
        match reply.status {
            503 => closed(&reply),
            _ => return reply.task_id(),
        }
    }
    panic!("no node takes it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_takes_nothing_new_lets_what_runs_end_and_gives_away_what_it_can() {
    let cluster = cluster().setting("tasks.max_runs", 2).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    // Two run, two wait for a place.
    let once = a.create("gate", json!({"name": "g"})).await;
    let again = a.create("restartable_ask", json!({"name": "asks", "n": 2})).await;
    a.wait_questions(&again, &["q1"]).await;
    b.task_update(&again, json!({"q1": accept(json!({"name": "Ada"}))})).await.acknowledged();
    a.wait_questions(&again, &["q2"]).await;
    a.wait_runs(2).await;
    let queued = [
        a.create("count", json!({"name": "queued", "ms": 1})).await,
        a.create("restartable", json!({"name": "queued", "ms": 1})).await,
    ];
    for id in &queued {
        assert_eq!(a.task_get(id).await.result()["statusMessage"], WAITING);
    }
    until("its load", async || has_load(&cluster, 2, 2)).await;

    let said = cluster.admin(1, &["drain", "a", "--deadline", "1h"]);
    assert!(said.starts_with("a (") && said.contains("is told to take no new runs"), "{said}");
    assert!(row(&cluster, 1, "a").contains("draining, hands over in "));
    assert!(!row(&cluster, 1, "b").contains("draining"));
    // What waits goes elsewhere at once, and runs there for the first time.
    for id in &queued {
        assert_eq!(b.wait_end(id).await.task_text(), "counted");
        let task = cluster.admin_json(0, &["task", id]);
        assert_eq!((&task["node"]["name"], &task["attempt"]), (&json!("b"), &json!(3)), "given away, and taken");
    }
    assert_eq!((a.counter("queued").await.started, b.counter("queued").await.finished), (0, 2));
    // It takes nothing new, and says who could; what is not a task it still does.
    closed(&a.call_tool("slow", json!({"ms": 1})).await);
    assert_eq!(cluster.node(0).admin_get("/readyz", &[]).await.status, 503);
    assert_eq!(cluster.node(1).admin_get("/readyz", &[]).await.status, 200);
    let balanced = cluster.balanced();
    for _ in 0..10 {
        let id = create_in_turn(&balanced, 2).await;
        assert_eq!(cluster.admin_json(0, &["task", &id])["node"]["name"], "b");
        assert_eq!(a.wait_end(&id).await.task_text(), "done");
    }
    // What runs goes on there, until the deadline what may run again as well.
    assert_eq!(a.runs().await, 2);
    assert_eq!(b.counter("asks").await.started, 0);
    cluster.admin(0, &["drain", "a", "--deadline", "200ms"]);
    b.wait_counter("asks", |counter| counter.started == 1).await;
    b.wait_questions(&again, &["q2"]).await;
    a.task_update(&again, json!({"q2": accept(json!({"name": "Bob"}))})).await.acknowledged();
    assert_eq!(b.wait_end(&again).await.task_text(), "Ada,Bob", "with the answer that the first attempt had");
    let task = cluster.admin_json(1, &["task", &again]);
    assert_eq!((&task["node"]["name"], &task["attempt"]), (&json!("b"), &json!(3)));
    assert_eq!(a.counter("asks").await.finished, 0);
    assert_eq!(a.runs().await, 1);
    a.open("g").await;
    let ended = b.wait_end(&once).await;
    assert_eq!(ended.task_status(), "completed", "{}", ended.body);
    let task = cluster.admin_json(1, &["task", &once]);
    assert_eq!((&task["node"]["name"], &task["attempt"]), (&json!("a"), &json!(1)));
    a.wait_runs(0).await;
    until("it to be drained", async || listed(&cluster, 1, "a")["drained"] == true).await;
    let row = row(&cluster, 1, "a");
    assert!(row.contains(" drained "), "{row}");

    let said = cluster.admin(1, &["undrain", "a"]);
    assert!(said.starts_with("a (") && said.contains("takes runs"), "{said}");
    assert!(listed(&cluster, 0, "a").get("drain").is_none());
    until("a to take tasks again", async || cluster.node(0).admin_get("/readyz", &[]).await.status == 200).await;
    let id = a.create("slow", json!({"ms": 1})).await;
    assert_eq!(b.wait_end(&id).await.task_text(), "done");
    assert_eq!(cluster.admin_json(1, &["task", &id])["node"]["name"], "a");
}

/// An operator drains it, waits until nothing runs there, and stops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_drained_can_be_stopped_and_nothing_is_lost() {
    let mut cluster = cluster().setting("tasks.max_runs", 2).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let mut tasks = vec![a.create("gate", json!({"name": "g"})).await];
    let again = a.create("restartable_ask", json!({"name": "asks", "n": 1})).await;
    a.wait_questions(&again, &["q1"]).await;
    for tool in ["count", "restartable", "count"] {
        tasks.push(a.create(tool, json!({"name": "waits", "ms": 1})).await);
    }
    until("its load", async || has_load(&cluster, 2, 3)).await;
    cluster.admin(0, &["drain", "a", "--deadline", "0s"]);
    a.open("g").await;
    until("it to be drained", async || listed(&cluster, 1, "a")["drained"] == true).await;
    cluster.kill(0).await;
    b.wait_questions(&again, &["q1"]).await;
    b.task_update(&again, json!({"q1": accept(json!({"name": "Ada"}))})).await.acknowledged();
    tasks.push(again);
    for id in &tasks {
        let ended = b.wait_end(id).await;
        assert_eq!(ended.task_status(), "completed", "{}", ended.body);
    }
}
