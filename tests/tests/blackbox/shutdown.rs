//! SIGTERM: what runs may end within the drain; after it the server goes.

use std::time::{Duration, Instant};

use serde_json::json;

use super::bed;

const SLACK: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_idle_server_goes_at_once() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut server = bed().setting("server.shutdown_ms", 60_000).start();
        server.client().discover().await;
        server.signal(signal);
        let status = server.exited(SLACK).await;
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

#[tokio::test]
async fn a_run_that_ends_within_the_drain_is_let_to() {
    let mut server = bed().setting("server.shutdown_ms", 60_000).start();
    let client = server.client();
    let start = Instant::now();
    let id = client.create("slow", json!({"ms": 2000})).await;
    server.terminate(SLACK).await;
    assert!(start.elapsed() >= Duration::from_millis(2000), "went after {:?}, with a run of 2 s", start.elapsed());
    if server.store().is_durable() {
        let server = server.restart().await;
        assert_eq!(server.client().task_get(&id).await.task_text(), "done");
    }
}

#[tokio::test]
async fn a_call_that_runs_in_its_request_is_answered_within_the_drain() {
    let mut server = bed().setting("server.shutdown_ms", 60_000).start();
    let client = server.client().declaring(json!({}));
    let start = Instant::now();
    let calls = async {
        tokio::join!(
            client.call_tool("slow", json!({"ms": 2000})),
            client.call_tool("wrapped_slow", json!({"ms": 1500}))
        )
    };
    let ends = async {
        client.wait_runs(1).await;
        server.signal(libc::SIGTERM);
    };
    let ((native, wrapped), ()) = tokio::join!(calls, ends);
    assert_eq!((native.text(), wrapped.text()), ("done", "done"));
    assert!(start.elapsed() >= Duration::from_millis(2000));
    assert_eq!(server.exited(SLACK).await.code(), Some(0));
}

#[tokio::test]
async fn a_call_that_takes_longer_than_the_drain_does_not_keep_the_server() {
    let mut server = bed().setting("server.shutdown_ms", 500).start();
    let client = server.client().declaring(json!({}));
    let call = client.tool("slow", json!({"ms": 120_000})).unjudged();
    let sent = tokio::spawn(async move { call.try_send().await.map(|reply| reply.body) });
    client.wait_runs(1).await;
    server.terminate(SLACK).await;
    assert!(!sent.await.unwrap().unwrap_or_default().contains("done"));
}

#[tokio::test]
async fn a_run_that_takes_longer_is_ended_with_the_drain() {
    let mut server = bed().setting("server.shutdown_ms", 1000).start();
    let client = server.client();
    let working = client.create("slow", json!({"ms": 120_000})).await;
    let asking = client.create("ask", json!({"message": "?"})).await;
    client.create("block", json!({"ms": 120_000, "poll": true})).await;
    client.wait_questions(&asking, &["ask"]).await;
    server.terminate(SLACK).await;
    if server.store().is_durable() {
        let server = server.restart().await;
        for id in [working, asking] {
            let read = server.client().task_get(&id).await;
            assert_eq!(
                (read.task_status(), &read.result()["error"]["code"]),
                ("failed", &json!(-32603)),
                "{}",
                read.body
            );
        }
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_stopped_does_not_keep_the_server() {
    let mut server = bed().setting("server.shutdown_ms", 500).start();
    server.client().create("block", json!({"ms": 120_000, "poll": false})).await;
    server.terminate(SLACK).await;
}
