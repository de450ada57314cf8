//! The limit of live tasks per owner.

use std::time::Instant;

use serde_json::json;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, DEADLINE, LOOK_AGAIN, Reply};

use super::bed;

fn refused(reply: &Reply, limit: u64) {
    let message = reply.refused(200, -32600)["message"].as_str().unwrap();
    assert!(message.contains(&limit.to_string()), "the message says the limit: {message}");
}

async fn fill(client: &Client, n: u64) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..n {
        ids.push(client.create("gate", json!({"name": format!("g{n}")})).await);
    }
    ids
}

/// Creates a required task as soon as there is a place.
async fn wait_for_a_place(client: &Client) -> String {
    let start = Instant::now();
    loop {
        let reply = client.call_tool("slow_required", json!({"ms": 60_000})).await;
        if reply.message.get("result").is_some() {
            return reply.task_id();
        }
        assert!(start.elapsed() < DEADLINE, "no place: {}", reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::test]
async fn at_the_limit_an_optional_tool_runs_in_the_request_and_a_required_one_is_refused() {
    let server = bed().setting("tasks.max_per_principal", 3).start();
    let client = server.client();
    fill(&client, 3).await;
    assert_eq!(client.call_tool("slow", json!({"ms": 10})).await.text(), "done");
    refused(&client.call_tool("slow_required", json!({"ms": 10})).await, 3);
    client.open("g0").await;
    let id = wait_for_a_place(&client).await;
    client.task_cancel(&id).await.acknowledged();
}

#[tokio::test]
async fn every_kind_of_end_frees_one_place() {
    let server = bed().setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    for (tool, arguments) in [
        ("slow", json!({"ms": 1})),
        ("tool_error", json!({})),
        ("fail", json!({"code": 1, "message": "m"})),
        ("boom", json!({"stage": "start"})),
    ] {
        let id = client.create(tool, arguments).await;
        client.wait_end(&id).await;
        let id = client.create("slow_required", json!({"ms": 60_000})).await;
        refused(&client.call_tool("slow_required", json!({"ms": 1})).await, 1);
        client.task_cancel(&id).await.acknowledged();
        // An end that is told twice must not free two places.
        client.task_cancel(&id).await.acknowledged();
        let id = client.create("slow_required", json!({"ms": 60_000})).await;
        refused(&client.call_tool("slow_required", json!({"ms": 1})).await, 1);
        client.task_cancel(&id).await.acknowledged();
    }
}

#[tokio::test]
async fn of_many_creates_at_once_only_so_many_get_a_place() {
    let server = bed().setting("tasks.max_per_principal", 5).start();
    let client = server.client();
    for _ in 0..5 {
        let calls = (0..20).map(|_| client.call_tool("slow_required", json!({"ms": 60_000})));
        let replies = futures_util::future::join_all(calls).await;
        let (created, others): (Vec<_>, Vec<_>) =
            replies.iter().partition(|reply| reply.message.get("result").is_some());
        assert_eq!(created.len(), 5);
        for reply in others {
            refused(reply, 5);
        }
        for reply in created {
            client.task_cancel(&reply.task_id()).await.acknowledged();
        }
    }
    client.wait_runs(0).await;
}

#[tokio::test]
async fn a_tool_that_prepares_runs_in_the_request_at_the_limit() {
    let server = bed().setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    fill(&client, 1).await;
    let asked = client.call_tool("prepare_ask", json!({})).await;
    assert_eq!(asked.questions(), ["user"], "{}", asked.body);
    let call =
        client.tool("prepare_ask", json!({})).param("inputResponses", json!({"user": accept(json!({"name": "Ada"}))}));
    let answered = call.param("requestState", asked.result()["requestState"].clone()).send().await;
    assert_eq!(answered.text(), "hello Ada");
}

#[tokio::test]
async fn faults_in_the_arguments_are_told_before_the_limit() {
    let server = bed().setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    fill(&client, 1).await;
    let reply = client.call_tool("slow_required", json!({"ms": "soon"})).await;
    assert!(reply.tool_error().contains("ms"));
}

#[tokio::test]
async fn the_limit_can_be_lifted() {
    let server = bed().setting("tasks.max_per_principal", "unlimited").start();
    let client = server.client();
    for _ in 0..150 {
        client.create("slow_required", json!({"ms": 60_000})).await;
    }
    drop(server);
    let server = bed().start();
    let client = server.client();
    for _ in 0..100 {
        client.create("slow_required", json!({"ms": 60_000})).await;
    }
    refused(&client.call_tool("slow_required", json!({"ms": 1})).await, 100);
}
