//! What is checked before a task exists: the tool, and its arguments against the schema.

use serde_json::json;
use tokkuri_tests::harness::caps;

use super::bed;

#[tokio::test]
async fn a_fault_in_the_arguments_is_a_tool_error_that_names_the_place_and_makes_no_task() {
    let server = bed().start();
    let client = server.client();
    for (tool, arguments, place) in [
        ("slow", json!({"ms": "soon"}), "ms"),
        ("slow", json!({}), "ms"),
        ("slow", json!({"ms": -1}), "ms"),
        ("slow_required", json!({"ms": {"a": 1}}), "ms"),
        ("count", json!({"name": 7, "ms": 1}), "name"),
        ("greet", json!({"name": [1]}), "name"),
    ] {
        let reply = client.call_tool(tool, arguments.clone()).await;
        assert!(reply.tool_error().contains(place), "{tool} {arguments}: {}", reply.body);
        if tool != "slow_required" {
            let reply = client.declaring(caps::without_tasks()).call_tool(tool, arguments.clone()).await;
            assert!(reply.tool_error().contains(place), "{tool} {arguments}: {}", reply.body);
        }
    }
    assert_eq!(client.runs().await, 0);
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let server = bed().start();
    let client = server.client();
    for client in [client.clone(), client.declaring(caps::without_tasks())] {
        client.call_tool("no_such_tool", json!({})).await.refused(200, -32602);
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_a_protocol_error() {
    let server = bed().start();
    let client = server.client();
    for arguments in [json!([1]), json!("ms"), json!(7), json!(true)] {
        for client in [client.clone(), client.declaring(caps::without_tasks())] {
            let reply = client.call_tool("slow", arguments.clone()).await;
            assert_eq!(reply.error()["code"], -32602, "{arguments}: {}", reply.body);
        }
    }
    assert_eq!(client.runs().await, 0);
}

#[tokio::test]
async fn a_tool_without_arguments_may_be_called_without_them() {
    let server = bed().start();
    let client = server.client();
    let created = client.prepare("tools/call", json!({"name": "tool_error"})).send().await;
    client.wait_status(&created.task_id(), "completed").await;
    let reply = client.prepare("tools/call", json!({"name": "test_simple_text"})).send().await;
    assert_eq!(reply.text(), "This is a simple text response for testing.");
}
