//! The limit of live tasks, raced on several nodes.

use futures_util::future::join_all;
use serde_json::json;
use tokkuri_tests::harness::{Client, Issuer};

use super::cluster;

const LIMIT: usize = 5;

/// Creates required tasks at once at all of these, and returns those that got a place.
async fn create_at_once(clients: &[Client], each: usize) -> Vec<String> {
    let calls =
        clients.iter().flat_map(|client| (0..each).map(|_| client.call_tool("slow_required", json!({"ms": 60_000}))));
    let replies = join_all(calls).await;
    let (created, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.message.get("result").is_some());
    for reply in refused {
        reply.refused(200, -32600);
    }
    created.into_iter().map(|reply| reply.task_id()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_holds_when_nodes_admit_at_once() {
    let cluster = cluster().setting("tasks.max_per_principal", LIMIT).start(3);
    let clients = [0, 1, 2].map(|node| cluster.client(node));
    for _ in 0..20 {
        let created = create_at_once(&clients, 6).await;
        assert_eq!(created.len(), LIMIT);
        // Every place is given back once, wherever the cancel comes.
        let cancels = created.iter().zip(clients.iter().cycle()).map(|(id, client)| client.task_cancel(id));
        for reply in join_all(cancels).await {
            reply.acknowledged();
        }
    }
    assert_eq!(create_at_once(&clients[..1], LIMIT + 1).await.len(), LIMIT);
    clients[2].call_tool("slow_required", json!({"ms": 1})).await.refused(200, -32600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_at_the_limit_does_not_take_the_places_of_another() {
    let issuer = Issuer::new();
    let config = issuer.config("");
    let cluster = cluster().bed(|bed| bed.config(config)).setting("tasks.max_per_principal", LIMIT).start(2);
    let of = |name: &str| [0, 1].map(|node| cluster.client(node).with_token(&issuer.token(name).text()));
    let (alice, bob) = (of("alice"), of("bob"));
    let (alices, bobs) = tokio::join!(create_at_once(&alice, 10), create_at_once(&bob, 10));
    assert_eq!((alices.len(), bobs.len()), (LIMIT, LIMIT));
}
