//! What a tool's scopes guard: its calls, its tasks, and its place in the list.

use serde_json::json;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::token::METADATA;
use tokkuri_tests::harness::{Client, Issuer, Reply, Server, caps};

use super::{NEVER, bed};

/// 403 with exactly this challenge, and nothing else to read.
#[track_caller]
fn lacks(reply: &Reply, scopes: &str) {
    let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}""#);
    assert_eq!((reply.status, reply.body.as_str()), (403, ""));
    assert_eq!(reply.headers["www-authenticate"], challenge);
}

fn alice(server: &Server, issuer: &Issuer, scopes: &str) -> Client {
    server.client().with_token(&issuer.token("alice").scopes(scopes).text())
}

fn answer() -> serde_json::Value {
    json!({"ask": accept(json!({"name": "Alice"}))})
}

#[tokio::test]
async fn a_call_without_the_tools_scopes_starts_nothing() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let poor = alice(&server, &issuer, "files:read");
    for client in [poor.clone(), poor.declaring(caps::without_tasks()), poor.declaring(json!({}))] {
        lacks(&client.call_tool("scoped", json!({})).await, "files:write");
        lacks(&client.call_tool("scoped_ask", json!({"message": "?"})).await, "files:write");
        // Scope before what is in the arguments, and before what the tool would ask for.
        lacks(&client.call_tool("scoped_ask", json!({"message": 7})).await, "files:write");
    }
    assert_eq!(poor.runs().await, 0);
    let rich = alice(&server, &issuer, "files:read files:write");
    assert_eq!(rich.declaring(caps::without_tasks()).call_tool("scoped", json!({})).await.text(), "ok");
    let id = rich.create("scoped", json!({})).await;
    assert_eq!(rich.wait_end(&id).await.task_text(), "ok");
}

#[tokio::test]
async fn a_task_needs_the_scopes_that_its_tool_needed_from_whoever_comes_back() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let (rich, poor) = (alice(&server, &issuer, "files:write"), alice(&server, &issuer, "files:read"));
    let id = rich.create("scoped_ask", json!({"message": "who?"})).await;
    let before = rich.wait_questions(&id, &["ask"]).await;
    lacks(&poor.task_get(&id).await, "files:write");
    lacks(&poor.task_update(&id, answer()).await, "files:write");
    lacks(&poor.task_cancel(&id).await, "files:write");
    assert_eq!(rich.task_get(&id).await.raw(&["result"]), before.raw(&["result"]));
    rich.task_update(&id, answer()).await.acknowledged();
    assert_eq!(rich.wait_end(&id).await.task_text(), "hello Alice");
    lacks(&poor.task_get(&id).await, "files:write");
    // A task that needs none asks for none.
    let plain = poor.create("slow", json!({"ms": 10})).await;
    assert_eq!(poor.wait_end(&plain).await.task_text(), "done");
}

#[tokio::test]
async fn task_methods_look_at_the_capability_then_the_owner_then_the_scope() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let rich = alice(&server, &issuer, "files:write");
    let id = rich.create("scoped_ask", json!({"message": "who?"})).await;
    let poor = alice(&server, &issuer, "");
    let stranger = server.client().with_token(&issuer.token("bob").text());
    for client in [&poor, &stranger] {
        let undeclared = client.declaring(caps::without_tasks());
        undeclared.task_get(&id).await.refused_for_want_of_tasks();
        undeclared.task_update(&id, json!({})).await.refused_for_want_of_tasks();
        undeclared.task_cancel(&id).await.refused_for_want_of_tasks();
        client.task_get(NEVER).await.refused(200, -32602);
    }
    // To a stranger the task does not exist, so nothing is said of its scopes.
    stranger.task_get(&id).await.refused(200, -32602);
    stranger.task_update(&id, json!({})).await.refused(200, -32602);
    stranger.task_cancel(&id).await.refused(200, -32602);
    lacks(&poor.task_get(&id).await, "files:write");
}

#[tokio::test]
async fn the_list_holds_what_the_caller_may_call_and_is_private() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    for (scopes, may) in [("files:read", false), ("files:write", true)] {
        let client = alice(&server, &issuer, scopes);
        let list = client.tools_list().await;
        assert_eq!(list.result()["cacheScope"], "private");
        let names = client.tool_names().await;
        for scoped in ["scoped", "scoped_ask"] {
            assert_eq!(names.iter().any(|name| name == scoped), may, "{scopes}: {names:?}");
        }
        for open in ["slow", "greet"] {
            assert!(names.iter().any(|name| name == open), "{scopes}: {names:?}");
        }
    }
    let open = bed().start();
    assert_eq!(open.client().tools_list().await.result()["cacheScope"], "public");
}

#[tokio::test]
async fn what_every_token_needs_and_what_the_tool_needs_are_asked_for_at_once() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("required_scopes = [\"mcp\"]")).start();
    for scopes in ["", "files:write"] {
        let poor = alice(&server, &issuer, scopes);
        lacks(&poor.call_tool("scoped", json!({})).await, "mcp files:write");
        lacks(&poor.call_tool("greet", json!({"name": "Ada"})).await, "mcp");
        lacks(&poor.call_tool("no_such_tool", json!({})).await, "mcp");
        lacks(&poor.tools_list().await, "mcp");
        lacks(&poor.discover().await, "mcp");
        lacks(&poor.task_get(NEVER).await, "mcp");
        lacks(&poor.request("subscriptions/listen", json!({"notifications": {}})).await, "mcp");
        let mut notification = poor.prepare("notifications/cancelled", json!({"requestId": 1}));
        notification.body.as_object_mut().unwrap().remove("id");
        lacks(&notification.unjudged().send().await, "mcp");
    }
    lacks(&alice(&server, &issuer, "mcp").call_tool("scoped", json!({})).await, "mcp files:write");
    let rich = alice(&server, &issuer, "mcp files:write");
    assert_eq!(rich.declaring(json!({})).call_tool("scoped", json!({})).await.text(), "ok");
}

#[tokio::test]
async fn scopes_guard_the_earlier_era_as_well() {
    use tokkuri_tests::harness::EarlierClient;
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let connect =
        |scopes: &str| EarlierClient::connect_as(&server, json!({}), Some(issuer.token("alice").scopes(scopes).text()));
    let (poor, rich) = (connect("files:read").await, connect("files:write").await);
    lacks(&poor.call_tool("scoped", json!({})).await, "files:write");
    assert_eq!(rich.call_tool("scoped", json!({})).await.result()["content"][0]["text"], "ok");
    for (client, may) in [(&poor, false), (&rich, true)] {
        let list = client.request("tools/list", json!({})).await;
        let tools = list.result()["tools"].as_array().unwrap();
        assert_eq!(tools.iter().any(|tool| tool["name"] == "scoped"), may);
    }
}

#[tokio::test]
async fn a_tool_sees_who_calls_and_never_the_token() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let token = issuer.token("alice").scopes("b a").text();
    let client = server.client().with_token(&token);
    let expected = json!({
        "principal": "https://issuer.example alice", "client": "c1", "resource": "https://tokkuri.example/mcp",
        "scopes": ["a", "b"], "traceparent": null,
    });
    let inline = client.declaring(json!({})).call_tool("whoami", json!({})).await;
    assert_eq!(inline.result()["structuredContent"], expected);
    let task = client.wait_end(&client.create("whoami", json!({})).await).await;
    assert_eq!(task.result()["result"]["structuredContent"], expected);
}
