//! Nodes whose clocks are wrong by hours: the database's time is the only one.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::cluster;

const HOUR: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_disagree_decide_nothing() {
    let options = cluster().lease_ms(2000).setting("tasks.ttl_ms", 4000).setting("tasks.keep_ms", 0);
    let mut cluster = options.clock_offset_ms(0, -2 * HOUR).clock_offset_ms(1, 2 * HOUR).start(3);
    let [a, b, c] = [0, 1, 2].map(|node| cluster.client(node));
    let mut tasks = Vec::new();
    for client in [&a, &b, &c] {
        tasks.push(client.create("slow", json!({"ms": 60_000})).await);
    }
    for id in &tasks {
        let mut states = Vec::new();
        for client in [&a, &b, &c] {
            states.push(client.task_get(id).await);
        }
        let created: jiff::Timestamp = states[0].result()["createdAt"].as_str().unwrap().parse().unwrap();
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert!((now - created.as_millisecond()).abs() < 60_000, "created by the database's time: {created}");
        for state in &states {
            assert_eq!(state.task_status(), "working", "nobody expired it, and nobody took it over: {}", state.body);
            assert_eq!(state.result()["createdAt"], states[0].result()["createdAt"]);
        }
    }
    // A cancel at one with a clock that is ahead of what one that is behind will write.
    b.task_cancel(&tasks[0]).await.acknowledged();
    a.wait_runs(0).await;
    let cancelled = c.task_get(&tasks[0]).await;
    assert_eq!(cancelled.task_status(), "cancelled");
    // A node is killed: found by the database's time, by those whose clocks are wrong.
    cluster.kill(2).await;
    assert_eq!(a.wait_end(&tasks[2]).await.task_status(), "failed");
    assert_eq!(b.task_get(&tasks[1]).await.task_status(), "working");
    // And the time to live is over for all of them at once.
    for id in &tasks {
        a.wait_gone(id).await;
        b.task_get(id).await.refused(200, -32602);
    }
    b.wait_runs(0).await;
}
