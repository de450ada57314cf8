//! H21: a cancel at a node that does not own the run. The acknowledgement comes at once, and the run learns of it promptly, or
//! with the next look at the store if every signal is lost.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokkuri_tests::harness::cluster::Options;

use super::{POLL, cluster, report};

/// From the acknowledgement at one node to the run at another one having observed the cancel, so many times. The run notes the
/// time itself, so that nobody's polling is measured.
async fn observed_after(what: &str, options: Options, rounds: usize) -> Duration {
    let cluster = options.start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let mut times = Vec::new();
    for round in 0..rounds {
        let name = format!("c{round}");
        let id = a.create("count", json!({"name": name, "ms": 600_000})).await;
        a.wait_counter(&name, |counter| counter.started == 1).await;
        b.task_cancel(&id).await.acknowledged();
        let acknowledged = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        for client in [&b, &a] {
            assert_eq!(client.task_get(&id).await.task_status(), "cancelled");
        }
        a.wait_counter(&name, |counter| counter.cancelled == 1).await;
        let observed = Duration::from_micros(a.cancelled_at_us(&name).await);
        times.push(observed.saturating_sub(acknowledged));
    }
    a.wait_runs(0).await;
    report(&format!("from the acknowledgement of a cancel to the run elsewhere having observed it, {what}"), times)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_another_node_reaches_the_run_promptly() {
    let p99 = observed_after("with all signals (goal: p99 20 ms)", cluster(), 300).await;
    assert!(p99 < Duration::from_secs(1), "promptly is not {p99:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_signals_between_nodes_the_database_tells_the_run() {
    let p99 = observed_after("without signals between nodes", cluster().without_signals(), 100).await;
    assert!(p99 < Duration::from_secs(10), "{p99:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_signal_a_cancel_is_found_with_the_next_look() {
    let options = cluster().without_signals().without_notify();
    let what = format!("without any signal (goal: one poll interval, {POLL:?}, and the query)");
    let p99 = observed_after(&what, options, 40).await;
    assert!(p99 < 50 * POLL, "{p99:?}");
}
