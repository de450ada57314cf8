//! H22: the count of live tasks never passes the limit and never goes below none, whatever races.

use std::time::{Duration, Instant};

use serde_json::json;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, DEADLINE, is_terminal};

use super::bed;

/// Creates required tasks at once, and returns the ids of those that got a place.
async fn create_at_once(client: &Client, n: usize) -> Vec<String> {
    let calls = (0..n).map(|_| client.call_tool("slow_required", json!({"ms": 60_000})));
    let replies = futures_util::future::join_all(calls).await;
    let created = replies.iter().filter(|reply| reply.message.get("result").is_some());
    created.map(|reply| reply.task_id()).collect()
}

/// Asserts that exactly `free` places are free, and leaves them so.
async fn assert_free(client: &Client, free: usize) {
    let created = create_at_once(client, free + 3).await;
    assert_eq!(created.len(), free, "places that are free");
    for id in created {
        client.task_cancel(&id).await.acknowledged();
    }
}

#[tokio::test]
async fn of_twenty_creates_at_once_with_one_place_left_one_succeeds() {
    let server = bed().setting("tasks.max_per_principal", 5).start();
    let client = server.client();
    assert_eq!(create_at_once(&client, 4).await.len(), 4);
    for _ in 0..20 {
        let created = create_at_once(&client, 20).await;
        assert_eq!(created.len(), 1);
        client.task_cancel(&created[0]).await.acknowledged();
    }
    assert_free(&client, 1).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_completed_and_expired_at_once_frees_one_place() {
    const TTL: Duration = Duration::from_millis(150);
    let server = bed().setting("tasks.max_per_principal", 2).setting("tasks.ttl_ms", 150).start();
    let client = server.client();
    for round in 0..40 {
        let gate = format!("g{round}");
        let id = client.create("gate", json!({"name": gate})).await;
        tokio::time::sleep(Duration::from_millis(130 + round % 40)).await;
        let (_, cancelled, ()) = tokio::join!(client.task_cancel(&id), client.task_cancel(&id), client.open(&gate));
        let code = cancelled.message["error"]["code"].as_i64();
        assert!(matches!(code, None | Some(-32602)), "acknowledged, or gone: {}", cancelled.body);
        let state = client.task_get(&id).await;
        let gone = state.message["error"]["code"] == -32602;
        assert!(gone || is_terminal(state.task_status()), "{}", state.body);
        let begun = Instant::now();
        let created = create_at_once(&client, 5).await;
        // A machine that takes longer than a task lives sees places come free meanwhile.
        let slow = begun.elapsed() >= TTL;
        assert!(created.len() == 2 || (slow && created.len() > 2), "{} of 2 places are free", created.len());
        for id in created {
            client.task_cancel(&id).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_cut_in_the_middle_of_a_create_leave_every_place_free() {
    const ROUNDS: u64 = 1_000;
    let server = bed().setting("tasks.max_per_principal", 8).start();
    let client = server.client();
    let request = client.tool("slow_required", json!({"ms": 60_000})).to_http();
    let mut cuts = tokio::task::JoinSet::new();
    for lane in 0..8_u64 {
        let (request, address) = (request.clone(), server.http());
        cuts.spawn(async move {
            for round in (lane..ROUNDS).step_by(8) {
                let mut connection = Connection::open(address).await;
                // From the first byte to a moment after the whole of it.
                let at = usize::try_from(round * 7919).expect("small") % (request.len() + request.len() / 2);
                connection.write(&request[..at.min(request.len())]).await;
                if at > request.len() {
                    tokio::time::sleep(Duration::from_micros(round % 700)).await;
                }
                drop(connection);
            }
        });
    }
    while let Some(cut) = cuts.join_next().await {
        cut.expect("no cut panics");
    }
    // A reply that was handed to the system before the cut counts as delivered: those tasks go on, and end with their ttl.
    let start = Instant::now();
    loop {
        let alive = client.runs().await;
        assert!(alive <= 8, "the limit held: {alive}");
        let created = create_at_once(&client, 20).await;
        let free = created.len() as u64;
        for id in &created {
            client.task_cancel(id).await.acknowledged();
        }
        if free + alive == 8 {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "{free} places are free while {alive} tasks run");
    }
}
