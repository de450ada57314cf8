//! Who may follow a task, and for how long: `subscriptions/listen` with `taskIds` on an endpoint that asks for tokens.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::token::{METADATA, RESOURCE, SIBLING_RESOURCE, Signer, Token};
use tokkuri_tests::harness::{Client, DEADLINE, Issuer, LOOK_AGAIN, Listening, Server, caps};

use super::{NEVER, bed};

struct World {
    issuer: Issuer,
    server: Server,
}

impl World {
    fn new() -> Self {
        let issuer = Issuer::new();
        let server = bed().config(issuer.config("")).start();
        Self { issuer, server }
    }

    fn with(&self, token: &Token) -> Client {
        self.server.client().with_token(&token.text())
    }

    /// The right owner with the right scope.
    fn owner(&self) -> Token {
        self.issuer.token("alice").scopes("files:write")
    }

    /// Everybody who shares something with the owner, but is not them.
    fn others(&self) -> Vec<(&'static str, Token)> {
        vec![
            ("stranger", self.issuer.token("bob").scopes("files:write")),
            ("stranger lacking scope", self.issuer.token("bob")),
            ("sibling client", self.owner().client("c2")),
            ("no client", self.owner().claim("client_id", Value::Null)),
            ("sibling resource", self.owner().audience(SIBLING_RESOURCE)),
            ("sibling lacking scope", self.owner().client("c2").scopes("files:read")),
        ]
    }
}

fn insufficient(scopes: &str) -> String {
    format!(r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}""#)
}

/// Listens to these tasks under the request id 7; the stream, and its acknowledgement to the byte.
async fn listen(client: &Client, ids: &[&str]) -> (Listening, String) {
    let mut stream = client.listening(json!({"taskIds": ids})).id(7).listen().await;
    let (text, message) = stream.raw().await;
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    (stream, text)
}

/// Reads a stream until the task `marker` has ended: everything that comes has to be of it.
async fn hears_only(stream: &mut Listening, marker: &str, who: &str) {
    for state in stream.to_the_end().await {
        assert_eq!(state["taskId"], marker, "{who} hears of what is not theirs");
    }
}

#[tokio::test]
async fn no_token_and_no_bad_one_opens_a_stream() {
    let world = World::new();
    let id = world.with(&world.owner()).create("scoped_ask", json!({"message": "who?"})).await;
    let listening = |client: Client| client.listening(json!({"taskIds": [id]}));
    let reply = listening(world.server.client()).send().await;
    assert_eq!((reply.status, reply.body.as_str()), (401, ""));
    assert_eq!(reply.headers["www-authenticate"], format!(r#"Bearer resource_metadata="{METADATA}""#));
    let bad = [
        ("no signature", world.owner().unsigned()),
        ("forged", world.owner().signed_by(&Signer::ed("mallory")).text()),
        ("expired", world.owner().expires_in(-31).text()),
        ("not yet", world.owner().claim("nbf", 4_000_000_000_u64).text()),
        ("wrong audience", world.owner().audience("https://other.example/mcp").text()),
        ("audience but for a slash", world.owner().audience(&format!("{RESOURCE}/")).text()),
    ];
    for (what, token) in bad {
        let reply = listening(world.server.client().with_token(&token)).send().await;
        assert_eq!((reply.status, reply.body.as_str()), (401, ""), "{what}");
        let challenge = format!(r#"Bearer error="invalid_token", resource_metadata="{METADATA}""#);
        assert_eq!(reply.headers["www-authenticate"], challenge, "{what}");
    }
}

/// H14
#[tokio::test]
async fn whoever_is_not_the_owner_is_granted_nothing_and_never_hears_of_the_task() {
    let world = World::new();
    let alice = world.with(&world.owner());
    let id = alice.create("scoped_ask", json!({"message": "who?"})).await;
    alice.wait_questions(&id, &["ask"]).await;

    let mut listeners = Vec::new();
    for (n, (who, token)) in world.others().into_iter().enumerate() {
        let client = world.with(&token);
        // A task of their own on the same stream: once it is over, whatever else there was would have come.
        let name = format!("marker {n}");
        let marker = client.create("gate", json!({"name": name})).await;
        let (theirs, ack) = listen(&client, &[&id, &marker]).await;
        let (_never, never_ack) = listen(&client, &[NEVER, &marker]).await;
        assert_eq!(ack, never_ack, "{who}");
        assert!(!ack.contains(&id), "{who}: {ack}");
        let (alone, alone_ack) = listen(&client, &[&id]).await;
        let (never, never_ack) = listen(&client, &[NEVER]).await;
        assert_eq!((alone.headers(), alone_ack), (never.headers(), never_ack), "{who}");
        listeners.push((who, client, name, marker, theirs));
    }

    let mut own = alice.follow(&[&id]).await;
    assert_eq!(own.task().await["status"], "input_required");
    alice.task_update(&id, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    let states = own.to_the_end().await;
    assert_eq!(states.last().unwrap()["result"]["content"][0]["text"], "hello Ada");
    for (who, client, name, marker, mut stream) in listeners {
        client.open(&name).await;
        hears_only(&mut stream, &marker, who).await;
    }
}

#[tokio::test]
async fn the_owner_without_the_tools_scope_is_told_which_it_is_and_with_it_follows() {
    let world = World::new();
    let (rich, poor) = (world.with(&world.owner()), world.with(&world.issuer.token("alice").scopes("files:read")));
    let id = rich.create("scoped_ask", json!({"message": "who?"})).await;
    let plain = poor.create("gate", json!({"name": "g"})).await;
    for ids in [json!([id]), json!([plain, id]), json!([NEVER, id, plain])] {
        for filter in [json!({"taskIds": ids}), json!({"taskIds": ids, "toolsListChanged": true})] {
            let reply = poor.listening(filter).send().await;
            assert_eq!((reply.status, reply.body.as_str()), (403, ""), "{ids}");
            assert_eq!(reply.headers["www-authenticate"], insufficient("files:write"));
        }
    }
    // What needs no scope is followed without one.
    let mut stream = poor.follow(&[&plain]).await;
    rich.open("g").await;
    assert_eq!(stream.to_the_end().await.last().unwrap()["status"], "completed");

    let mut stream = rich.follow(&[&id, &plain]).await;
    assert_eq!([stream.task().await["taskId"].clone(), stream.task().await["taskId"].clone()], [id.clone(), plain]);
    rich.task_cancel(&id).await.acknowledged();
    let states = stream.to_the_end().await;
    assert_eq!((&states[0]["taskId"], &states[0]["status"]), (&json!(id), &json!("cancelled")));
}

#[tokio::test]
async fn a_listen_looks_at_the_capability_then_the_owner_then_the_scope() {
    let world = World::new();
    let id = world.with(&world.owner()).create("scoped_ask", json!({"message": "who?"})).await;
    let poor = world.with(&world.issuer.token("alice"));
    let stranger = world.with(&world.issuer.token("bob"));
    for client in [&poor, &stranger] {
        let undeclared = client.declaring(caps::without_tasks());
        undeclared.listening(json!({"taskIds": [id]})).send().await.refused_for_want_of_tasks();
    }
    // To a stranger the task does not exist, so nothing is said of its scopes.
    stranger.follow(&[]).await;
    let mut granted = stranger.listening(json!({"taskIds": [id]})).listen().await;
    assert_eq!(granted.acknowledged().await, json!({"taskIds": []}));
    let reply = poor.listening(json!({"taskIds": [id]})).send().await;
    assert_eq!(
        (reply.status, &reply.headers["www-authenticate"]),
        (403, &insufficient("files:write").parse().unwrap())
    );
}

/// H15
#[tokio::test]
async fn a_refreshed_token_follows_what_the_one_before_it_created() {
    let world = World::new();
    let id = world.with(&world.owner()).create("gate", json!({"name": "g"})).await;
    let refreshed = world.owner().claim("jti", "second").scopes("other").expires_in(7200);
    let client = world.with(&refreshed).on_a_new_connection();
    let mut stream = client.follow(&[&id]).await;
    client.open("g").await;
    assert_eq!(stream.to_the_end().await.last().unwrap()["status"], "completed");
}

#[tokio::test]
async fn a_stream_ends_with_its_result_when_the_token_does_and_its_place_is_free() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).setting("server.max_streams_per_principal", 3).start();
    let client = |seconds| server.near().with_token(&issuer.token("alice").expires_in(seconds).text());
    let lasting = client(3600);
    let id = lasting.create("gate", json!({"name": "g"})).await;
    // The clock of the issuer may be off by half a minute: this one is accepted for some eight seconds more.
    let short = client(-22);
    let mut tasks = short.follow(&[&id]).await;
    let mut both = short.listening(json!({"taskIds": [id], "toolsListChanged": true})).listen().await;
    let mut others = short.listening(json!({"toolsListChanged": true})).listen().await;
    both.acknowledged().await;
    others.acknowledged().await;
    assert_eq!(lasting.listening(json!({"taskIds": [id]})).send().await.refused(200, -32600)["code"], -32600);
    for stream in [&mut tasks, &mut both] {
        assert_eq!(stream.task().await["status"], "working");
        stream.ended().await;
    }
    others.closed().await;
    let refused = short.listening(json!({"taskIds": [id]})).send().await;
    assert_eq!((refused.status, refused.body.as_str()), (401, ""));
    // The task goes on, and whoever comes with a token that is good follows it to its end.
    let start = std::time::Instant::now();
    let mut again = loop {
        if lasting.listening(json!({"taskIds": [id]})).is_stream().await {
            break lasting.follow(&[&id]).await;
        }
        assert!(start.elapsed() < DEADLINE, "the places of streams that have ended are not free");
        tokio::time::sleep(LOOK_AGAIN).await;
    };
    lasting.open("g").await;
    assert_eq!(again.to_the_end().await.last().unwrap()["status"], "completed");
}

#[tokio::test]
async fn a_shutdown_ends_every_owners_stream_with_its_result() {
    let issuer = Issuer::new();
    let mut server = bed().config(issuer.config("")).setting("server.shutdown_ms", 300).start();
    let client = |sub: &str| server.near().with_token(&issuer.token(sub).text());
    let (alice, bob) = (client("alice"), client("bob"));
    let id = alice.create("slow", json!({"ms": 120_000})).await;
    let mut own = alice.follow(&[&id]).await;
    let mut theirs = bob.listening(json!({"taskIds": [id]})).listen().await;
    assert_eq!(theirs.acknowledged().await, json!({"taskIds": []}));
    server.signal(libc::SIGTERM);
    assert_eq!(own.to_the_end().await.last().unwrap()["status"], "failed");
    own.ended().await;
    // What the shutdown brought about is told to the owner alone.
    theirs.ended().await;
    assert_eq!(server.exited(DEADLINE).await.code(), Some(0));
}
