//! H16: the headers that mirror the message. A mismatch is -32020 on 400, under the request's id, and nothing is done.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::sentinel;
use tokkuri_tests::harness::{Client, Prepared, caps};

use super::{NEVER, bed};

/// The three task methods on this task, each with the id 41.
fn requests(client: &Client, id: &str) -> Vec<Prepared> {
    let answer = json!({"ask": {"action": "accept", "content": {"name": "M"}}});
    vec![
        client.prepare("tasks/get", json!({"taskId": id})).id(41),
        client.prepare("tasks/update", json!({"taskId": id, "inputResponses": answer})).id(41),
        client.prepare("tasks/cancel", json!({"taskId": id})).id(41),
    ]
}

async fn mismatch(request: Prepared) {
    let reply = request.send().await;
    reply.refused(400, -32020);
    assert_eq!(reply.message["id"], 41);
}

#[tokio::test]
async fn a_header_that_does_not_mirror_the_message_is_refused_and_nothing_done() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    let other = client.create("slow", json!({"ms": 60_000})).await;
    let before = client.wait_questions(&id, &["ask"]).await;
    for request in requests(&client, &id) {
        mismatch(request.clone().without_header("mcp-name")).await;
        mismatch(request.clone().header("mcp-name", &other)).await;
        mismatch(request.clone().header("mcp-name", "")).await;
        mismatch(request.clone().header("mcp-name", &id.to_lowercase())).await;
        mismatch(request.clone().header("mcp-name", &sentinel(&other))).await;
        mismatch(request.clone().header("mcp-name", "=?base64?%%%?=")).await;
        mismatch(request.clone().header("mcp-name", "=?base64?QQ?=")).await; // padding is missing
        mismatch(request.clone().header("mcp-name", &format!("=?base64?{id}"))).await; // no sentinel, so the literal text
        mismatch(request.clone().second_header("mcp-name", &id)).await;
        mismatch(request.clone().second_header("mcp-name", &other)).await;
        mismatch(request.clone().without_header("mcp-method")).await;
        mismatch(request.clone().header("mcp-method", "tools/call")).await;
        mismatch(request.clone().header("mcp-method", "TASKS/GET")).await;
        mismatch(request.clone().header("mcp-protocol-version", "2025-11-25")).await;
    }
    assert_eq!(client.task_get(&id).await.raw(&["result"]), before.raw(&["result"]));
}

#[tokio::test]
async fn a_valid_sentinel_and_surrounding_space_are_the_name() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("slow", json!({"ms": 60_000})).await;
    for name in [id.clone(), sentinel(&id), format!("  {id}\t")] {
        for request in requests(&client, &id) {
            let reply = request.header("mcp-name", &name).send().await;
            assert!(reply.message.get("result").is_some(), "{name:?}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn header_names_are_matched_in_any_case() {
    let server = bed().start();
    let client = server.client();
    let request = client.prepare("tasks/get", json!({"taskId": NEVER}));
    let request = request
        .header("MCP-NAME", NEVER)
        .header("McP-MeThOd", "tasks/get")
        .header("MCP-PROTOCOL-VERSION", "2026-07-28");
    request.send().await.refused(200, -32602);
}

#[tokio::test]
async fn a_tool_call_is_held_to_its_headers_before_anything_runs() {
    let server = bed().start();
    let client = server.client();
    let call = |tool: &str| client.tool(tool, json!({"name": "c", "ms": 60_000})).id(41);
    for request in [
        call("count").without_header("mcp-name"),
        call("count").header("mcp-name", "slow"),
        call("count").header("mcp-name", "Count"),
        call("count").without_header("mcp-method"),
        call("count").header("mcp-method", "tools/list"),
        call("count").header("mcp-name", "=?base64?_?="),
        call("slow_required").header("mcp-name", "count"),
        call("greet").header("mcp-name", "count"),
    ] {
        mismatch(request).await;
    }
    assert_eq!(client.counter("c").await.started, 0);
    call("count").header("mcp-name", &sentinel("count")).send().await.task_id();
}

#[tokio::test]
async fn ids_of_any_legal_kind_come_back_as_they_were() {
    let server = bed().start();
    let client = server.client();
    let long = "x".repeat(1000);
    for id in
        [json!(0), json!(-7), json!(9_007_199_254_740_993_i64), json!("41"), json!(""), json!("é\u{0}\""), json!(long)]
    {
        // `judge` compares the id of every answer with the request's.
        client.prepare("tasks/get", json!({"taskId": NEVER})).id(id.clone()).send().await.refused(200, -32602);
        client.prepare("tools/list", json!({})).id(id.clone()).send().await.result();
        let call = client.tool("slow", json!({"ms": 1})).id(id.clone()).send().await;
        call.task_id();
        let mismatched = client.prepare("tools/list", json!({})).id(id).header("mcp-method", "x").send().await;
        mismatched.refused(400, -32020);
    }
}

#[tokio::test]
async fn two_requests_may_share_an_id_at_once() {
    let server = bed().start();
    let client = server.client();
    let undeclaring = client.declaring(json!({}));
    let call = |client: &Client, ms: u64| client.tool("slow", json!({"ms": ms})).id(41).send();
    let (a, b, c) = tokio::join!(call(&undeclaring, 300), call(&undeclaring, 10), call(&client, 10));
    assert_eq!((a.text(), b.text()), ("done", "done"));
    let ended = client.wait_end(&c.task_id()).await;
    assert_eq!(ended.task_text(), "done");
    assert_ne!(ended.message["id"], Value::from(41));
}

#[tokio::test]
async fn arguments_that_are_repeated_in_headers_have_to_agree() {
    let server = bed().start();
    let client = server.client();
    let arguments = json!({"region": "eu", "place": {"shelf": 42}});
    let call = |client: &Client| {
        client.tool("mirrored", arguments.clone()).header("mcp-param-region", "eu").header("mcp-param-shelf", "42.0")
    };
    // As a task, and in the request.
    for client in [client.clone(), client.declaring(caps::without_tasks())] {
        let reply = call(&client).send().await;
        assert!(reply.message.get("result").is_some(), "{}", reply.body);
        let wrong = [
            call(&client).without_header("mcp-param-region"),
            call(&client).without_header("mcp-param-shelf"),
            call(&client).header("mcp-param-shelf", "43"),
            call(&client).header("mcp-param-region", "us"),
            call(&client).header("mcp-param-region", "=?base64?ZXU?="),
            call(&client).second_header("mcp-param-region", "eu"),
        ];
        for request in wrong {
            let reply = request.id(9).send().await;
            reply.refused(400, -32020);
            assert_eq!(reply.message["id"], 9);
        }
        let reply = call(&client).header("mcp-param-region", "=?base64?ZXU=?=").send().await;
        assert!(reply.message.get("result").is_some(), "{}", reply.body);
        let bare = client.tool("mirrored", json!({}));
        assert!(bare.send().await.message.get("result").is_some());
    }
}
