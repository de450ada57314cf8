//! ttl: not early, then gone for everyone, and the run with it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokkuri_tests::harness::Client;
use tokkuri_tests::harness::client::accept;

use super::{NEVER, bed};

/// What each task method answers for this id, under one and the same request id.
async fn answers(client: &Client, id: &str) -> [String; 3] {
    let of = |method: &str, params: Value| client.prepare(method, params).id(41).send();
    let answer = json!({"ask": accept(json!({"name": "late"}))});
    [
        of("tasks/get", json!({"taskId": id})).await.body,
        of("tasks/update", json!({"taskId": id, "inputResponses": answer})).await.body,
        of("tasks/cancel", json!({"taskId": id})).await.body,
    ]
}

/// H13
#[tokio::test]
async fn an_expired_task_is_gone_its_run_stopped_and_its_place_free() {
    let server = bed().setting("tasks.ttl_ms", 300).setting("tasks.max_per_principal", 1).start();
    let client = server.client();
    let never = answers(&client, NEVER).await;
    for (tool, arguments) in [
        ("slow", json!({"ms": 60_000})),
        ("ask", json!({"message": "?"})),
        ("count", json!({"name": "c", "ms": 60_000})),
        ("block", json!({"ms": 60_000, "poll": true})),
    ] {
        // A task again, with a limit of one: the place of the one before is free.
        let id = client.create(tool, arguments).await;
        client.wait_gone(&id).await;
        assert_eq!(answers(&client, &id).await, never);
        client.wait_runs(0).await;
    }
    let counter = client.counter("c").await;
    assert_eq!((counter.started, counter.finished), (1, 0));
}

#[tokio::test]
async fn a_task_is_readable_until_its_ttl() {
    let server = bed().setting("tasks.ttl_ms", 700).start();
    let client = server.client();
    for _ in 0..3 {
        let created = client.call_tool("slow", json!({"ms": 60_000})).await;
        assert_eq!(created.result()["ttlMs"], 700);
        let since: Timestamp = created.result()["createdAt"].as_str().unwrap().parse().unwrap();
        client.wait_gone(&created.task_id()).await;
        let lived = now().duration_since(since).as_millis();
        assert!(lived >= 700, "gone after {lived} ms");
    }
}

/// H13: the late result of a run that could not be stopped.
#[tokio::test]
async fn a_result_after_the_ttl_is_dropped_quietly() {
    let server = bed().setting("tasks.ttl_ms", 300).start();
    let client = server.client();
    let id = client.create("block", json!({"ms": 1500, "poll": false})).await;
    let gone = client.wait_gone(&id).await;
    tokio::time::sleep(Duration::from_millis(1600)).await; // the run's own time: its result comes whatever we do
    client.wait_runs(0).await;
    let again = client.task_get(&id).await;
    assert_eq!(again.message["error"], gone.message["error"]);
    let log = server.log();
    assert!(!log.contains("ERROR"), "an expired task is no error of the server's");
}

#[tokio::test]
async fn a_result_stays_readable_for_as_long_as_promised() {
    let server = bed().setting("tasks.ttl_ms", 800).setting("tasks.keep_ms", 60_000).start();
    let client = server.client();
    for (tool, arguments) in
        [("slow", json!({"ms": 200})), ("tool_error", json!({})), ("fail", json!({"code": 1, "message": "m"}))]
    {
        let created = client.call_tool(tool, arguments).await;
        assert_eq!(created.result()["ttlMs"], 800);
        let id = created.task_id();
        let ended = client.wait_end(&id).await;
        let time = |field: &str| ended.result()[field].as_str().unwrap().parse::<Timestamp>().unwrap();
        let ran = time("lastUpdatedAt").duration_since(time("createdAt")).as_millis();
        let ttl = i128::from(ended.result()["ttlMs"].as_i64().unwrap());
        // The two times may be rounded to a millisecond each.
        assert!(ttl >= ran + 60_000 - 2, "ttlMs {ttl} after a run of {ran} ms: {}", ended.body);
        tokio::time::sleep(Duration::from_millis(900)).await; // past the ttl that it began with
        assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
    }
}

#[tokio::test]
async fn a_ttl_that_is_long_enough_is_left_alone() {
    let server = bed().setting("tasks.ttl_ms", 600_000).setting("tasks.keep_ms", 1000).start();
    let client = server.client();
    let id = client.create("slow", json!({"ms": 1})).await;
    assert_eq!(client.wait_end(&id).await.result()["ttlMs"], 600_000);
}

#[tokio::test]
async fn an_ended_task_expires_too() {
    let server = bed().setting("tasks.ttl_ms", 300).setting("tasks.keep_ms", 300).start();
    let client = server.client();
    let never = answers(&client, NEVER).await;
    let id = client.create("slow", json!({"ms": 1})).await;
    client.wait_gone(&id).await;
    assert_eq!(answers(&client, &id).await, never);
}

/// The wall clock, which the server on this machine has too.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_nanosecond(i128::try_from(since.as_nanos()).unwrap()).unwrap()
}
