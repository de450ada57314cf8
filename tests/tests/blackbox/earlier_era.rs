//! Clients of 2025-11-25: plain tools work, tasks do not exist.

use serde_json::json;
use tokkuri_tests::harness::client::TASKS;
use tokkuri_tests::harness::{EarlierClient, Issuer};

use super::bed;

#[tokio::test]
async fn initialize_promises_no_tasks() {
    let server = bed().start();
    // Not even to a client that declares them, in either way.
    let declared = json!({"tasks": {"requests": {"tools": {"call": {}}}}, "extensions": {TASKS: {}}});
    for capabilities in [json!({}), declared] {
        let client = EarlierClient::connect(&server, capabilities).await;
        assert_eq!(client.initialized["protocolVersion"], "2025-11-25");
        let promised = &client.initialized["capabilities"];
        assert!(promised["tools"].is_object(), "{promised}");
        assert!(promised.get("tasks").is_none(), "{promised}");
        assert!(promised["extensions"].get(TASKS).is_none(), "{promised}");
    }
}

#[tokio::test]
async fn a_required_tool_is_not_listed_and_answers_an_error_of_its_own() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, json!({})).await;
    let listed = client.request("tools/list", json!({})).await;
    let names: Vec<_> = listed.result()["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    for name in ["slow", "count", "greet"] {
        assert!(names.contains(&&json!(name)), "{name} in {names:?}");
    }
    assert!(!names.contains(&&json!("slow_required")), "{names:?}");
    let reply = client.call_tool("slow_required", json!({"ms": 1})).await;
    assert!(!reply.tool_error().is_empty());
}

#[tokio::test]
async fn task_tools_answer_in_the_request() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, json!({"extensions": {TASKS: {}}})).await;
    let reply = client.call_tool("slow", json!({"ms": 20})).await;
    assert_eq!(reply.result()["content"], json!([{"type": "text", "text": "done"}]));
    let params = json!({"name": "slow", "arguments": {"ms": 20}, "task": {"ttl": 60_000}});
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.result()["content"][0]["text"], "done");
    let reply = client.call_tool("greet", json!({"name": "Ada"})).await;
    assert_eq!(reply.result()["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn faults_are_told_as_the_revision_tells_them() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, json!({})).await;
    assert_eq!(client.request("ping", json!({})).await.result(), &json!({}));
    let reply = client.call_tool("no_such_tool", json!({})).await;
    assert_eq!((reply.status, &reply.error()["code"]), (200, &json!(-32602)));
    let reply = client.call_tool("slow", json!({"ms": "soon"})).await;
    assert!(reply.tool_error().contains("ms"));
    let reply = client.call_tool("tool_error", json!({})).await;
    assert_eq!(
        (&reply.result()["isError"], &reply.result()["structuredContent"]),
        (&json!(true), &json!({"errors": 3}))
    );
}

#[tokio::test]
async fn tasks_of_the_modern_era_cannot_be_reached() {
    let server = bed().start();
    let modern = server.client();
    let id = modern.create("slow", json!({"ms": 60_000})).await;
    let client = EarlierClient::connect(&server, json!({"tasks": {"list": {}, "cancel": {}}})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result", "tasks/list", "tasks/update"] {
        let reply = client.request(method, json!({"taskId": id, "inputResponses": {}})).await;
        assert_eq!(reply.error()["code"], -32601, "{method}: {}", reply.body);
    }
    assert_eq!(modern.task_get(&id).await.task_status(), "working");
}

#[tokio::test]
async fn a_session_ends_with_what_the_official_clients_take_for_an_end() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, json!({})).await;
    assert_eq!(client.end_session().await, 204);
    // A client that did not hear of the end says it again.
    assert_eq!(client.end_session().await, 204);
}

#[tokio::test]
async fn sessions_of_one_principal_are_limited_and_one_that_is_ended_is_free_at_once() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).setting("server.max_sessions_per_principal", 2).start();
    let token = |sub: &str| Some(issuer.token(sub).text());
    let first = EarlierClient::near(&server, json!({}), token("alice")).await;
    let second = EarlierClient::near(&server, json!({}), token("alice")).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}});
    let mut third = EarlierClient::near(&server, json!({}), token("bob")).await;
    *third.session() = None;
    third.show(token("alice"));
    let refused = third.send(initialize.clone()).await;
    let error = refused.refused(200, -32600);
    assert!(error["message"].as_str().unwrap().contains("server.max_sessions_per_principal"), "{error}");
    assert_eq!(refused.message["id"], 7);
    // Those that are open go on.
    assert_eq!(second.call_tool("greet", json!({"name": "Ada"})).await.result()["content"][0]["text"], "Hello, Ada!");
    assert_eq!(first.on_session(reqwest::Method::DELETE).await.0, 204);
    third.send(initialize).await.result();
}
