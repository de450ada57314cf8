//! `tasks.max_runs`: tasks that wait for a place to run.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, Reply};

use super::bed;

const WAITS: &str = "Waiting for a free place to run.";

fn says(reply: &Reply) -> Option<&str> {
    reply.result()["statusMessage"].as_str()
}

async fn gate(client: &Client, name: &str) -> String {
    let reply = client.call_tool("gate", json!({"name": name})).await;
    assert_eq!(says(&reply), None, "it has a place: {}", reply.body);
    reply.task_id()
}

async fn queued(client: &Client, name: &str) -> String {
    let reply = client.call_tool("count", json!({"name": name, "ms": 1})).await;
    assert_eq!((reply.task_status(), says(&reply)), ("working", Some(WAITS)), "{}", reply.body);
    let id = reply.task_id();
    let reply = client.task_get(&id).await;
    assert_eq!((reply.task_status(), says(&reply)), ("working", Some(WAITS)), "{}", reply.body);
    id
}

#[tokio::test]
async fn a_task_beyond_the_limit_waits_says_so_and_runs_once_there_is_a_place() {
    let server = bed().setting("tasks.max_runs", 2).start();
    let client = server.near();
    gate(&client, "a").await;
    gate(&client, "b").await;
    let first = queued(&client, "first").await;
    let second = queued(&client, "second").await;
    assert_eq!((client.counter("first").await.started, client.runs().await), (0, 2));
    client.open("a").await;
    for id in [first, second] {
        let end = client.wait_status(&id, "completed").await;
        assert_ne!(says(&end), Some(WAITS), "it does not wait any more: {}", end.body);
    }
    client.open("b").await;
    gate(&client, "c").await;
}

#[tokio::test]
async fn a_running_task_does_not_say_that_it_waits() {
    let server = bed().setting("tasks.max_runs", 1).start();
    let client = server.near();
    gate(&client, "a").await;
    let reply = client.call_tool("gate", json!({"name": "b"})).await;
    assert_eq!(says(&reply), Some(WAITS));
    client.open("a").await;
    let id = reply.task_id();
    client.wait(&id, "its run", |reply| says(reply).is_none()).await;
    assert_eq!(client.task_get(&id).await.task_status(), "working");
}

#[tokio::test]
async fn a_cancelled_or_expired_task_of_the_queue_never_starts() {
    let server = bed().setting("tasks.max_runs", 1).setting("tasks.ttl_ms", 60_000).start();
    let client = server.near();
    gate(&client, "a").await;
    let cancelled = queued(&client, "cancelled").await;
    let kept = queued(&client, "kept").await;
    client.task_cancel(&cancelled).await.acknowledged();
    client.open("a").await;
    client.wait_status(&kept, "completed").await;
    assert_eq!(client.counter("cancelled").await.started, 0);
    assert_eq!(client.task_get(&cancelled).await.task_status(), "cancelled");
    drop(server);

    let server = bed().setting("tasks.max_runs", 1).setting("tasks.ttl_ms", 400).start();
    let client = server.near();
    // The one that runs has a place for as long as its grace takes, whatever becomes of its task.
    client.create("stubborn", json!({"ms": 1500})).await;
    let expired = queued(&client, "expired").await;
    client.wait_gone(&expired).await;
    client.wait_runs(0).await;
    assert_eq!(client.counter("expired").await.started, 0);
}

#[tokio::test]
async fn calls_in_the_request_do_not_queue() {
    let server = bed().setting("tasks.max_runs", 1).start();
    let client = server.near();
    gate(&client, "a").await;
    let inline = client.declaring(json!({}));
    assert_eq!(inline.call_tool("slow", json!({"ms": 10})).await.text(), "done");
}

#[tokio::test]
async fn every_queued_task_ends_although_others_are_cancelled_on_the_way() {
    let server = bed().setting("tasks.max_runs", 3).start();
    let client = server.near();
    let creates = (0..60).map(|_| client.create("count", json!({"name": "c", "ms": 5})));
    let ids = futures_util::future::join_all(creates).await;
    let cancels = ids.iter().step_by(3).map(|id| client.task_cancel(id));
    for ack in futures_util::future::join_all(cancels).await {
        ack.acknowledged();
    }
    let mut completed = 0;
    for id in &ids {
        completed += u64::from(client.wait_end(id).await.task_status() == "completed");
    }
    client.wait_runs(0).await;
    let counter = client.counter("c").await;
    assert!((40..=60).contains(&completed), "{completed}");
    assert!(counter.finished >= completed && counter.started <= 60, "{counter:?}");
    // All places are free again.
    for name in ["a", "b", "c"] {
        gate(&client, name).await;
    }
}

#[tokio::test]
async fn a_restart_of_the_server_fails_what_was_queued_and_says_why() {
    let mut server = bed().setting("tasks.max_runs", 1).setting("server.shutdown_ms", 100).start();
    let client = server.near();
    gate(&client, "a").await;
    queued(&client, "never").await;
    server.terminate(std::time::Duration::from_secs(10)).await;
}

/// A body that never asks whether it was cancelled goes on: its task is over, its thread is not.
#[tokio::test]
async fn a_cancelled_run_has_its_place_until_its_thread_has_ended() {
    const BLOCKED: u64 = 2_000;
    let server = bed().setting("tasks.max_runs", 1).start();
    let client = server.near();
    let start = Instant::now();
    let blocking = client.create("block", json!({"ms": BLOCKED})).await;
    client.wait_runs(1).await;
    let next = queued(&client, "next").await;
    client.task_cancel(&blocking).await.acknowledged();
    assert_eq!(client.task_get(&blocking).await.task_status(), "cancelled", "the task is over at once");
    assert_eq!(says(&client.task_get(&next).await), Some(WAITS));
    assert_eq!(client.wait_end(&next).await.task_text(), "counted");
    assert!(start.elapsed() >= Duration::from_millis(BLOCKED), "it had the place of a thread that was still there");
    assert_eq!(client.task_get(&blocking).await.task_status(), "cancelled", "what it returned then is nobody's");
}

#[tokio::test]
async fn a_blocking_run_that_looks_gives_its_place_up_at_once() {
    let server = bed().setting("tasks.max_runs", 1).start();
    let client = server.near();
    let blocking = client.create("block", json!({"ms": 600_000, "poll": true})).await;
    let next = queued(&client, "next").await;
    client.task_cancel(&blocking).await.acknowledged();
    assert_eq!(client.wait_end(&next).await.task_text(), "counted");
}

#[tokio::test]
async fn creating_and_cancelling_over_and_over_does_not_pass_the_limit() {
    const RUNS: u64 = 3;
    let server = bed().setting("tasks.max_runs", RUNS).setting("tasks.max_per_principal", 5).start();
    let client = server.near();
    let mut most = 0;
    for _ in 0..40 {
        let id = client.create("block", json!({"ms": 1_000})).await;
        client.task_cancel(&id).await.acknowledged();
        most = most.max(client.runs().await);
    }
    assert!((1..=RUNS).contains(&most), "{most} threads");
    client.wait_runs(0).await;
    gate(&client, "a").await;
}

#[tokio::test]
async fn threads_that_tools_block_are_limited_whoever_waits_for_one_says_so_and_what_does_not_block_goes_on() {
    let server = bed().setting("tasks.max_blocking_threads", 1).start();
    let client = server.near();
    let first = client.create("block", json!({"ms": 600_000, "poll": true})).await;
    client.wait_runs(1).await;
    let second = client.create("block", json!({"ms": 1, "poll": true})).await;
    // It would outlive the test.
    let cancelled = client.create("block", json!({"ms": 600_000})).await;
    for id in [&second, &cancelled] {
        client.wait(id, "that it waits", |reply| says(reply) == Some(WAITS)).await;
    }
    assert_eq!(client.create("count", json!({"name": "c"})).await.len(), 24);
    client.wait_counter("c", |counter| counter.finished == 1).await;
    client.task_cancel(&cancelled).await.acknowledged();
    assert_eq!(client.task_get(&cancelled).await.task_status(), "cancelled");
    assert_eq!(client.runs().await, 1);
    client.task_cancel(&first).await.acknowledged();
    let end = client.wait_end(&second).await;
    assert_eq!((end.task_text(), says(&end)), ("done", None));
    client.wait_runs(0).await;
}

#[tokio::test]
async fn threads_of_calls_that_nobody_waits_for_any_more_are_limited_too() {
    const THREADS: u64 = 2;
    let server = bed().setting("tasks.max_blocking_threads", THREADS).start();
    let client = server.near();
    let call = client.declaring(json!({})).tool("block", json!({"ms": 1_500})).to_http();
    let mut most = 0;
    for _ in 0..10 {
        let mut connection = Connection::open(server.http()).await;
        connection.write(&call).await;
        // Some have begun by then, some have not.
        most = most.max(client.runs().await);
        drop(connection);
    }
    most = most.max(client.runs().await);
    assert!((1..=THREADS).contains(&most), "{most} threads");
    client.wait_runs(0).await;
    assert_eq!(client.declaring(json!({})).call_tool("block", json!({"ms": 1})).await.text(), "done");
}
