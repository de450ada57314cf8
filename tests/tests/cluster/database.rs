//! Postgres goes, stands still, and comes back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, DEADLINE, LOOK_AGAIN, Postgres, Reply};

use super::cluster;
use super::lost::was_lost;

/// Sends until it is answered with a result; until then there may be errors that say to try again, and nothing else.
async fn until_answered(client: &Client, method: &str, params: Value) -> Reply {
    let start = Instant::now();
    loop {
        let reply = client.request(method, params.clone()).await;
        if reply.message.get("result").is_some() {
            return reply;
        }
        assert!(reply.body.contains("Try again"), "a clear error that says to try again: {}", reply.body);
        assert!(start.elapsed() < DEADLINE, "{}", reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn ended(client: &Client, id: &str) -> Reply {
    let start = Instant::now();
    loop {
        let reply = until_answered(client, "tasks/get", json!({"taskId": id})).await;
        if tokkuri_tests::harness::is_terminal(reply.task_status()) {
            return reply;
        }
        assert!(start.elapsed() < DEADLINE, "{}", reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_while_postgres_restarts_and_crashes() {
    let postgres = Postgres::start();
    let cluster = cluster().on(postgres.url()).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    for fault in [Postgres::stop, Postgres::kill] {
        // One ends while Postgres is away, one after it is back, one is asked something by then.
        let during = a.create("slow", json!({"ms": 300})).await;
        let after = a.create("slow", json!({"ms": 3000})).await;
        let done = a.create("nul", json!({})).await;
        let before = ended(&a, &done).await;
        fault(&postgres);
        let refused = b.request("tasks/get", json!({"taskId": done})).await;
        assert!(refused.error()["message"].as_str().unwrap().contains("Try again"), "{}", refused.body);
        assert_eq!(refused.error()["code"], -32603);
        let refused = a.call_tool("slow", json!({"ms": 1})).await;
        assert!(refused.error()["message"].as_str().unwrap().contains("Try again"), "{}", refused.body);
        // It ends meanwhile, and cannot say so.
        tokio::time::sleep(Duration::from_millis(500)).await;
        postgres.resume_service();
        for id in [&during, &after] {
            assert_eq!(ended(&b, id).await.task_text(), "done", "a run is not lost with a connection");
        }
        assert_eq!(
            until_answered(&b, "tasks/get", json!({"taskId": done})).await.raw(&["result"]),
            before.raw(&["result"])
        );
        // And a cancel crosses nodes as before.
        let id =
            until_answered(&a, "tools/call", json!({"name": "slow", "arguments": {"ms": 600_000}})).await.task_id();
        until_answered(&b, "tasks/cancel", json!({"taskId": id})).await.acknowledged();
        a.wait_runs(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_within_the_lease_loses_nothing() {
    let postgres = Postgres::start();
    let cluster = cluster().on(postgres.url()).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let id = a.create("slow", json!({"ms": 300})).await;
    let asking = a.create("ask", json!({"message": "Who?"})).await;
    b.wait_questions(&asking, &["ask"]).await;
    postgres.pause();
    let cancel = tokio::spawn({
        let (b, asking) = (b.clone(), asking.clone());
        async move { until_answered(&b, "tasks/cancel", json!({"taskId": asking})).await }
    });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    postgres.resume();
    assert_eq!(ended(&b, &id).await.task_text(), "done");
    cancel.await.unwrap().acknowledged();
    for client in [&a, &b] {
        assert_eq!(until_answered(client, "tasks/get", json!({"taskId": asking})).await.task_status(), "cancelled");
    }
    a.wait_runs(0).await;
}

/// Every node's lease runs out by its own clock, and each begins again as another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_past_the_lease_ends_what_ran_or_has_it_run_again() {
    let postgres = Postgres::start();
    let cluster = cluster().lease_ms(2000).on(postgres.url()).start(2);
    let clients = [0, 1].map(|node| cluster.client(node));
    let done = clients[0].create("nul", json!({})).await;
    let before = ended(&clients[0], &done).await;
    let mut tasks = Vec::new();
    for client in &clients {
        let once = client.create("slow", json!({"ms": 600_000})).await;
        let again = client.create("restartable_ask", json!({"name": "again", "n": 2})).await;
        client.wait_questions(&again, &["q1"]).await;
        let answers = json!({"q1": accept(json!({"name": "Ada"}))});
        client.task_update(&again, answers).await.acknowledged();
        client.wait_questions(&again, &["q2"]).await;
        tasks.push((once, again));
    }
    postgres.pause();
    for client in &clients {
        client.wait_runs(0).await;
    }
    postgres.resume();
    for (client, (once, again)) in clients.iter().zip(&tasks) {
        was_lost(&ended(client, once).await);
        let answers = json!({"q2": accept(json!({"name": "Bob"}))});
        let answers = json!({"taskId": again, "inputResponses": answers});
        until_answered(client, "tasks/update", answers).await.acknowledged();
        assert_eq!(ended(client, again).await.task_text(), "Ada,Bob");
    }
    let counter = cluster.balanced().counter("again").await;
    assert_eq!((counter.started, counter.finished), (4, 2), "each twice, with the answers that it had");
    for client in &clients {
        let read = until_answered(client, "tasks/get", json!({"taskId": done})).await;
        assert_eq!(read.raw(&["result"]), before.raw(&["result"]));
        client.wait_runs(0).await;
    }
}

/// The tool is told nothing of the store's absence: its question is stored once that is possible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_asks_while_postgres_is_away_goes_on_asking() {
    let postgres = Postgres::start();
    let cluster = cluster().on(postgres.url()).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    a.hold("before_ask_write").await;
    let id = a.create("ask", json!({"message": "Who?"})).await;
    a.wait_held("before_ask_write").await;
    postgres.kill();
    a.release("before_ask_write").await;
    // It asks meanwhile, and cannot.
    tokio::time::sleep(Duration::from_millis(300)).await;
    postgres.resume_service();
    let start = Instant::now();
    while until_answered(&b, "tasks/get", json!({"taskId": id})).await.questions() != ["ask"] {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let answers = json!({"ask": {"action": "accept", "content": {"name": "Ada"}}});
    until_answered(&b, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await.acknowledged();
    assert_eq!(ended(&b, &id).await.task_text(), "hello Ada");
}
