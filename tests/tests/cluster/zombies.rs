//! H20: a node that stands still past its lease, and goes on.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::client::accept;

use super::cluster;
use super::partitions::once_it_creates;

/// Longer than a lease, and than it takes to begin.
const LATE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombie_is_refused_and_told() {
    let cluster = cluster().lease_ms(2000).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let asks = a.create("restartable_ask", json!({"name": "asks", "n": 1})).await;
    a.wait_questions(&asks, &["q1"]).await;
    let counts = a.create("restartable", json!({"name": "counts", "ms": 600_000})).await;
    a.wait_counter("counts", |counter| counter.started == 1).await;
    let lost = a.create("slow", json!({"ms": 600_000})).await;

    cluster.freeze(0);
    b.wait_counter("asks", |counter| counter.started == 1).await;
    b.wait_counter("counts", |counter| counter.started == 1).await;
    let failed = b.wait_end(&lost).await;
    assert_eq!(failed.task_status(), "failed");
    b.wait_questions(&asks, &["q1"]).await;
    b.task_update(&asks, json!({"q1": accept(json!({"name": "Ada"}))})).await.acknowledged();
    let completed = b.wait_end(&asks).await;
    assert_eq!(completed.task_text(), "Ada");

    cluster.thaw(0);
    let counter = a.wait_counter("counts", |counter| counter.lost + counter.cancelled > 0).await;
    assert_eq!((counter.lost, counter.finished), (1, 0), "its run is told that it is lost");
    a.wait_runs(0).await;
    for client in [&a, &b] {
        assert_eq!(client.task_get(&asks).await.raw(&["result"]), completed.raw(&["result"]));
        assert_eq!(client.task_get(&lost).await.raw(&["result"]), failed.raw(&["result"]));
        assert_eq!(client.task_get(&counts).await.task_status(), "working");
    }
    let counter = b.counter("counts").await;
    assert_eq!((counter.started, counter.lost, counter.cancelled), (1, 0, 0), "the new attempt is left alone");
    // The zombie is a node again, under another name.
    let id = once_it_creates(&a, "slow", json!({"ms": 1})).await;
    assert_eq!(b.wait_end(&id).await.task_text(), "done");
    b.task_cancel(&counts).await.acknowledged();
    b.wait_runs(0).await;
}

/// Its runs end while it stands still: what they would write is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_zombie_wrote_too_late_is_not_there() {
    let cluster = cluster().lease_ms(2000).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(a.create("count", json!({"name": "late", "ms": LATE.as_millis()})).await);
    }
    a.wait_counter("late", |counter| counter.started == 5).await;
    let began = Instant::now();
    cluster.freeze(0);
    let mut ends = Vec::new();
    for id in &tasks {
        ends.push(b.wait_end(id).await);
    }
    // Their time is over now: all of them want to complete at once.
    tokio::time::sleep_until((began + LATE).into()).await;
    cluster.thaw(0);
    a.wait_runs(0).await;
    for (id, end) in tasks.iter().zip(&ends) {
        assert_eq!(end.task_status(), "failed");
        for client in [&a, &b] {
            assert_eq!(client.task_get(id).await.raw(&["result"]), end.raw(&["result"]));
        }
    }
}
