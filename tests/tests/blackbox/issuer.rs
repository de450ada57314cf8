//! Keys that are fetched from the issuer: over TLS, from the one configured place, no oftener than need be, and never in the way
//! of whoever has a key that is known.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tokkuri_tests::harness::token::{METADATA, Signer, Token};
use tokkuri_tests::harness::{Client, DEADLINE, Issuer, KeyServer, LOOK_AGAIN, Reply, Server};

use super::bed;

struct World {
    issuer: Issuer,
    keys: KeyServer,
    server: Server,
}

impl World {
    /// A server that trusts the authority of the issuer's certificate, and knows no key yet.
    async fn new() -> Self {
        let issuer = Issuer::new();
        let keys = KeyServer::start(&[issuer.signer().clone()]).await;
        let server =
            bed().config(issuer.config_with_url(&keys.url())).env("SSL_CERT_FILE", keys.root().display()).start();
        Self { issuer, keys, server }
    }

    fn with(&self, token: &Token) -> Client {
        self.server.near().with_token(&token.text())
    }

    fn by(&self, kid: &str) -> Client {
        self.with(&self.issuer.token("alice").signed_by(&Signer::ed(kid)))
    }
}

#[track_caller]
fn invalid(reply: &Reply) {
    let challenge = format!(r#"Bearer error="invalid_token", resource_metadata="{METADATA}""#);
    assert_eq!((reply.status, reply.body.as_str()), (401, ""));
    assert_eq!(reply.headers["www-authenticate"], challenge);
}

/// It is not the token's fault: nobody is told that it is bad.
#[track_caller]
fn unavailable(reply: &Reply) {
    assert_eq!((reply.status, reply.body.as_str()), (503, ""));
    assert!(!reply.headers.contains_key("www-authenticate"));
    let seconds: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..60).contains(&seconds));
}

/// Asks for something; the schemas do not know what is said without keys.
async fn ask(client: &Client) -> Reply {
    client.prepare("tools/list", json!({})).unjudged().send().await
}

/// Asks until the token is accepted: the key set is not read all the time.
async fn accepted(client: &Client) {
    let start = Instant::now();
    loop {
        let reply = ask(client).await;
        if reply.status == 200 {
            return;
        }
        assert!(start.elapsed() < DEADLINE, "HTTP {} {}", reply.status, reply.body);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::test]
async fn keys_are_fetched_when_they_are_needed_kept_and_rotated() {
    let world = World::new().await;
    assert_eq!(world.keys.asked(), 0, "nobody has come yet");
    let alice = world.with(&world.issuer.token("alice"));
    // Many at once wait for the one reading.
    for reply in join_all((0..20).map(|_| alice.tools_list())).await {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let id = alice.create("slow", json!({"ms": 120_000})).await;
    assert_eq!(world.keys.asked(), 1);

    world.keys.publish(&[Signer::ed("second")]);
    let second = world.by("second");
    accepted(&second).await;
    assert_eq!(world.keys.asked(), 2);
    invalid(&alice.tools_list().await);
    assert_eq!(second.task_get(&id).await.task_status(), "working", "the owner is who it was");
    for head in world.keys.heads() {
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("get /keys http/1.1\r\n"), "{head}");
        assert!(!head.contains("authorization") && !head.contains("bearer"), "tokens go nowhere: {head}");
    }
}

#[tokio::test]
async fn made_up_keys_cause_one_reading_however_many_there_are() {
    let world = World::new().await;
    let alice = world.with(&world.issuer.token("alice"));
    assert_eq!(alice.tools_list().await.status, 200);
    let clients: Vec<Client> = (0..100).map(|n| world.by(&format!("made up {n}"))).collect();
    let start = Instant::now();
    for reply in join_all(clients.iter().map(Client::tools_list)).await {
        invalid(&reply);
    }
    // Ten seconds lie between two readings: how many there may have been follows from how long this took.
    let most = 1 + 1 + usize::try_from(start.elapsed().as_secs() / 10).unwrap();
    assert!(world.keys.asked() <= most, "{} readings", world.keys.asked());
    assert_eq!(alice.tools_list().await.status, 200);
}

#[tokio::test]
async fn an_issuer_that_hangs_holds_up_nobody_whose_key_is_known() {
    let world = World::new().await;
    let alice = world.with(&world.issuer.token("alice"));
    assert_eq!(alice.tools_list().await.status, 200);
    world.keys.hang();
    let unknown = world.by("second");
    // Past the pause the set is asked for again, and the one who needs it waits.
    let (refused, ()) = tokio::join!(
        async {
            loop {
                let start = Instant::now();
                let reply = unknown.tools_list().await;
                if world.keys.asked() > 1 {
                    return (reply, start.elapsed());
                }
                invalid(&reply);
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        },
        async {
            world.keys.wait_asked(2).await;
            let start = Instant::now();
            for _ in 0..20 {
                assert_eq!(alice.tools_list().await.status, 200);
            }
            assert!(start.elapsed() < Duration::from_secs(4), "they waited for the issuer: {:?}", start.elapsed());
        }
    );
    invalid(&refused.0);
    assert!(refused.1 < Duration::from_secs(10), "it was waited for {:?}", refused.1);
    world.keys.publish(&[world.issuer.signer().clone(), Signer::ed("second")]);
    accepted(&unknown).await;
}

#[tokio::test]
async fn an_issuer_that_never_answered_is_nobodys_fault_and_is_asked_again() {
    let world = World::new().await;
    let alice = world.with(&world.issuer.token("alice"));
    world.keys.hang();
    let start = Instant::now();
    for reply in join_all((0..20).map(|_| ask(&alice))).await {
        unavailable(&reply);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "twenty waited {:?} for one reading", start.elapsed());
    assert_eq!(world.keys.asked(), 1);
    world.keys.publish(&[world.issuer.signer().clone()]);
    accepted(&alice).await;
}

#[tokio::test]
async fn an_issuer_whose_certificate_nobody_vouches_for_is_not_believed() {
    let issuer = Issuer::new();
    let keys = KeyServer::start(&[issuer.signer().clone()]).await;
    let other = KeyServer::start(&[]).await;
    let server = bed().config(issuer.config_with_url(&keys.url())).env("SSL_CERT_FILE", other.root().display()).start();
    let alice = server.near().with_token(&issuer.token("alice").text());
    unavailable(&ask(&alice).await);
    assert_eq!(keys.asked(), 0, "the handshake fails before anything is asked");
    let start = Instant::now();
    while !server.log().contains("the issuer's keys could not be read") {
        assert!(start.elapsed() < DEADLINE, "an operator is not told: {}", server.log());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::test]
async fn what_is_no_key_set_replaces_none_and_no_other_place_is_asked() {
    let elsewhere = KeyServer::start(&[Signer::ed("second")]).await;
    let place = elsewhere.url();
    // More than anybody's keys.
    let endless = format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(300 << 10));
    tokio::join!(
        keys_stay_when_it(|keys| keys.redirect(&place)),
        keys_stay_when_it(|keys| keys.fail(500)),
        keys_stay_when_it(|keys| keys.say("<html>")),
        keys_stay_when_it(|keys| keys.say(&*endless)),
    );
    assert_eq!(elsewhere.asked(), 0);
}

async fn keys_stay_when_it(breaks: impl Fn(&KeyServer)) {
    let world = World::new().await;
    let alice = world.with(&world.issuer.token("alice"));
    assert_eq!(alice.tools_list().await.status, 200);
    breaks(&world.keys);
    let second = world.by("second");
    let start = Instant::now();
    while world.keys.asked() < 2 {
        invalid(&second.tools_list().await);
        assert!(start.elapsed() < DEADLINE, "the keys are never read again");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    invalid(&second.tools_list().await);
    assert_eq!(alice.tools_list().await.status, 200, "the keys at hand stay in use");
}
