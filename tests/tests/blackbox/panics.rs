//! H18: a tool that panics takes nothing with it but its own task, and tells no client why.
//!
//! That the text of the panic is nowhere on the wire is checked by the harness, on every answer of every test.

use serde_json::json;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, Reply, caps};

use super::bed;

const STAGES: [&str; 5] = ["start", "await", "blocking", "waiting", "drop"];

/// Waits until the panic has ended the task. Where the tool waits for an answer first, it gets one.
async fn burst(client: &Client, id: &str) -> Reply {
    let reply = client.wait(id, "the panic", |reply| reply.task_status() != "working").await;
    if reply.task_status() != "input_required" {
        return reply;
    }
    let answers: serde_json::Map<_, _> =
        reply.questions().into_iter().map(|key| (key, accept(json!({"name": "Ada"})))).collect();
    client.task_update(id, answers.into()).await.acknowledged();
    client.wait_end(id).await
}

#[tokio::test]
async fn a_panic_at_any_stage_fails_the_task_with_a_generic_error_and_frees_its_place() {
    // Two places: one for a bystander, one for each panic in turn.
    let server = bed().setting("tasks.max_per_principal", 2).start();
    let client = server.client();
    let bystander = client.create("gate", json!({"name": "g"})).await;
    for stage in STAGES {
        let id = client.create("boom", json!({"stage": stage})).await;
        let ended = burst(&client, &id).await;
        assert_eq!(ended.task_status(), "failed", "{stage}: {}", ended.body);
        let error = &ended.result()["error"];
        assert_eq!(error["code"], -32603, "{stage}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert!(error.get("data").is_none(), "{stage}: {error}");
        client.wait_runs(1).await;
        assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
    }
    client.open("g").await;
    client.wait_status(&bystander, "completed").await;
}

#[tokio::test]
async fn a_panic_of_a_run_that_was_cancelled_changes_nothing() {
    let server = bed().start();
    let client = server.client();
    for stage in STAGES {
        let id = client.create("boom", json!({"stage": stage})).await;
        client.task_cancel(&id).await.acknowledged();
        let read = client.task_get(&id).await;
        assert!(["cancelled", "failed"].contains(&read.task_status()), "{stage}: {}", read.body);
        client.wait_runs(0).await;
        assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
    }
}

#[tokio::test]
async fn a_panic_in_the_request_is_answered_and_the_server_goes_on() {
    let server = bed().start();
    let client = server.client().declaring(caps::without_tasks());
    for stage in ["start", "await", "blocking", "drop"] {
        let reply = client.call_tool("boom", json!({"stage": stage})).await;
        let told = reply.message["error"]["code"] == -32603 || reply.message["result"]["isError"] == true;
        assert!(told, "{stage}: {}", reply.body);
        assert_eq!(client.call_tool("slow", json!({"ms": 1})).await.text(), "done");
    }
}
