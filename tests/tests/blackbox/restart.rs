//! A server that goes and comes back on the same file: what it had answered is there, and nothing works for ever.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, Prepared, Reply, caps};
use tokkuri_tests::one_process;

use super::{durable_bed, file_bed};

const SLACK: Duration = Duration::from_secs(10);

fn named(name: &str) -> Value {
    accept(json!({"name": name}))
}

/// Asserts that the run of this task was lost with its server, and that the task says so.
fn was_lost(read: &Reply) {
    let result = read.result();
    assert_eq!((read.task_status(), &result["error"]["code"]), ("failed", &json!(-32603)), "{}", read.body);
    let why = result["statusMessage"].as_str().expect("a failed task says why");
    assert!(why.contains("server") && why.contains("stopped"), "{why}");
    assert_eq!(result["error"]["message"], why);
}

/// Asserts that both show one task with one time to live.
fn same_life(before: &Reply, after: &Reply) {
    for field in ["taskId", "createdAt", "ttlMs"] {
        assert_eq!(before.result()[field], after.result()[field], "{field}: {}", after.body);
    }
}

/// H19
#[tokio::test]
async fn after_a_kill_every_task_has_ended_or_runs_again() {
    one_process!("a file is one process's at a time");
    const LIMIT: usize = 6;
    let server = file_bed().setting("tasks.max_per_principal", LIMIT).start();
    let client = server.client();
    let done = client.create("nul", json!({})).await;
    let completed = client.wait_status(&done, "completed").await;
    let working = client.create("slow", json!({"ms": 60_000})).await;
    let asking = client.create("ask", json!({"message": "Who?"})).await;
    let wrapped = client.create("wrapped_slow", json!({"ms": 60_000})).await;
    let again = client.create("restartable", json!({"name": "again", "ms": 60_000})).await;
    client.wait_counter("again", |counter| counter.started == 1).await;
    let asks_again = client.create("restartable_ask", json!({"name": "asks", "n": 2})).await;
    client.wait_questions(&asks_again, &["q1"]).await;
    client.task_update(&asks_again, json!({"q1": named("Ada")})).await.acknowledged();
    client.wait_questions(&asks_again, &["q2"]).await;
    client.wait_questions(&asking, &["ask"]).await;
    // Stored, and its reply on no wire yet.
    client.hold("before_reply").await;
    let mut unanswered = Connection::open(server.http()).await;
    unanswered.write(&client.tool("count", json!({"name": "unanswered", "ms": 60_000})).to_http()).await;
    client.wait_held("before_reply").await;
    let mut before = Vec::new();
    for id in [&working, &asking, &wrapped, &asks_again] {
        before.push(client.task_get(id).await);
    }

    let server = server.restart().await;
    let client = server.client();
    // Byte for byte, lone surrogates and large numbers included; and all of it at once, with the first request.
    assert_eq!(client.task_get(&done).await.raw(&["result"]), completed.raw(&["result"]));
    let mut after = Vec::new();
    for id in [&working, &asking, &wrapped] {
        let read = client.task_get(id).await;
        was_lost(&read);
        after.push(read);
    }
    let asked = client.wait_questions(&asks_again, &["q2"]).await;
    after.push(asked);
    for (before, after) in before.iter().zip(&after) {
        same_life(before, after);
    }
    client.task_update(&asks_again, json!({"q2": named("Bob")})).await.acknowledged();
    assert_eq!(client.wait_end(&asks_again).await.task_text(), "Ada,Bob");
    client.wait_counter("again", |counter| counter.started == 1).await;
    assert_eq!(client.task_get(&again).await.task_status(), "working");
    client.task_cancel(&again).await.acknowledged();
    let counter = client.wait_counter("again", |counter| counter.cancelled == 1).await;
    assert_eq!((counter.started, counter.finished), (1, 0), "one new attempt");
    let counter = client.counter("asks").await;
    assert_eq!((counter.started, counter.finished), (1, 1), "one new attempt");
    // The one without a name has ended as well: all places are free, and it did not run again.
    for _ in 0..LIMIT {
        client.create("slow_required", json!({"ms": 60_000})).await;
    }
    assert_eq!(client.counter("unanswered").await.started, 0);
    for id in [&working, &asking, &wrapped] {
        was_lost(&client.task_get(id).await);
    }
}

#[tokio::test]
async fn a_run_that_was_lost_twice_starts_a_third_time() {
    let mut server = durable_bed().start();
    let id = server.client().create("restartable_ask", json!({"name": "c", "n": 3})).await;
    for n in 1..=3 {
        let client = server.client();
        client.wait_questions(&id, &[&format!("q{n}")]).await;
        client.task_update(&id, json!({format!("q{n}"): named(&n.to_string())})).await.acknowledged();
        if n < 3 {
            client.wait_questions(&id, &[&format!("q{}", n + 1)]).await;
            server = server.restart().await;
        }
    }
    assert_eq!(server.client().wait_end(&id).await.task_text(), "1,2,3");
}

#[tokio::test]
async fn the_time_to_live_goes_on_while_the_server_is_away() {
    one_process!("a file is one process's at a time");
    let bed =
        file_bed().setting("tasks.ttl_ms", 2500).setting("tasks.keep_ms", 0).setting("tasks.max_per_principal", 2);
    let server = bed.start();
    let client = server.client();
    let done = client.create("slow", json!({"ms": 1})).await;
    let completed = client.wait_status(&done, "completed").await;
    let working = client.create("slow", json!({"ms": 60_000})).await;
    let restarted = client.create("restartable", json!({"name": "c", "ms": 60_000})).await;
    let server = server.restart().await;
    let client = server.client();
    let read = client.task_get(&done).await;
    assert_eq!(read.raw(&["result"]), completed.raw(&["result"]));
    was_lost(&client.task_get(&working).await);
    client.wait_counter("c", |counter| counter.started == 1).await;
    let created: jiff::Timestamp = read.result()["createdAt"].as_str().unwrap().parse().unwrap();
    client.wait_gone(&done).await;
    let created = Duration::from_millis(created.as_millisecond().unsigned_abs());
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - created;
    assert!(age >= Duration::from_millis(2500) && age < SLACK, "gone at the age of {age:?}");
    for id in [&working, &restarted] {
        client.wait_gone(id).await;
    }
    client.wait_runs(0).await;
    // And once more, with the end in the time without a server.
    let id = client.create("slow", json!({"ms": 60_000})).await;
    let mut server = server;
    server.kill().await;
    sleep(Duration::from_millis(2600)).await; // the time to live itself is what is waited for
    let server = server.restart().await;
    server.client().task_get(&id).await.refused(200, -32602);
    for _ in 0..2 {
        server.client().create("slow_required", json!({"ms": 60_000})).await;
    }
}

/// H15
#[tokio::test]
async fn after_a_restart_the_owner_is_the_same() {
    let server = durable_bed().start();
    let client = server.client();
    let done = client.create("slow", json!({"ms": 1})).await;
    let completed = client.wait_status(&done, "completed").await;
    let asking = client.create("restartable_ask", json!({"name": "c", "n": 1})).await;
    client.wait_questions(&asking, &["q1"]).await;
    let server = server.restart().await;
    let client = server.client();
    let read = client
        .prepare("tasks/get", json!({"taskId": done}))
        .meta("io.modelcontextprotocol/clientInfo", json!({"name": "another", "version": "9"}))
        .header("mcp-session-id", "a-session-of-before")
        .send()
        .await;
    assert_eq!(read.raw(&["result"]), completed.raw(&["result"]));
    client.wait_questions(&asking, &["q1"]).await;
    client.task_update(&asking, json!({"q1": named("Ada")})).await.acknowledged();
    assert_eq!(client.wait_end(&asking).await.task_text(), "Ada");
}

fn retry(client: &Client, tool: &str, asked: &Reply, answer: Value) -> Prepared {
    let key = &asked.questions()[0];
    client
        .tool(tool, asked_arguments(tool))
        .param("requestState", asked.result()["requestState"].clone())
        .param("inputResponses", json!({key: answer}))
}

fn asked_arguments(tool: &str) -> Value {
    match tool {
        "prepare_ask" => json!({}),
        _ => json!({"n": 2}),
    }
}

#[tokio::test]
async fn a_request_state_of_before_the_restart_is_accepted_after_it() {
    let server = durable_bed().start();
    let client = server.client();
    let prepared = client.call_tool("prepare_ask", asked_arguments("prepare_ask")).await;
    let inline = client.declaring(caps::without_tasks());
    let first = inline.call_tool("ask_many", asked_arguments("ask_many")).await;
    assert_eq!(first.questions(), ["q1"]);
    let server = server.restart().await;
    let client = server.client();
    let created = retry(&client, "prepare_ask", &prepared, named("Ada")).send().await;
    let inline = client.declaring(caps::without_tasks());
    let second = retry(&inline, "ask_many", &first, named("a")).send().await;
    assert_eq!(second.questions(), ["q2"], "{}", second.body);
    assert_eq!(client.wait_end(&created.task_id()).await.task_text(), "hello Ada");
    // What the server was given between two restarts travels on, too.
    let server = server.restart().await;
    let inline = server.client().declaring(caps::without_tasks());
    assert_eq!(retry(&inline, "ask_many", &second, named("b")).send().await.text(), "a,b");
}

#[tokio::test]
async fn a_graceful_stop_keeps_results_and_restarts_what_may_be() {
    let mut server = durable_bed().setting("server.shutdown_ms", 200).start();
    let client = server.client();
    let done = client.create("nul", json!({})).await;
    let completed = client.wait_status(&done, "completed").await;
    let working = client.create("slow", json!({"ms": 60_000})).await;
    let again = client.create("restartable", json!({"name": "again", "ms": 1500})).await;
    let asking = client.create("restartable_ask", json!({"name": "asks", "n": 1})).await;
    client.wait_questions(&asking, &["q1"]).await;
    server.terminate(SLACK).await;
    let server = server.restart().await;
    let client = server.client();
    assert_eq!(client.task_get(&done).await.raw(&["result"]), completed.raw(&["result"]));
    let read = client.task_get(&working).await;
    assert_eq!((read.task_status(), &read.result()["error"]["code"]), ("failed", &json!(-32603)), "{}", read.body);
    client.wait_questions(&asking, &["q1"]).await;
    client.task_update(&asking, json!({"q1": named("Ada")})).await.acknowledged();
    assert_eq!(client.wait_end(&asking).await.task_text(), "Ada");
    assert_eq!(client.wait_end(&again).await.task_text(), "counted");
}
