//! Who gets a task: the extension, the tool's mode, the revision.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::{MODERN, TASKS};
use tokkuri_tests::harness::{Client, caps};

use super::{NEVER, bed};

/// What an undeclaring client may send in place of a declaration.
fn undeclared() -> [Value; 3] {
    let mut legacy = caps::without_tasks();
    legacy["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    [caps::without_tasks(), json!({}), legacy]
}

#[tokio::test]
async fn discover_advertises_the_extension_and_the_revisions() {
    let server = bed().start();
    let discovered = server.client().discover().await;
    let result = discovered.result();
    assert_eq!(result["capabilities"]["extensions"][TASKS], json!({}));
    assert!(result["supportedVersions"].as_array().unwrap().contains(&MODERN.into()), "{result}");
    assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string(), "{result}");
}

#[tokio::test]
async fn an_optional_tool_becomes_a_task_only_for_who_declares_the_extension() {
    let server = bed().start();
    let client = server.client();
    let created = client.call_tool("slow", json!({"ms": 20})).await;
    assert_eq!(created.task_status(), "working");
    assert_eq!(client.wait_end(&created.task_id()).await.task_text(), "done");
    for capabilities in undeclared() {
        let reply = client.declaring(capabilities).call_tool("slow", json!({"ms": 20})).await;
        assert_eq!(reply.text(), "done");
    }
}

#[tokio::test]
async fn a_tool_without_a_task_mode_never_becomes_a_task() {
    let server = bed().start();
    let client = server.client();
    assert_eq!(client.runs().await, 0);
    let reply = client.call_tool("greet", json!({"name": "Ada"})).await;
    assert_eq!(reply.text(), "Hello, Ada!");
}

#[tokio::test]
async fn a_required_tool_is_refused_without_the_extension_before_anything_runs() {
    let server = bed().start();
    let client = server.client();
    for capabilities in undeclared() {
        let client = client.declaring(capabilities);
        client.call_tool("slow_required", json!({"ms": 20})).await.refused_for_want_of_tasks();
        client.call_tool("slow_required", json!({"ms": "no number"})).await.refused_for_want_of_tasks();
    }
    let id = client.create("slow_required", json!({"ms": 20})).await;
    assert_eq!(client.wait_end(&id).await.task_text(), "done");
}

/// H01
#[tokio::test]
async fn task_methods_are_refused_without_the_extension_and_the_task_is_untouched() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "who?"})).await;
    let before = client.wait_questions(&id, &["ask"]).await;
    for capabilities in undeclared() {
        let stranger = client.declaring(capabilities);
        for id in [id.as_str(), NEVER] {
            stranger.task_get(id).await.refused_for_want_of_tasks();
            stranger
                .task_update(id, json!({"ask": {"action": "accept", "content": {"name": "M"}}}))
                .await
                .refused_for_want_of_tasks();
            stranger.task_cancel(id).await.refused_for_want_of_tasks();
        }
    }
    let after = client.task_get(&id).await;
    assert_eq!(after.raw(&["result"]), before.raw(&["result"]));
}

/// H01
#[tokio::test]
async fn a_listen_for_tasks_is_refused_without_the_extension() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("slow", json!({"ms": 60_000})).await;
    for capabilities in undeclared() {
        for id in [id.as_str(), NEVER] {
            let params = json!({"notifications": {"taskIds": [id]}});
            client
                .declaring(capabilities.clone())
                .request("subscriptions/listen", params)
                .await
                .refused_for_want_of_tasks();
        }
    }
    assert_eq!(client.task_get(&id).await.task_status(), "working");
}

/// H02
#[tokio::test]
async fn methods_of_the_earlier_tasks_do_not_exist() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("slow", json!({"ms": 10})).await;
    client.wait_end(&id).await;
    client.request("tasks/list", json!({})).await.refused(404, -32601);
    client.request("tasks/result", json!({"taskId": id})).await.refused(404, -32601);
    client.request("tasks/unheard_of", json!({"taskId": id})).await.refused(404, -32601);
}

/// H02
#[tokio::test]
async fn the_earlier_task_parameter_neither_forces_nor_forbids_a_task() {
    let server = bed().start();
    let client = server.client();
    let undeclaring = client.declaring(caps::without_tasks());
    for task in [json!({"ttl": 60_000}), json!({}), json!(null), json!(7)] {
        let sync = client.tool("greet", json!({"name": "Ada"})).param("task", task.clone()).send().await;
        assert_eq!(sync.text(), "Hello, Ada!");
        let inline = undeclaring.tool("slow", json!({"ms": 10})).param("task", task.clone()).send().await;
        assert_eq!(inline.text(), "done");
        client.tool("slow", json!({"ms": 10})).param("task", task).send().await.task_id();
    }
}

#[tokio::test]
async fn with_tasks_off_task_tools_run_in_the_request_and_nothing_is_advertised() {
    let server = bed().config("[tasks]\nenabled = false\n").start();
    let client = server.client();
    let discovered = client.discover().await;
    assert!(discovered.result()["capabilities"]["extensions"].get(TASKS).is_none(), "{}", discovered.body);
    for client in [client.clone(), client.declaring(caps::without_tasks())] {
        assert_eq!(client.call_tool("slow", json!({"ms": 10})).await.text(), "done");
        assert_eq!(client.call_tool("slow_required", json!({"ms": 10})).await.text(), "done");
    }
    client.task_get(NEVER).await.refused(404, -32601);
}

#[tokio::test]
async fn a_setting_in_the_environment_wins_over_the_file() {
    let server = bed().config("[tasks]\nenabled = false\n").setting("tasks.enabled", true).start();
    server.client().create("slow", json!({"ms": 10})).await;
}

#[tokio::test]
async fn required_tools_are_listed_in_the_modern_era() {
    let server = bed().start();
    let names = server.client().tool_names().await;
    for name in ["slow", "slow_required", "greet"] {
        assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
    }
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "a name twice: {names:?}");
    assert_eq!(server.client().tool_names().await, names, "a stable order");
}

#[tokio::test]
async fn a_revision_that_is_not_spoken_is_named_with_those_that_are() {
    let server = bed().start();
    let client = server.client();
    let supported = client.discover().await.result()["supportedVersions"].as_array().unwrap().clone();
    let reply = versioned(&client, "v999", "v999").send().await;
    let error = reply.refused(400, -32022);
    assert_eq!(error["data"]["requested"], "v999");
    let offered = error["data"]["supported"].as_array().unwrap();
    assert!(!offered.is_empty() && offered.iter().all(|version| supported.contains(version)), "{error}");
    // The header is compared before the revision is looked up.
    versioned(&client, MODERN, "v999").send().await.refused(400, -32020);
    versioned(&client, "v999", MODERN).send().await.refused(400, -32020);
}

#[tokio::test]
async fn a_request_without_an_envelope_says_what_is_missing() {
    let server = bed().start();
    let client = server.client();
    let mut bare = client.prepare("tools/list", json!({}));
    bare.body["params"] = json!({});
    bare.send().await.refused(400, -32602);
    let mut half = client.prepare("tools/list", json!({}));
    half.body["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let reply = half.send().await;
    let message = reply.refused(400, -32602)["message"].as_str().unwrap();
    assert!(message.contains("clientCapabilities"), "{message}");
}

#[tokio::test]
async fn initialize_with_a_modern_envelope_is_no_method() {
    let server = bed().start();
    let params = json!({"protocolVersion": MODERN, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    server.client().request("initialize", params).await.refused(404, -32601);
}

fn versioned(client: &Client, header: &str, body: &str) -> tokkuri_tests::harness::Prepared {
    client
        .prepare("tools/list", json!({}))
        .header("mcp-protocol-version", header)
        .meta("io.modelcontextprotocol/protocolVersion", body)
}
