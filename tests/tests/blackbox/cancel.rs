//! Cancel: at once for the client, promptly for the run, final for both.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::{Client, Reply};

use super::bed;

/// Cancels and asserts that every later read says so.
async fn cancelled(client: &Client, id: &str) -> Reply {
    client.task_cancel(id).await.acknowledged();
    let read = client.task_get(id).await;
    assert_eq!(read.task_status(), "cancelled");
    read
}

#[tokio::test]
async fn a_cancelled_run_goes_no_further_than_its_next_await() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("count", json!({"name": "c", "ms": 60_000})).await;
    client.wait_counter("c", |counter| counter.started == 1).await;
    let read = cancelled(&client, &id).await;
    client.wait_runs(0).await;
    let counter = client.wait_counter("c", |counter| counter.cancelled == 1).await;
    assert_eq!((counter.started, counter.finished), (1, 0));
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

#[tokio::test]
async fn a_cancelled_task_asks_nothing_any_more() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 3, "parallel": true})).await;
    client.wait_questions(&id, &["q1", "q2", "q3"]).await;
    let read = cancelled(&client, &id).await;
    client.task_update(&id, json!({"q1": {"action": "accept", "content": {"name": "late"}}})).await.acknowledged();
    client.wait_runs(0).await;
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

#[tokio::test]
async fn a_blocking_run_that_asks_learns_of_the_cancel() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("block", json!({"ms": 120_000, "poll": true})).await;
    client.wait_runs(1).await;
    let read = cancelled(&client, &id).await;
    client.wait_runs(0).await;
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

#[tokio::test]
async fn what_a_blocking_run_still_returns_is_thrown_away() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("block", json!({"ms": 1500, "poll": false})).await;
    let read = cancelled(&client, &id).await;
    client.wait_runs(0).await;
    tokio::time::sleep(Duration::from_millis(1600)).await; // the run's own time: its result comes whatever we do
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

#[tokio::test]
async fn blocking_runs_do_not_block_the_server() {
    let server = bed().start();
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(client.create("block", json!({"ms": 2000, "poll": false})).await);
    }
    let start = Instant::now();
    client.task_get(&ids[0]).await;
    assert_eq!(client.declaring(json!({})).call_tool("slow", json!({"ms": 10})).await.text(), "done");
    assert!(start.elapsed() < Duration::from_millis(1500), "answered only after {:?}", start.elapsed());
    for id in ids {
        client.wait_status(&id, "completed").await;
    }
}

#[tokio::test]
async fn a_run_with_a_grace_has_that_long() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("stubborn", json!({"ms": 1500})).await;
    client.wait_runs(1).await;
    let start = Instant::now();
    let read = cancelled(&client, &id).await;
    assert_eq!(client.runs().await, 1, "the run is let to use its grace");
    client.wait_runs(0).await;
    assert!(start.elapsed() < Duration::from_secs(10), "the grace ends: {:?}", start.elapsed());
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

/// H05, its end: cancel of what has ended is acknowledged and changes nothing.
#[tokio::test]
async fn cancel_of_an_ended_task_is_acknowledged_and_changes_nothing() {
    let server = bed().start();
    let client = server.client();
    for (tool, arguments) in
        [("slow", json!({"ms": 1})), ("tool_error", json!({})), ("fail", json!({"code": 1, "message": "m"}))]
    {
        let id = client.create(tool, arguments).await;
        let ended = client.wait_end(&id).await;
        for _ in 0..2 {
            client.task_cancel(&id).await.acknowledged();
            assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
        }
    }
    let id = client.create("slow", json!({"ms": 60_000})).await;
    let first = cancelled(&client, &id).await;
    let second = cancelled(&client, &id).await;
    assert_eq!(first.raw(&["result"]), second.raw(&["result"]));
}

/// H06
#[tokio::test]
async fn a_question_that_comes_after_the_cancel_is_dropped_and_the_run_told() {
    let server = bed().start();
    let client = server.client();
    client.hold("before_ask_write").await;
    let id = client.create("ask", json!({"message": "who?"})).await;
    client.wait_held("before_ask_write").await;
    let read = cancelled(&client, &id).await;
    client.release("before_ask_write").await;
    client.wait_runs(0).await;
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

/// H06
#[tokio::test]
async fn a_result_that_comes_after_the_cancel_is_dropped() {
    let server = bed().start();
    let client = server.client();
    client.hold("before_end_write").await;
    let id = client.create("slow", json!({"ms": 10})).await;
    client.wait_held("before_end_write").await;
    assert_eq!(client.task_get(&id).await.task_status(), "working");
    let read = cancelled(&client, &id).await;
    client.release("before_end_write").await;
    client.wait_runs(0).await;
    assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
}

/// The holds themselves: what is held and released without a cancel goes on as if nothing had been.
#[tokio::test]
async fn what_was_held_goes_on_when_it_is_released() {
    let server = bed().start();
    let client = server.client();
    for point in ["before_ask_write", "before_end_write"] {
        client.hold(point).await;
        let id = client.create("ask", json!({"message": "who?"})).await;
        if point == "before_end_write" {
            client.wait_questions(&id, &["ask"]).await;
            client.task_update(&id, json!({"ask": {"action": "decline"}})).await.acknowledged();
        }
        client.wait_held(point).await;
        assert_eq!(client.task_get(&id).await.task_status(), "working");
        client.release(point).await;
        if point == "before_ask_write" {
            client.wait_questions(&id, &["ask"]).await;
            client.task_update(&id, json!({"ask": {"action": "decline"}})).await.acknowledged();
        }
        assert_eq!(client.wait_end(&id).await.task_text(), "declined");
    }
}

#[tokio::test]
async fn a_cancel_reaches_the_run_even_if_every_signal_is_lost() {
    let server = bed().env("TOKKURI_TEST_NO_SIGNALS", 1).setting("tasks.poll_interval_ms", 100).start();
    let client = server.client();
    let id = client.create("count", json!({"name": "c", "ms": 60_000})).await;
    client.wait_counter("c", |counter| counter.started == 1).await;
    cancelled(&client, &id).await;
    client.wait_runs(0).await;
    assert_eq!(client.counter("c").await.finished, 0);
}
