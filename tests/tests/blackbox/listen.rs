//! Following tasks: `subscriptions/listen` with `taskIds`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::listen::{Event, SUBSCRIPTION_ID};
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, DEADLINE, LOOK_AGAIN, caps};

use super::{NEVER, bed};

/// What the notification says of the task, and what `tasks/get` says, are the same bytes.
#[track_caller]
fn same(notification: &str, get: &str) {
    let from = |text: &str| text[text.find(r#""taskId""#).expect("a task")..].to_owned();
    let told = from(notification);
    assert_eq!(told.strip_suffix('}'), Some(from(get).as_str()));
}

#[tokio::test]
async fn the_current_state_comes_first_then_every_change_each_equal_to_get() {
    let server = bed().setting("server.stream_keep_alive_ms", 50).start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    let asks = client.wait_questions(&id, &["ask"]).await;
    let mut stream = client.follow(&[&id]).await;
    let (text, message) = stream.raw().await;
    assert_eq!(message["params"]["status"], "input_required");
    same(&text, asks.raw(&["result"]));

    client.task_update(&id, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    let (text, message) = loop {
        let (text, message) = stream.raw().await;
        if message["params"]["status"] != "working" {
            break (text, message);
        }
    };
    assert_eq!(message["params"]["status"], "completed");
    same(&text, client.task_get(&id).await.raw(&["result"]));
    stream.silent_for(3).await;
}

#[tokio::test]
async fn a_task_that_has_ended_is_told_once() {
    let server = bed().setting("server.stream_keep_alive_ms", 50).start();
    let client = server.client();
    let id = client.create("nul", json!({})).await;
    let get = client.wait_end(&id).await;
    let mut stream = client.follow(&[&id]).await;
    let (text, _) = stream.raw().await;
    same(&text, get.raw(&["result"]));
    client.task_cancel(&id).await.acknowledged();
    stream.silent_for(3).await;
}

#[tokio::test]
async fn progress_is_told_as_the_status_message() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("slow", json!({"ms": 1200})).await;
    let states = client.follow(&[&id]).await.to_the_end().await;
    assert!(states.iter().any(|state| state["statusMessage"].as_str().is_some_and(|text| text.contains("/10"))));
    assert_eq!(states.last().unwrap()["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn what_cannot_be_followed_is_left_out_the_rest_keeps_its_order_and_comes_once() {
    let server = bed().setting("tasks.ttl_ms", 2000).setting("tasks.keep_ms", 0).start();
    let client = server.client();
    let expired = client.create("gate", json!({"name": "never"})).await;
    client.wait_gone(&expired).await;
    let client = server.client();
    let two = client.create("gate", json!({"name": "g"})).await;
    let one = client.create("gate", json!({"name": "g"})).await;
    let ids = json!([one, NEVER, two, one, expired, "no id at all", "", two]);
    let mut stream = client.listening(json!({"taskIds": ids})).listen().await;
    assert_eq!(stream.acknowledged().await, json!({"taskIds": [one, two]}));
    assert_eq!([stream.task().await["taskId"].clone(), stream.task().await["taskId"].clone()], [one, two]);

    let mut nothing = client.listening(json!({"taskIds": [NEVER]})).listen().await;
    assert_eq!(nothing.acknowledged().await, json!({"taskIds": []}));
}

#[tokio::test]
async fn when_a_task_expires_nothing_is_told() {
    let server = bed().setting("tasks.ttl_ms", 700).setting("server.stream_keep_alive_ms", 100).start();
    let client = server.client();
    let id = client.create("gate", json!({"name": "never"})).await;
    let mut stream = client.follow(&[&id]).await;
    assert_eq!(stream.task().await["status"], "working");
    client.wait_gone(&id).await;
    stream.silent_for(5).await;
}

#[tokio::test]
async fn a_request_that_does_not_declare_tasks_is_refused_whatever_ids_it_names() {
    let server = bed().start();
    let client = server.client().declaring(caps::without_tasks());
    for ids in [json!([]), json!([NEVER]), json!("x"), Value::Null] {
        client.listening(json!({"taskIds": ids})).send().await.refused_for_want_of_tasks();
    }
    let mut plain = client.listening(json!({"toolsListChanged": true})).listen().await;
    assert_eq!(plain.acknowledged().await, json!({"toolsListChanged": true}));
}

#[tokio::test]
async fn what_is_wrong_is_said_before_the_stream_opens() {
    let server = bed().start();
    let client = server.client();
    for filter in [
        json!(null),
        json!([]),
        json!("taskIds"),
        json!({"taskIds": null}),
        json!({"taskIds": "x"}),
        json!({"taskIds": [7]}),
        json!({"taskIds": {}}),
        json!({"taskIds": vec![NEVER; 1001]}),
        json!({"taskIds": [], "toolsListChanged": 1}),
        json!({"toolsListChanged": "yes"}),
        json!({"resourceSubscriptions": [1]}),
    ] {
        let reply = client.listening(filter.clone()).send().await;
        assert_eq!((reply.status, &reply.error()["code"]), (200, &json!(-32602)), "{filter}: {}", reply.body);
    }
    client.request("subscriptions/listen", json!({})).await.refused(200, -32602);
    let reply = client.listening(json!({"taskIds": []})).header("accept", "application/json").unjudged().send().await;
    assert_eq!(reply.status, 406, "{}", reply.body);
}

#[tokio::test]
async fn every_message_carries_the_requests_id_as_it_was_written() {
    let mut server = bed().start();
    let client = server.client();
    let mut streams = Vec::new();
    for id in ["0", "-41", "9007199254740993", "123456789012345678901234567890", r#""41""#, r#""""#, r#""\u0041 \/""#] {
        let listening = client.listening(json!({"taskIds": [], "toolsListChanged": true}));
        let mut body = listening.body.clone();
        body["id"] = json!("THE ID");
        let mut listening = listening.bytes(body.to_string().replace(r#""THE ID""#, id));
        listening.body["id"] = serde_json::from_str(id).unwrap();
        let mut stream = listening.listen().await;
        stream.acknowledged().await;
        streams.push((id, stream));
    }
    client.call_tool("test_trigger_tool_change", json!({})).await.text();
    for (id, stream) in &mut streams {
        let (text, message) = stream.raw().await;
        assert_eq!(message["method"], "notifications/tools/list_changed");
        assert!(text.contains(&format!(r#""{SUBSCRIPTION_ID}":{id}"#)), "{text}");
    }
    server.signal(libc::SIGTERM);
    for (id, stream) in &mut streams {
        let (text, _) = stream.raw().await;
        assert!(text.contains(&format!(r#""id":{id},"result""#)), "{text}");
        assert!(text.contains(&format!(r#""{SUBSCRIPTION_ID}":{id}"#)), "{text}");
    }
    drop(streams);
    server.exited(DEADLINE).await;
}

#[tokio::test]
async fn other_filters_are_served_on_the_same_stream_under_one_acknowledgement() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("gate", json!({"name": "g"})).await;
    let filter = json!({"taskIds": [id], "toolsListChanged": true, "promptsListChanged": false});
    let mut stream = client.listening(filter).listen().await;
    assert_eq!(stream.acknowledged().await, json!({"taskIds": [id], "toolsListChanged": true}));
    assert_eq!(stream.task().await["status"], "working");
    client.call_tool("test_trigger_prompt_change", json!({})).await.text();
    client.call_tool("test_trigger_tool_change", json!({})).await.text();
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    client.open("g").await;
    let states = stream.to_the_end().await;
    assert_eq!(states.last().unwrap()["status"], "completed");
    client.call_tool("test_trigger_tool_change", json!({})).await.text();
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_shutdown_tells_how_tasks_ended_then_ends_the_stream_with_its_result() {
    let mut server = bed().setting("server.shutdown_ms", 300).start();
    let client = server.near();
    let id = client.create("slow", json!({"ms": 120_000})).await;
    let mut stream = client.listening(json!({"taskIds": [id], "toolsListChanged": true})).listen().await;
    let mut idle = client.follow(&[]).await;
    stream.acknowledged().await;
    server.signal(libc::SIGTERM);
    let states = stream.to_the_end().await;
    assert_eq!(states.last().unwrap()["status"], "failed");
    stream.ended().await;
    idle.ended().await;
    assert_eq!(server.exited(DEADLINE).await.code(), Some(0));
}

#[tokio::test]
async fn streams_of_one_principal_are_limited_and_one_that_is_left_is_free_at_once() {
    let server = bed().setting("server.max_streams_per_principal", 2).start();
    let client = server.near();
    let id = client.create("gate", json!({"name": "g"})).await;
    let first = client.follow(&[&id]).await;
    let mut plain = client.listening(json!({"toolsListChanged": true})).listen().await;
    plain.acknowledged().await;
    let refused = client.listening(json!({"taskIds": [id]})).send().await;
    let error = refused.refused(200, -32600);
    assert!(error["message"].as_str().unwrap().contains("max_streams_per_principal"), "{error}");
    client.listening(json!({"toolsListChanged": true})).send().await.refused(200, -32600);
    for left in [Some(first), Some(plain)] {
        drop(left);
        let start = Instant::now();
        while !client.listening(json!({"taskIds": [id]})).is_stream().await {
            assert!(start.elapsed() < Duration::from_secs(5), "the place of a stream that was left is not free");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Sends a listen for one task on a connection of its own and reads nothing.
async fn unread(server: &tokkuri_tests::harness::Server, client: &Client, id: &str) -> Connection {
    let mut connection = Connection::open(server.http()).await;
    connection.write(&client.listening(json!({"taskIds": [id]})).to_http()).await;
    connection
}

/// The messages of a chunked stream up to the one that says `last`.
async fn read_to(connection: &mut Connection, last: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut event = Vec::new();
    loop {
        let chunk = connection.read_chunk().await;
        assert!(!chunk.is_empty(), "the stream has ended");
        event.extend(chunk);
        if event.ends_with(b"\n\n") {
            let text = String::from_utf8(std::mem::take(&mut event)).unwrap();
            if let Some(data) = text.strip_prefix("event: message\ndata: ") {
                messages.push(data.to_owned());
            }
            if text.contains(last) {
                return messages;
            }
        }
    }
}

/// The questions of a task add up: this many, each shown with all before it, are far more than sockets hold.
const QUESTIONS: u64 = 500;

#[tokio::test]
async fn whoever_does_not_read_is_owed_the_latest_state_and_costs_nothing() {
    let server = bed().setting("tasks.max_questions", QUESTIONS).start();
    let client = server.client();
    let gate = client.create("gate", json!({"name": "never"})).await;
    let before = server.resident_kib();
    let id = client.create("ask_many", json!({"n": QUESTIONS, "parallel": true})).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(unread(&server, &client, &id).await);
    }
    // Each has its time, not all of them together.
    let mut asked = client.wait_status(&id, "input_required").await;
    while (asked.questions().len() as u64) < QUESTIONS {
        let before = asked.questions().len();
        asked = client.wait(&id, "another question", |reply| reply.questions().len() > before).await;
    }
    let shown = asked.body.len() as u64;
    client.task_cancel(&id).await.acknowledged();
    let grown = server.resident_kib().saturating_sub(before);
    // Sent one by one to one of them: half of the largest, so many times.
    let all = shown / 2 * QUESTIONS;
    assert!(all > 20 << 20, "too little to tell: {all} bytes");
    eprintln!("KiB for twenty that do not read: {grown}; one state has {shown} bytes");
    assert!(grown < 60 << 10, "{grown} KiB for twenty that do not read");
    for connection in &mut slow {
        connection.read_head(200).await;
        let messages = read_to(connection, r#""status":"cancelled""#).await;
        assert!((messages.len() as u64) < QUESTIONS / 2, "{} states were sent", messages.len());
        let mut asked = 0;
        for message in &messages[1..] {
            let message: Value = serde_json::from_str(message).unwrap();
            let now = message["params"]["inputRequests"].as_object().map_or(usize::MAX, serde_json::Map::len);
            let now = if message["params"]["status"] == "working" { 0 } else { now };
            assert!(now >= asked, "a state older than the one before");
            asked = now;
        }
    }
    assert_eq!(client.task_get(&gate).await.task_status(), "working", "nobody else was held up");
}

#[tokio::test]
async fn a_thousand_listeners_hear_the_end_in_bounded_memory() {
    const LISTENERS: usize = 1000;
    const RESULT: usize = 256 << 10;
    let server = bed().setting("server.max_streams_per_principal", LISTENERS).start();
    let client = server.client();
    client.hold("before_end_write").await;
    let id = client.create("big", json!({"bytes": RESULT})).await;
    client.wait_held("before_end_write").await;
    let before = server.resident_kib();
    let mut connections = Vec::new();
    for _ in 0..LISTENERS {
        connections.push(unread(&server, &client, &id).await);
    }
    for connection in &mut connections {
        connection.read_head(200).await;
        read_to(connection, r#""status":"working""#).await;
    }
    let listening = server.resident_kib();
    client.release("before_end_write").await;
    client.wait_end(&id).await;
    let told = server.resident_kib();
    let mut most = told;
    for connection in &mut connections {
        let messages = read_to(connection, r#""status":"completed""#).await;
        let [last] = &messages[..] else { panic!("one message: the end") };
        assert!((RESULT..RESULT + 1024).contains(&last.len()), "the whole result: {} bytes", last.len());
        most = most.max(server.resident_kib());
    }
    let kib = |now: u64| now.saturating_sub(before);
    eprintln!("KiB for {LISTENERS}: {} listening, {} at the end, {} at most", kib(listening), kib(told), kib(most));
    // A connection with an open stream takes some tens of KiB, and the result is there once, not a thousand times.
    assert!(kib(most) < 120 << 10, "{} KiB", kib(most));
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let server = bed().setting("server.stream_keep_alive_ms", 50).start();
    let client = server.client();
    let mut ours = client.follow(&[]).await;
    ours.silent_for(2).await;
    assert!(matches!(ours.event().await, Event::Comment));
}
