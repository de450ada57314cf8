//! A follower at one node of a task that runs at another.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::client::accept;

use super::{all_ways, cluster, report};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_elsewhere_hears_of_the_end_promptly() {
    let cluster = cluster().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let mut times = Vec::new();
    for round in 0..100 {
        let gate = format!("g{round}");
        let id = a.create("gate", json!({"name": gate})).await;
        let mut stream = b.follow(&[&id]).await;
        let opening = async {
            a.open(&gate).await;
            Instant::now()
        };
        let hearing = async {
            let states = stream.to_the_end().await;
            assert_eq!(states.last().unwrap()["status"], "completed");
            Instant::now()
        };
        let (opened, heard) = tokio::join!(opening, hearing);
        times.push(heard.saturating_duration_since(opened));
    }
    let p99 = report("from the end of a task to a follower at another node having heard of it", times);
    assert!(p99 < Duration::from_secs(1), "{p99:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_elsewhere_never_misses_the_end() {
    for (how, options) in all_ways() {
        let cluster = options.start(3);
        let [a, b, c] = [0, 1, 2].map(|node| cluster.client(node));
        for round in 0..10 {
            // Ended by a cancel at a third node, by itself, and by itself before anybody followed.
            let cancelled = a.create("ask", json!({"message": "Who?"})).await;
            let gate = format!("g{round}");
            let completed = a.create("gate", json!({"name": gate})).await;
            let before = a.create("slow", json!({"ms": 1})).await;
            a.wait_end(&before).await;
            let mut streams = Vec::new();
            for id in [&cancelled, &completed, &before] {
                streams.push(b.follow(&[id]).await);
            }
            c.task_cancel(&cancelled).await.acknowledged();
            a.open(&gate).await;
            for (mut stream, status) in streams.into_iter().zip(["cancelled", "completed", "completed"]) {
                let states = stream.to_the_end().await;
                assert_eq!(states.last().unwrap()["status"], status, "{how}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_elsewhere_hears_questions_and_that_they_are_answered() {
    for (how, options) in all_ways() {
        let cluster = options.start(2);
        let (a, b) = (cluster.client(0), cluster.client(1));
        let id = a.create("ask_many", json!({"n": 2, "parallel": false})).await;
        let mut stream = b.follow(&[&id]).await;
        for key in ["q1", "q2"] {
            while stream.task().await["inputRequests"].get(key).is_none() {}
            b.task_update(&id, json!({key: accept(json!({"name": key}))})).await.acknowledged();
        }
        let states = stream.to_the_end().await;
        assert_eq!(states.last().unwrap()["result"]["content"][0]["text"], "q1,q2", "{how}");
    }
}
