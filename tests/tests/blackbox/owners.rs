//! Whose task it is: to anybody but its owner it never existed.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::token::SIBLING_RESOURCE;
use tokkuri_tests::harness::{Client, EarlierClient, Issuer, Prepared, Server, caps};

use super::{NEVER, bed};

fn guarded(issuer: &Issuer) -> Server {
    bed().config(issuer.config("")).start()
}

/// Everybody who shares something with `alice` at client `c1` and the canonical resource, but is not that owner.
fn others(server: &Server, issuer: &Issuer) -> [Client; 4] {
    let alice = issuer.token("alice");
    [
        issuer.token("bob"),
        alice.clone().client("c2"),
        alice.clone().audience(SIBLING_RESOURCE),
        alice.claim("client_id", Value::Null),
    ]
    .map(|token| server.client().with_token(&token.text()))
}

/// The task methods, on this id.
fn on(client: &Client, id: &str) -> [Prepared; 3] {
    let answer = json!({"ask": accept(json!({"name": "Mallory"}))});
    [
        client.prepare("tasks/get", json!({"taskId": id})),
        client.prepare("tasks/update", json!({"taskId": id, "inputResponses": answer})),
        client.prepare("tasks/cancel", json!({"taskId": id})),
    ]
}

/// H14
#[tokio::test]
async fn to_anybody_else_a_task_is_byte_for_byte_one_that_never_existed() {
    let issuer = Issuer::new();
    let server = guarded(&issuer);
    let alice = server.client().with_token(&issuer.token("alice").text());
    let id = alice.create("ask", json!({"message": "who?"})).await;
    let before = alice.wait_questions(&id, &["ask"]).await;
    for (n, other) in others(&server, &issuer).iter().enumerate() {
        for (theirs, never) in on(other, &id).into_iter().zip(on(other, NEVER)) {
            let theirs = theirs.id(7).send().await;
            let never = never.id(7).send().await;
            theirs.refused(200, -32602);
            assert_eq!(theirs.but_for_the_date(), never.but_for_the_date(), "other {n}");
        }
    }
    let after = alice.task_get(&id).await;
    assert_eq!(after.raw(&["result"]), before.raw(&["result"]), "nothing was answered, nothing cancelled");
    alice.task_update(&id, json!({"ask": accept(json!({"name": "Alice"}))})).await.acknowledged();
    assert_eq!(alice.wait_end(&id).await.task_text(), "hello Alice");
}

/// H15
#[tokio::test]
async fn a_refreshed_token_another_connection_or_another_client_info_is_still_the_owner() {
    let issuer = Issuer::new();
    let server = guarded(&issuer);
    let token = issuer.token("alice").scopes("a b");
    let alice = server.client().with_token(&token.text());
    let id = alice.create("slow", json!({"ms": 60_000})).await;

    let refreshed = token.claim("jti", "second").scopes("b c a").expires_in(7200).text();
    let refreshed = alice.on_a_new_connection().with_token(&refreshed);
    assert_eq!(refreshed.task_get(&id).await.task_status(), "working");

    let info = json!({"name": "quite another", "version": "9"});
    let named = alice.prepare("tasks/get", json!({"taskId": id})).meta("io.modelcontextprotocol/clientInfo", info);
    assert_eq!(named.send().await.task_status(), "working");

    let session = alice.prepare("tasks/get", json!({"taskId": id})).header("mcp-session-id", "an old one");
    assert_eq!(session.send().await.task_status(), "working");

    refreshed.task_cancel(&id).await.acknowledged();
    assert_eq!(alice.task_get(&id).await.task_status(), "cancelled");
}

/// H15
#[tokio::test]
async fn an_owner_is_still_the_owner_after_a_restart() {
    let issuer = Issuer::new();
    let server = guarded(&issuer);
    let alice = server.client().with_token(&issuer.token("alice").text());
    let id = alice.create("slow", json!({"ms": 10})).await;
    let done = alice.wait_end(&id).await;
    let durable = server.store().is_durable();
    let server = server.restart().await;
    let alice = server.client().with_token(&issuer.token("alice").text());
    let again = alice.task_get(&id).await;
    if durable {
        assert_eq!(again.raw(&["result"]), done.raw(&["result"]));
    } else {
        again.refused(200, -32602);
    }
    for other in others(&server, &issuer) {
        other.task_get(&id).await.refused(200, -32602);
    }
}

#[tokio::test]
async fn one_owners_tasks_do_not_count_against_another() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).setting("tasks.max_per_principal", 1).start();
    let alice = server.client().with_token(&issuer.token("alice").text());
    alice.create("slow_required", json!({"ms": 60_000})).await;
    alice.call_tool("slow_required", json!({"ms": 60_000})).await.refused(200, -32600);
    for other in others(&server, &issuer) {
        other.create("slow_required", json!({"ms": 60_000})).await;
    }
}

#[tokio::test]
async fn a_request_state_is_good_for_the_caller_alone_that_it_was_given_to() {
    let issuer = Issuer::new();
    let server = guarded(&issuer);
    let alice = server.client().with_token(&issuer.token("alice").text());
    let asked = alice.call_tool("prepare_ask", json!({})).await;
    let state = asked.result()["requestState"].as_str().unwrap().to_owned();
    let retry = |client: &Client| {
        let answer = json!({"user": accept(json!({"name": "Ada"}))});
        client.tool("prepare_ask", json!({})).param("requestState", state.as_str()).param("inputResponses", answer)
    };
    for other in others(&server, &issuer) {
        retry(&other).send().await.refused(200, -32602);
    }
    let refreshed = alice.with_token(&issuer.token("alice").expires_in(7200).text());
    retry(&refreshed).send().await.task_id();
}

#[tokio::test]
async fn a_session_of_the_earlier_era_is_to_anybody_else_one_that_never_was() {
    let issuer = Issuer::new();
    let server = guarded(&issuer);
    let token = |sub: &str| Some(issuer.token(sub).text());
    let mut alice = EarlierClient::connect_as(&server, json!({}), token("alice")).await;
    let mut bob = EarlierClient::connect_as(&server, json!({}), token("bob")).await;
    assert_eq!(alice.call_tool("greet", json!({"name": "Ada"})).await.result()["content"][0]["text"], "Hello, Ada!");

    let (theirs, never) = (alice.session().clone(), Some("11111111-2222-4333-8444-555555555555".to_owned()));
    assert!(theirs.is_some(), "the server keeps sessions");
    let mut answers = Vec::new();
    for session in [theirs, never] {
        *bob.session() = session;
        let call = bob.send_unjudged(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})).await;
        let stream = bob.on_session(reqwest::Method::GET).await;
        let ended = bob.on_session(reqwest::Method::DELETE).await;
        answers.push((call.but_for_the_date(), stream, ended));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0.0, 404, "{answers:?}");

    // Bob's DELETE ended nothing of Alice's, and her refreshed token is still hers.
    alice.show(Some(issuer.token("alice").expires_in(7200).text()));
    assert_eq!(alice.call_tool("greet", json!({"name": "Ada"})).await.result()["content"][0]["text"], "Hello, Ada!");
    alice.show(None);
    let refused = alice.send_unjudged(json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list"})).await;
    assert_eq!((refused.status, refused.body.as_str()), (401, ""));
}

#[tokio::test]
async fn without_authorization_everybody_shares_one_owner() {
    let server = bed().start();
    let id = server.client().create("slow", json!({"ms": 60_000})).await;
    let other = server.client().with_token("whatever").declaring(caps::only_tasks());
    assert_eq!(other.task_get(&id).await.task_status(), "working");
}
