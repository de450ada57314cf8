//! HTTP/2: many requests on one connection, each with its own answer, within the limits.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokkuri_tests::harness::http2::Http2;
use tokkuri_tests::harness::{DEADLINE, LOOK_AGAIN, Server, is_terminal};

use super::bed;

async fn create(server: &Server, http2: &Http2, tool: &str, arguments: Value) -> String {
    let created = http2.send(&server.client().tool(tool, arguments)).await.message().await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tasks_are_created_read_followed_and_cancelled_on_one_connection() {
    let server = bed().start();
    let client = server.client();
    let http2 = Http2::open(server.http()).await;
    let ids = join_all((0..20).map(|n| create(&server, &http2, "gate", json!({"name": format!("g{n}")})))).await;
    let mut streams = Vec::new();
    for id in &ids {
        let mut stream = http2.send(&client.listening(json!({"taskIds": [id]}))).await;
        assert_eq!(stream.status, 200);
        let acknowledged = stream.event().await.unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        streams.push(stream);
    }
    // With twenty streams open, a hundred requests at once find their own answers.
    let reads = (0..100).map(|n| {
        let (client, http2, id) = (&client, &http2, &ids[n % ids.len()]);
        async move {
            let read = http2.send(&client.prepare("tasks/get", json!({"taskId": id})).id(n)).await.message().await;
            assert_eq!((&read["id"], &read["result"]["taskId"]), (&json!(n), &json!(id)), "{read}");
            assert_eq!(read["result"]["status"], "working");
        }
    });
    join_all(reads).await;
    let (opened, cancelled) = ids.split_at(10);
    for n in 0..opened.len() {
        client.open(&format!("g{n}")).await;
    }
    for id in cancelled {
        let cancel = client.prepare("tasks/cancel", json!({"taskId": id}));
        assert!(http2.send(&cancel).await.message().await["result"].is_object());
    }
    for (n, (id, stream)) in ids.iter().zip(&mut streams).enumerate() {
        let end = loop {
            let told = stream.event().await.expect("the end is told");
            if told["params"]["status"].as_str().is_some_and(is_terminal) {
                break told;
            }
        };
        assert_eq!(end["params"]["taskId"], json!(id));
        assert_eq!(end["params"]["status"], if n < 10 { "completed" } else { "cancelled" }, "{end}");
    }
    assert!(!http2.is_closed());
}

#[tokio::test]
async fn no_more_requests_run_at_once_on_a_connection_than_may() {
    let server = bed().setting("server.max_concurrent_requests", 4).start();
    let client = server.client();
    let http2 = Http2::open(server.http()).await;
    // From its first answer on a client knows the limit; what it sends beyond it before that is refused by HTTP/2 itself.
    http2.send(&client.prepare("server/discover", json!({}))).await.message().await;
    let inline = client.declaring(json!({})).tool("count", json!({"name": "c", "ms": 200}));
    let calls = join_all((0..20).map(|_| async { http2.send(&inline).await.message().await }));
    let looks = async {
        let mut most = 0;
        loop {
            let now = client.counter("c").await;
            // Started is read before finished, so the difference is never more than what ran at once.
            most = most.max(now.started - now.finished);
            if now.finished == 20 {
                return most;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let (answers, most) = tokio::join!(calls, tokio::time::timeout(DEADLINE, looks));
    assert!(answers.iter().all(|answer| answer["result"]["content"].is_array()), "{answers:?}");
    let most = most.expect("twenty calls end");
    assert!((2..=4).contains(&most), "{most} at once");
}

#[tokio::test]
async fn who_does_not_read_one_of_many_answers_is_given_up() {
    let server = bed().setting("server.write_timeout_ms", 1_000).start();
    let client = server.client();
    let big = client.declaring(json!({})).tool("big", json!({"bytes": 4_000_000}));
    let http2 = Http2::open(server.http()).await;
    let mut unread = http2.send(&big).await;
    assert!(unread.frame().await.is_some());
    // What else is asked on the connection is answered meanwhile, and does not save it.
    let start = Instant::now();
    let discover = client.prepare("server/discover", json!({}));
    while let Ok(answer) = http2.try_send(&discover).await {
        assert_eq!(answer.status, 200);
        assert!(start.elapsed() < DEADLINE, "it is still waited for");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(start.elapsed() >= Duration::from_millis(900), "given up after {:?}", start.elapsed());
    http2.closed().await;
    drop(unread);
}

#[tokio::test]
async fn who_reads_slowly_or_has_nothing_to_read_is_not_given_up() {
    let server = bed().setting("server.write_timeout_ms", 2_000).start();
    let client = server.client();
    let id = client.create("gate", json!({"name": "g"})).await;
    let http2 = Http2::open(server.http()).await;
    let mut listening = http2.send(&client.listening(json!({"taskIds": [&id]}))).await;
    listening.event().await.unwrap();
    let big = client.declaring(json!({})).tool("big", json!({"bytes": 4_000_000}));
    let mut slowly = http2.send(&big).await;
    let (start, mut bytes) = (Instant::now(), 0);
    while let Some(read) = slowly.frame().await {
        bytes += read;
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    assert!(bytes >= 4_000_000, "{bytes} bytes");
    assert!(start.elapsed() > Duration::from_millis(2_500), "that was not slow: {:?}", start.elapsed());
    client.open("g").await;
    while let Some(told) = listening.event().await {
        if told["params"]["status"] == "completed" {
            return;
        }
    }
    panic!("the stream ended without the end of its task");
}
