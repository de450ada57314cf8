//! Following tasks over stdio: `subscriptions/listen` with `taskIds`, by the rules of the streams over HTTP.

use std::time::Instant;

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{DEADLINE, Stdio, caps};
use tokkuri_tests::one_process;

use super::{NEVER, bed};

/// What the notification says of the task, as `tasks/get` has it.
fn task_of(message: &Value) -> Value {
    assert_eq!(message["method"], "notifications/tasks", "{message}");
    let mut params = message["params"].clone();
    params.as_object_mut().unwrap().remove("_meta");
    params
}

async fn create(client: &mut Stdio, tool: &str, arguments: Value) -> String {
    let created = client.call_tool(tool, arguments).await;
    created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {created}")).to_owned()
}

async fn get(client: &mut Stdio, id: &str) -> Value {
    let mut got = client.request("tasks/get", json!({"taskId": id})).await["result"].clone();
    got.as_object_mut().unwrap().retain(|key, _| key != "_meta" && key != "resultType");
    got
}

/// Reads the states of one task on the stream up to its terminal one.
async fn to_the_end(client: &mut Stdio, listen: &Value) -> Vec<Value> {
    let mut states = Vec::new();
    loop {
        let state = task_of(&client.stream_message(listen).await);
        let over = tokkuri_tests::harness::is_terminal(state["status"].as_str().unwrap());
        states.push(state);
        if over {
            return states;
        }
    }
}

#[tokio::test]
async fn the_current_state_comes_first_then_every_change_each_equal_to_get() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    let id = create(&mut client, "ask", json!({"message": "?"})).await;
    client.wait_task(&id, |task| task["status"] == "input_required").await;
    // The id comes back as it was written.
    for listen in [json!("a listen"), json!(-41), json!(9_007_199_254_740_993_i64)] {
        client.listen(&listen, json!({"taskIds": [NEVER, id, id]})).await;
        assert_eq!(client.acknowledged(&listen).await, json!({"taskIds": [id]}));
        let first = task_of(&client.stream_message(&listen).await);
        assert_eq!(first, get(&mut client, &id).await);
    }
    let answers = json!({"ask": accept(json!({"name": "Ada"}))});
    client.request("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    for listen in [json!("a listen"), json!(-41), json!(9_007_199_254_740_993_i64)] {
        let states = to_the_end(&mut client, &listen).await;
        assert_eq!(*states.last().unwrap(), get(&mut client, &id).await);
        assert_eq!(states.last().unwrap()["result"]["content"][0]["text"], "hello Ada");
    }
    let (status, rest) = client.close().await;
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
}

/// Announces changes until each of these listens has heard of one: rmcp acknowledges a listen before the handler hears of it.
async fn announce(client: &mut Stdio, listens: &[&Value]) {
    let start = Instant::now();
    let mut waiting = listens.to_vec();
    while !waiting.is_empty() {
        assert!(start.elapsed() < DEADLINE, "nothing came for {waiting:?}");
        client.call_tool("test_trigger_tool_change", json!({})).await;
        // What was on its way by then has come before the answer to this.
        client.request("server/discover", json!({})).await;
        waiting.retain(|listen| {
            let heard = client.heard(listen);
            for message in &heard {
                assert_eq!(message["method"], "notifications/tools/list_changed", "{message}");
            }
            heard.is_empty()
        });
    }
}

#[tokio::test]
async fn other_filters_are_served_on_the_same_stream_under_one_acknowledgement() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    let id = create(&mut client, "gate", json!({"name": "g"})).await;
    let both = json!("both");
    client.listen(&both, json!({"taskIds": [id], "toolsListChanged": true, "promptsListChanged": false})).await;
    assert_eq!(client.acknowledged(&both).await, json!({"taskIds": [id], "toolsListChanged": true}));
    assert_eq!(task_of(&client.stream_message(&both).await)["status"], "working");
    let plain = json!(7_000);
    client.listen(&plain, json!({"toolsListChanged": true})).await;
    assert_eq!(client.acknowledged(&plain).await, json!({"toolsListChanged": true}));
    announce(&mut client, &[&both, &plain]).await;
    client.call_tool("open", json!({"name": "g"})).await;
    loop {
        let message = client.stream_message(&both).await;
        if message["method"] == "notifications/tasks" && task_of(&message)["status"] == "completed" {
            break;
        }
    }

    // Closed, it hears of nothing any more; the other one does.
    client.cancelled(&both).await;
    client.request("server/discover", json!({})).await;
    client.heard(&both);
    announce(&mut client, &[&plain]).await;
    assert_eq!(client.heard(&both), Vec::<Value>::new());
}

#[tokio::test]
async fn a_listen_may_be_the_first_and_the_last_that_a_client_says() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    client.listen(&json!(1), json!({"taskIds": [NEVER]})).await;
    assert_eq!(client.acknowledged(&json!(1)).await, json!({"taskIds": []}));
    let (status, rest) = client.close().await;
    assert_eq!((status.code(), rest), (Some(0), Vec::new()));
}

#[tokio::test]
async fn a_listen_that_is_cancelled_tells_nothing_more_and_its_id_is_free() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::all());
    let id = create(&mut client, "gate", json!({"name": "g"})).await;
    let (closed, open) = (json!(1_000), json!(1_001));
    for listen in [&closed, &open] {
        client.listen(listen, json!({"taskIds": [id]})).await;
        client.acknowledged(listen).await;
        assert_eq!(task_of(&client.stream_message(listen).await)["status"], "working");
    }
    client.cancelled(&closed).await;
    client.call_tool("open", json!({"name": "g"})).await;
    assert_eq!(to_the_end(&mut client, &open).await.last().unwrap()["status"], "completed");
    assert_eq!(client.heard(&closed), Vec::<Value>::new());
    client.listen(&closed, json!({"taskIds": [id]})).await;
    client.acknowledged(&closed).await;
    assert_eq!(task_of(&client.stream_message(&closed).await)["status"], "completed");
}

#[tokio::test]
async fn what_is_wrong_is_said_before_the_stream_opens() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed(), caps::without_tasks());
    let reply = client.request("subscriptions/listen", json!({"notifications": {"taskIds": []}})).await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");

    let mut client = Stdio::modern(&bed().setting("server.max_streams_per_principal", 2), caps::all());
    for filter in [json!({"taskIds": "x"}), json!({"taskIds": [7]}), json!({"taskIds": [], "toolsListChanged": 1})] {
        let reply = client.request("subscriptions/listen", json!({"notifications": filter})).await;
        assert_eq!(reply["error"]["code"], -32602, "{filter}: {reply}");
    }
    let first = json!("first");
    client.listen(&first, json!({"taskIds": []})).await;
    client.acknowledged(&first).await;
    client.listen(&first, json!({"taskIds": []})).await;
    assert_eq!(client.answer(&first).await["error"]["code"], -32600);
    client.listen(&json!("second"), json!({"taskIds": []})).await;
    client.acknowledged(&json!("second")).await;
    let reply = client.request("subscriptions/listen", json!({"notifications": {"taskIds": []}})).await;
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("max_streams_per_principal"), "{reply}");
}

#[tokio::test]
async fn a_client_of_the_earlier_era_cannot_listen() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::earlier(&bed(), caps::all()).await;
    let reply = client.request("subscriptions/listen", json!({"notifications": {"taskIds": []}})).await;
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
}

#[tokio::test]
async fn a_shutdown_tells_how_tasks_ended_then_ends_the_stream_with_its_result() {
    one_process!("a client of stdio starts its server itself: one");
    let mut client = Stdio::modern(&bed().setting("server.shutdown_ms", 300), caps::all());
    let id = create(&mut client, "slow", json!({"ms": 120_000})).await;
    let (tasks, both) = (json!("tasks"), json!("both"));
    client.listen(&tasks, json!({"taskIds": [id]})).await;
    client.listen(&both, json!({"taskIds": [id], "toolsListChanged": true})).await;
    for listen in [&tasks, &both] {
        client.acknowledged(listen).await;
    }
    client.signal(libc::SIGTERM);
    for listen in [&tasks, &both] {
        assert_eq!(to_the_end(&mut client, listen).await.last().unwrap()["status"], "failed");
        assert_eq!(client.stream_message(listen).await["result"]["resultType"], "complete");
    }
    let (status, _) = client.close().await;
    assert_eq!(status.code(), Some(0));
}

/// A client that does not read holds up its own output and nothing else.
#[tokio::test]
async fn whoever_does_not_read_is_owed_the_latest_state() {
    one_process!("a client of stdio starts its server itself: one");
    const QUESTIONS: u64 = 500;
    let mut client = Stdio::modern(&bed().setting("tasks.max_questions", QUESTIONS), caps::all());
    let id = create(&mut client, "gate", json!({"name": "never"})).await;
    let busy = create(&mut client, "ask_many", json!({"n": QUESTIONS, "parallel": true})).await;
    let listen = json!("listen");
    client.listen(&listen, json!({"taskIds": [busy, id]})).await;
    client.acknowledged(&listen).await;
    let count = |task: &Value| task["inputRequests"].as_object().map_or(0, serde_json::Map::len) as u64;
    // Each has its time, not all of them together.
    let mut there = 0;
    while there < QUESTIONS {
        let more = client.wait_task(&busy, |task| count(task) > there).await;
        there = count(&more["result"]);
    }
    client.request("tasks/cancel", json!({"taskId": busy})).await;
    let (mut states, mut asked) = (0, 0);
    loop {
        let state = task_of(&client.stream_message(&listen).await);
        if state["taskId"] != busy.as_str() {
            continue;
        }
        states += 1;
        if state["status"] == "cancelled" {
            break;
        }
        let now = state["inputRequests"].as_object().map_or(0, serde_json::Map::len);
        assert!(now >= asked, "a state older than the one before");
        asked = now;
    }
    assert!(states <= QUESTIONS + 2, "{states}");
}
