//! One client over standard input and output: whatever the era, every line is a message, and closing the input ends the server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokkuri_tests::harness::client::{TASKS, accept};
use tokkuri_tests::harness::{Stdio, caps};
use tokkuri_tests::one_process;

use super::{bed, durable_bed};

#[tokio::test]
async fn a_modern_client_discovers_tasks_and_drives_one() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    let discovered = client.request("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"]["extensions"][TASKS].is_object(), "{discovered}");
    let listed = client.request("tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("slow_required")) && names.contains(&&json!("wrapped_slow")), "{names:?}");
    let created = client.call_tool("slow_required", json!({"ms": 20})).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    let ended = client.wait_task(&id, |task| task["status"] == "completed").await;
    assert_eq!(ended["result"]["result"]["content"][0]["text"], "done");
    let created = client.call_tool("slow", json!({"ms": 60_000})).await;
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    client.request("tasks/cancel", json!({"taskId": id})).await;
    client.wait_task(&id, |task| task["status"] == "cancelled").await;
    let (status, rest) = client.close().await;
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
}

#[tokio::test]
async fn the_tasks_methods_want_the_extension_here_too() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::without_tasks());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let reply = client.request(method, json!({"taskId": super::NEVER, "inputResponses": {}})).await;
        assert_eq!(reply["error"]["code"], -32021, "{method}: {reply}");
    }
    let reply = client.call_tool("slow_required", json!({"ms": 1})).await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
    assert_eq!(client.call_tool("slow", json!({"ms": 1})).await["result"]["content"][0]["text"], "done");
    let mut client = Stdio::modern(&bed(), caps::all());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let reply = client.request(method, json!({"taskId": super::NEVER, "inputResponses": {}})).await;
        assert_eq!(reply["error"]["code"], -32602, "{method}: {reply}");
    }
}

#[tokio::test]
async fn an_earlier_client_is_promised_no_tasks() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::earlier(&bed(), caps::all()).await;
    let listed = client.request("tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("slow")) && !names.contains(&&json!("slow_required")), "{names:?}");
    assert_eq!(client.call_tool("greet", json!({"name": "Ada"})).await["result"]["content"][0]["text"], "Hello, Ada!");
    let ada = |_: &Value| accept(json!({"name": "Ada"}));
    let (reply, _) = client.call_answering("ask", json!({"message": "Who?"}), ada).await;
    assert_eq!(reply["result"]["content"][0]["text"], "hello Ada");
    for method in ["tasks/get", "tasks/cancel", "tasks/list", "tasks/result"] {
        let reply = client.request(method, json!({"taskId": super::NEVER})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_disturbs_nobody() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::earlier(&bed(), json!({})).await;
    for line in ["{", "", "null", "[]", "hello", r#"{"jsonrpc":"2.0"}"#] {
        client.write_line(line).await;
    }
    assert_eq!(client.call_tool("slow", json!({"ms": 1})).await["result"]["content"][0]["text"], "done");
}

/// A client that goes has asked for nothing more: what it left is ended with the drain, and kept.
#[tokio::test]
async fn closing_the_input_ends_the_server_and_keeps_what_was_done() {
    one_process!("a client of stdio starts its server itself: one");
    let bed = durable_bed().setting("server.shutdown_ms", 300);
    let mut client = Stdio::modern(&bed, caps::all());
    let created = client.call_tool("slow", json!({"ms": 1})).await;
    let done = created["result"]["taskId"].as_str().unwrap().to_owned();
    client.wait_task(&done, |task| task["status"] == "completed").await;
    let created = client.call_tool("slow", json!({"ms": 60_000})).await;
    let working = created["result"]["taskId"].as_str().unwrap().to_owned();
    let start = Instant::now();
    let (status, rest) = client.close().await;
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
    assert!(start.elapsed() < Duration::from_secs(10), "went after {:?}", start.elapsed());
    let server = bed.start();
    let client = server.client();
    assert_eq!(client.task_get(&done).await.task_text(), "done");
    assert_eq!(client.task_get(&working).await.task_status(), "failed");
}

#[tokio::test]
async fn sigterm_ends_it_as_well() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    client.request("server/discover", json!({})).await;
    client.signal(libc::SIGTERM);
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
}

/// Over stdio, too, a reconnecting client finds its tasks: the file is what they live in.
#[tokio::test]
async fn a_task_of_one_process_is_read_by_the_next() {
    one_process!("a client of stdio starts its server itself: one");
    let bed = durable_bed();
    let mut client = Stdio::modern(&bed, caps::all());
    let created = client.call_tool("restartable_ask", json!({"name": "c", "n": 1})).await;
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    client.wait_task(&id, |task| task["status"] == "input_required").await;
    client.signal(libc::SIGKILL);
    client.close().await;
    let mut client = Stdio::modern(&bed, caps::all());
    client.wait_task(&id, |task| task["status"] == "input_required").await;
    let answers = json!({"q1": accept(json!({"name": "Ada"}))});
    client.request("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let ended = client.wait_task(&id, |task| task["status"] == "completed").await;
    assert_eq!(ended["result"]["result"]["content"][0]["text"], "Ada");
}
