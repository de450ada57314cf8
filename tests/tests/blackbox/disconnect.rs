//! Connections that end: before the answer, and after it.

use serde_json::json;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, Server, caps};

use super::bed;

/// Sends a call and hangs up, without an answer, once `ready` is done.
async fn hang_up(server: &Server, client: &Client, tool: &str, ms: u64, ready: impl Future<Output = ()>) {
    let mut connection = Connection::open(server.http()).await;
    connection.write(&client.tool(tool, json!({"name": "c", "ms": ms})).to_http()).await;
    ready.await;
    drop(connection);
}

/// H04
#[tokio::test]
async fn a_task_does_not_die_with_the_connection_that_made_it() {
    let server = bed().start();
    let client = server.client();
    let mut connection = Connection::open(server.http()).await;
    let reply = connection.exchange(&client.tool("slow", json!({"ms": 2000})).to_http()).await;
    let id = reply.message()["result"]["taskId"].as_str().expect("a task").to_owned();
    drop(connection);
    assert_eq!(client.wait_status(&id, "completed").await.task_text(), "done");
}

#[tokio::test]
async fn a_task_whose_reply_nobody_reads_is_cancelled() {
    let server = bed().setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    client.hold("before_reply").await;
    hang_up(&server, &client, "count", 60_000, client.wait_held("before_reply")).await;
    client.release("before_reply").await;
    client.wait_runs(0).await;
    assert_eq!(client.counter("c").await.finished, 0);
    // Its place is free: with a limit of one, a required tool gets a task.
    client.create("slow_required", json!({"ms": 1})).await;
}

#[tokio::test]
async fn a_task_whose_client_left_before_its_run_was_registered_is_cancelled() {
    let server = bed().setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    client.hold("before_register").await;
    // The reply, too, is held here or comes after: only a client that is gone before the create ends leaves an orphan.
    client.hold("before_reply").await;
    hang_up(&server, &client, "count", 60_000, client.wait_held("before_register")).await;
    client.release("before_register").await;
    client.release("before_reply").await;
    client.wait_runs(0).await;
    assert_eq!(client.counter("c").await.finished, 0);
    client.create("slow_required", json!({"ms": 1})).await;
}

#[tokio::test]
async fn a_call_in_the_request_ends_with_its_client() {
    let server = bed().start();
    let client = server.client();
    let undeclaring = client.declaring(caps::without_tasks());
    let started = async {
        client.wait_counter("c", |counter| counter.started == 1).await;
    };
    hang_up(&server, &undeclaring, "count", 60_000, started).await;
    let counter = client.wait_counter("c", |counter| counter.cancelled == 1).await;
    assert_eq!((counter.started, counter.finished), (1, 0));
}

#[tokio::test]
async fn half_a_request_disturbs_nobody() {
    let server = bed().start();
    let client = server.client();
    let whole = client.tool("count", json!({"name": "c", "ms": 1})).to_http();
    for n in [1, 10, whole.len() / 2, whole.len() - 1] {
        let mut connection = Connection::open(server.http()).await;
        connection.write(&whole[..n]).await;
        drop(connection);
    }
    assert_eq!(client.counter("c").await.started, 0);
    client.create("slow", json!({"ms": 1})).await;
}
