//! Owners that share the places of a node: one with a long queue holds nobody else up by more than one run.

use serde_json::json;
use tokkuri_tests::harness::{Client, Issuer, Reply, Server};

use super::bed;

const WAITS: &str = "Waiting for a free place to run.";

struct World {
    server: Server,
    issuer: Issuer,
}

impl World {
    /// A server that runs one task at a time.
    fn new() -> Self {
        let issuer = Issuer::new();
        let server = bed().config(issuer.config("")).setting("tasks.max_runs", 1).start();
        Self { server, issuer }
    }

    fn client(&self, sub: &str) -> Client {
        self.server.near().with_token(&self.issuer.token(sub).text())
    }
}

fn waits(reply: &Reply) -> bool {
    assert_eq!(reply.task_status(), "working", "{}", reply.body);
    reply.result()["statusMessage"] == WAITS
}

/// A task that has to wait for its place, and says so.
async fn queued(client: &Client, tool: &str, arguments: serde_json::Value) -> String {
    let reply = client.call_tool(tool, arguments).await;
    let id = reply.task_id();
    assert!(waits(&reply), "it has a place: {}", reply.body);
    assert!(waits(&client.task_get(&id).await));
    id
}

async fn runs(client: &Client, id: &str) {
    client.wait(id, "its place", |reply| !waits(reply)).await;
}

#[tokio::test]
async fn whoever_floods_the_queue_holds_another_owner_up_by_one_run() {
    let world = World::new();
    let (alice, bob) = (world.client("alice"), world.client("bob"));
    let first = alice.create("gate", json!({"name": "first"})).await;
    let mut flood = Vec::new();
    for n in 0..20 {
        flood.push(queued(&alice, "gate", json!({"name": format!("flood {n}")})).await);
    }
    let single = queued(&bob, "gate", json!({"name": "single"})).await;
    assert!(!waits(&alice.task_get(&first).await));

    alice.open("first").await;
    runs(&alice, &flood[0]).await;
    assert!(waits(&bob.task_get(&single).await), "she was there first");
    alice.open("flood 0").await;
    runs(&bob, &single).await;
    for id in &flood[1..] {
        assert!(waits(&alice.task_get(id).await), "one task runs at a time");
    }
    // And her second task comes next, not her last.
    bob.open("single").await;
    assert_eq!(bob.wait_end(&single).await.task_status(), "completed");
    runs(&alice, &flood[1]).await;
    assert!(waits(&alice.task_get(&flood[2]).await));
}

#[tokio::test]
async fn owners_of_one_user_take_turns_as_well() {
    let world = World::new();
    let alice = world.client("alice");
    let sibling = world.server.near().with_token(&world.issuer.token("alice").client("c2").text());
    alice.create("gate", json!({"name": "first"})).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(queued(&alice, "gate", json!({"name": format!("flood {n}")})).await);
    }
    let single = queued(&sibling, "gate", json!({"name": "single"})).await;
    alice.open("first").await;
    runs(&alice, &ids[0]).await;
    alice.open("flood 0").await;
    runs(&sibling, &single).await;
    assert!(waits(&alice.task_get(&ids[1]).await));
}

#[tokio::test]
async fn what_is_cancelled_in_the_queue_never_starts_and_makes_way() {
    let world = World::new();
    let (alice, bob) = (world.client("alice"), world.client("bob"));
    alice.create("gate", json!({"name": "first"})).await;
    let mut flood = Vec::new();
    for _ in 0..20 {
        flood.push(queued(&alice, "count", json!({"name": "flood"})).await);
    }
    let single = queued(&bob, "count", json!({"name": "single"})).await;
    for id in &flood {
        alice.task_cancel(id).await.acknowledged();
    }
    // The one that runs is still where it was, so nobody else has started.
    assert_eq!((alice.counter("flood").await.started, bob.counter("single").await.started), (0, 0));
    alice.open("first").await;
    assert_eq!(bob.wait_end(&single).await.task_status(), "completed");
    assert_eq!((alice.counter("flood").await.started, bob.counter("single").await.started), (0, 1));
    for id in &flood {
        assert_eq!(alice.task_get(id).await.task_status(), "cancelled");
    }
    // Nothing of them is left in the queue.
    let next = alice.create("count", json!({"name": "flood"})).await;
    assert_eq!(alice.wait_end(&next).await.task_text(), "counted");
}
