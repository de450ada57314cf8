//! A task from its creation to its end, as a client sees it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{NEVER, bed};

#[tokio::test]
async fn a_created_task_is_readable_at_once() {
    let server = bed().start();
    let client = server.client();
    for _ in 0..50 {
        let created = client.call_tool("slow", json!({"ms": 300})).await;
        let read = client.task_get(&created.task_id()).await;
        for field in ["taskId", "createdAt", "ttlMs", "pollIntervalMs"] {
            assert_eq!(read.result()[field], created.result()[field], "{field}: {}", read.body);
        }
        client.task_cancel(&created.task_id()).await.acknowledged();
    }
}

#[tokio::test]
async fn task_ids_are_24_characters_of_base64url_and_never_the_same() {
    let server = bed().setting("tasks.max_per_principal", "unlimited").start();
    let client = server.client();
    let mut ids = BTreeSet::new();
    let mut first_characters = BTreeSet::new();
    for _ in 0..200 {
        let id = client.create("slow", json!({"ms": 1})).await;
        assert!(id.len() == 24 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{id}");
        first_characters.insert(id.as_bytes()[0]);
        assert!(ids.insert(id));
    }
    // 200 draws of 64: fewer than 30 different ones would be a matter of one in billions.
    assert!(first_characters.len() > 30, "ids begin with {first_characters:?}");
}

/// H03
#[tokio::test]
async fn a_tools_own_error_is_a_completed_task() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("tool_error", json!({})).await;
    let ended = client.wait_status(&id, "completed").await;
    let result = &ended.result()["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"], json!({"errors": 3}));
    assert!(result["content"].is_array());
    assert!(ended.result().get("error").is_none());
}

/// H03
#[tokio::test]
async fn a_protocol_error_is_a_failed_task_with_that_error() {
    let server = bed().start();
    let client = server.client();
    for arguments in [
        json!({"code": -32602, "message": "no such project"}),
        json!({"code": -32602, "message": "no such project", "data": {"project": "x", "tried": [1, null]}}),
        json!({"code": 4711, "message": "ours"}),
        json!({"code": -32603, "message": "a tool's own words"}),
    ] {
        let id = client.create("fail", arguments.clone()).await;
        let ended = client.wait_status(&id, "failed").await;
        assert_eq!(ended.result()["error"], arguments, "the error as it is, `data` only where there is one");
        assert!(ended.result().get("result").is_none());
        assert!(!ended.result()["statusMessage"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_ended_task_reads_the_same_every_time() {
    let server = bed().start();
    let client = server.client();
    for (tool, arguments) in [
        ("slow", json!({"ms": 1})),
        ("tool_error", json!({})),
        ("fail", json!({"code": 1, "message": "m"})),
        ("big", json!({"bytes": 1000})),
    ] {
        let id = client.create(tool, arguments).await;
        let ended = client.wait_end(&id).await;
        for _ in 0..5 {
            assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
        }
    }
}

#[tokio::test]
async fn progress_is_told_in_the_status_message_and_never_goes_back() {
    let server = bed().start();
    let client = server.client();
    let mut seen = Vec::new();
    let id = client.create("slow", json!({"ms": 3000})).await;
    let mut updated = String::new();
    loop {
        let reply = client.task_get(&id).await;
        let now = reply.result()["lastUpdatedAt"].as_str().unwrap().to_owned();
        assert!(
            now.parse::<jiff::Timestamp>().unwrap() >= updated.parse().unwrap_or(jiff::Timestamp::MIN),
            "time goes back"
        );
        updated = now;
        assert_ne!(reply.task_status(), "failed", "{}", reply.body);
        if reply.task_status() != "working" {
            break;
        }
        if let Some(step) = reply.result()["statusMessage"].as_str().and_then(step) {
            seen.push(step);
        }
        tokio::time::sleep(tokkuri_tests::harness::LOOK_AGAIN).await;
    }
    assert!(seen.is_sorted(), "{seen:?}");
    seen.dedup();
    assert!(seen.len() >= 3 && seen.iter().all(|step| (1..=10).contains(step)), "steps of ten: {seen:?}");
}

/// `3` of a message that says `3/10`.
fn step(message: &str) -> Option<u32> {
    let (before, _) = message.split_once("/10")?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[tokio::test]
async fn the_last_progress_is_written_before_the_end() {
    let server = bed().start();
    let client = server.client();
    // Ten steps within what is conflated into one write: the last must not come after the end, nor revive the task.
    for _ in 0..20 {
        let id = client.create("slow", json!({"ms": 20})).await;
        let ended = client.wait_status(&id, "completed").await;
        assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
    }
}

#[tokio::test]
async fn many_tasks_run_beside_each_other() {
    let server = bed().start();
    let client = server.client();
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(client.create("gate", json!({"name": format!("g{n}")})).await);
    }
    client.wait_runs(20).await;
    for (n, id) in ids.iter().enumerate().rev() {
        client.open(&format!("g{n}")).await;
        client.wait_status(id, "completed").await;
    }
    client.wait_runs(0).await;
}

#[tokio::test]
async fn an_unknown_task_is_the_same_not_found_everywhere() {
    let server = bed().start();
    let client = server.client();
    let mut seen = BTreeSet::new();
    for id in [NEVER, "x", "", "AAAA AAAA", "é", &"A".repeat(10_000)] {
        for (method, more) in [
            ("tasks/get", Value::Null),
            ("tasks/update", json!({"k": {"action": "cancel"}})),
            ("tasks/cancel", Value::Null),
        ] {
            let mut request = client.prepare(method, json!({"taskId": id})).id(41);
            if !more.is_null() {
                request = request.param("inputResponses", more);
            }
            let reply = request.send().await;
            reply.refused(200, -32602);
            seen.insert(reply.body);
        }
    }
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

#[tokio::test]
async fn the_poll_interval_is_suggested() {
    let server = bed().start();
    let created = server.client().call_tool("slow", json!({"ms": 1})).await;
    assert_eq!(created.result()["pollIntervalMs"], 1000);
    drop(server);
    let server = bed().setting("tasks.poll_interval_ms", 250).setting("tasks.ttl_ms", 120_000).start();
    let created = server.client().call_tool("slow", json!({"ms": 60_000})).await;
    assert_eq!((&created.result()["pollIntervalMs"], &created.result()["ttlMs"]), (&json!(250), &json!(120_000)));
    let read = server.client().task_get(&created.task_id()).await;
    assert_eq!((&read.result()["pollIntervalMs"], &read.result()["ttlMs"]), (&json!(250), &json!(120_000)));
}
