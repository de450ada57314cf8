//! The endpoint as a resource server: who is let in, and what the others are told.

use reqwest::Method;
use serde_json::{Value, json};
use tokkuri_tests::harness::token::{ISSUER, METADATA, RESOURCE, SECRET, SIBLING_RESOURCE, Signer};
use tokkuri_tests::harness::{Client, DEADLINE, EarlierClient, Issuer, LOOK_AGAIN, Prepared, Reply, Server};

use super::{NEVER, bed};

fn no_token() -> String {
    format!(r#"Bearer resource_metadata="{METADATA}""#)
}

fn invalid_token() -> String {
    format!(r#"Bearer error="invalid_token", resource_metadata="{METADATA}""#)
}

fn insufficient(scopes: &str) -> String {
    format!(r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}""#)
}

/// A refusal without a body.
#[track_caller]
fn challenged(reply: &Reply, status: u16, challenge: &str) {
    assert_eq!((reply.status, reply.body.as_str()), (status, ""), "{challenge}");
    assert_eq!(reply.headers["www-authenticate"], challenge);
    assert!(!reply.headers.contains_key("content-type"), "an empty body has no type");
}

/// Every method that is about tasks or tools, on the task `id` where it is about one.
fn methods(client: &Client, id: &str) -> Vec<Prepared> {
    vec![
        client.tool("scoped", json!({})),
        client.prepare("tools/list", json!({})),
        client.prepare("tasks/get", json!({"taskId": id})),
        client.prepare("tasks/update", json!({"taskId": id, "inputResponses": {}})),
        client.prepare("tasks/cancel", json!({"taskId": id})),
        client.prepare("subscriptions/listen", json!({"notifications": {"taskIds": [id]}})),
    ]
}

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

    fn with(&self, token: &str) -> Client {
        self.server.client().with_token(token)
    }

    /// The right owner with the right scope.
    fn alice(&self) -> Client {
        self.with(&self.issuer.token("alice").scopes("files:write").text())
    }
}

#[tokio::test]
async fn whoever_shows_no_good_token_is_told_so_by_every_method_alike() {
    let world = World::new();
    let id = world.alice().create("scoped_ask", json!({"message": "who?"})).await;
    let before = world.alice().wait_questions(&id, &["ask"]).await;
    let token = world.issuer.token("alice").scopes("files:write");
    let bad = [
        ("garbage", "abc".to_owned()),
        ("no signature", token.unsigned()),
        ("cut", token.text()[..token.text().len() - 4].to_owned()),
        ("forged", token.clone().signed_by(&Signer::ed("mallory")).text()),
        ("a secret where keys are published", token.clone().signed_by(&Signer::hs("first", SECRET)).text()),
        ("expired", token.clone().expires_in(-31).text()),
        ("not yet", token.clone().claim("nbf", 4_000_000_000_u64).text()),
        ("wrong issuer", token.clone().claim("iss", "https://other.example").text()),
        ("wrong audience", token.clone().audience("https://other.example/mcp").text()),
        ("audience but for a slash", token.clone().audience(&format!("{RESOURCE}/")).text()),
        ("nobody", token.clone().claim("sub", Value::Null).text()),
        ("for ever", token.clone().claim("exp", Value::Null).text()),
    ];
    for request in methods(&world.server.client(), &id) {
        challenged(&request.send().await, 401, &no_token());
    }
    for (what, token) in &bad {
        for request in methods(&world.with(token), &id) {
            let method = request.body["method"].clone();
            let reply = request.send().await;
            assert_eq!(reply.status, 401, "{what}, {method}: {}", reply.body);
            challenged(&reply, 401, &invalid_token());
        }
    }
    assert_eq!(world.alice().task_get(&id).await.raw(&["result"]), before.raw(&["result"]));
}

#[tokio::test]
async fn of_those_who_are_let_in_only_the_owner_with_the_scope_reaches_the_task() {
    let world = World::new();
    let owner = world.issuer.token("alice").scopes("files:write");
    let id = world.alice().create("scoped_ask", json!({"message": "who?"})).await;
    world.alice().wait_questions(&id, &["ask"]).await;
    let task_methods = 2..5;

    let others = [
        ("stranger", world.issuer.token("bob").scopes("files:write")),
        ("sibling client", owner.clone().client("c2")),
        ("sibling resource", owner.clone().audience(SIBLING_RESOURCE)),
        ("stranger lacking scope", world.issuer.token("bob")),
    ];
    for (who, token) in others {
        let client = world.with(&token.text());
        let pairs = methods(&client, &id).into_iter().zip(methods(&client, NEVER));
        for (theirs, never) in pairs.skip(task_methods.start).take(task_methods.len()) {
            let theirs = theirs.id(1).send().await;
            theirs.refused(200, -32602);
            assert_eq!(theirs.but_for_the_date(), never.id(1).send().await.but_for_the_date(), "{who}");
        }
    }

    let poor = world.with(&owner.clone().scopes("files:read").text());
    for (n, request) in methods(&poor, &id).into_iter().enumerate().take(task_methods.end) {
        let reply = request.send().await;
        match n {
            1 => assert_eq!(reply.status, 200, "a list needs no scope: {}", reply.body),
            _ => challenged(&reply, 403, &insufficient("files:write")),
        }
    }

    let rich = world.alice();
    rich.call_tool("scoped", json!({})).await.task_id();
    assert_eq!(rich.tools_list().await.status, 200);
    assert_eq!(rich.task_get(&id).await.task_status(), "input_required");
    rich.task_update(&id, json!({})).await.acknowledged();
    rich.task_cancel(&id).await.acknowledged();
    assert_eq!(rich.task_get(&id).await.task_status(), "cancelled");
}

#[tokio::test]
async fn who_is_calling_is_asked_after_the_head_and_before_the_body() {
    let issuer = Issuer::new();
    let config = format!("{}[server]\nallowed_origins = [\"https://app.example\"]\n", issuer.config(""));
    let server = bed().config(config).start();
    let client = server.client();
    let bare = || client.prepare("tools/list", json!({})).unjudged();
    assert_eq!(bare().header("host", "evil.example").send().await.status, 403);
    assert_eq!(bare().header("origin", "https://evil.example").send().await.status, 403);
    assert_eq!(bare().verb(Method::PUT).send().await.status, 405);
    assert_eq!(bare().verb(Method::GET).send().await.status, 405);
    for late in [
        bare().bytes("{"),
        bare().bytes(""),
        bare().header("content-type", "text/plain"),
        bare().header("accept", "text/html"),
        bare().without_header("mcp-protocol-version"),
        bare().verb(Method::GET).without_header("mcp-protocol-version").header("mcp-session-id", "s"),
        bare().verb(Method::DELETE).without_header("mcp-protocol-version").header("mcp-session-id", "s"),
    ] {
        challenged(&late.send().await, 401, &no_token());
    }
    // A page has to be able to read why it is refused, and its browser asks without credentials first.
    let page = bare().header("origin", "https://app.example").send().await;
    challenged(&page, 401, &no_token());
    assert_eq!(page.headers["access-control-allow-origin"], "https://app.example");
    assert!(page.headers["access-control-expose-headers"].to_str().unwrap().contains("www-authenticate"));
    let preflight = bare()
        .verb(Method::OPTIONS)
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type");
    let preflight = preflight.send().await;
    assert_eq!(preflight.status, 204);
    assert!(preflight.headers["access-control-allow-headers"].to_str().unwrap().contains("authorization"));
}

#[tokio::test]
async fn credentials_that_are_none_are_a_bad_request_and_other_schemes_are_not_ours() {
    let world = World::new();
    let token = world.issuer.token("alice").text();
    let request = |value: &str| world.server.client().prepare("tools/list", json!({})).header("authorization", value);
    let malformed = format!(r#"Bearer error="invalid_request", resource_metadata="{METADATA}""#);
    for value in ["Bearer", "Bearer a b", "Bearer a,b"] {
        challenged(&request(value).unjudged().send().await, 400, &malformed);
    }
    let twice = request(&format!("Bearer {token}")).second_header("authorization", &format!("Bearer {token}"));
    challenged(&twice.unjudged().send().await, 400, &malformed);
    challenged(&request("Basic YWxpY2U6cHc=").send().await, 401, &no_token());
    assert_eq!(request(&format!("bearer {token}")).send().await.status, 200, "schemes are not case-sensitive");
}

#[tokio::test]
async fn a_token_in_the_query_is_no_token() {
    let world = World::new();
    let token = world.issuer.token("alice").text();
    let client = Client::new(format!("{}?access_token={token}", world.server.url()));
    challenged(&client.tools_list().await, 401, &no_token());
}

#[tokio::test]
async fn tokens_of_every_kind_of_key_are_accepted() {
    let world = World::new();
    let signers = [Signer::ed("ed"), Signer::ec("ec"), Signer::rsa("rsa")];
    world.issuer.publish(&signers);
    for signer in &signers {
        let client = world.with(&world.issuer.token("alice").signed_by(signer).text());
        assert_eq!(accepted(&client).await.status, 200, "{signer:?}");
    }
}

#[tokio::test]
async fn a_secret_serves_where_there_is_no_issuer() {
    let config = format!("[auth]\nissuer = {ISSUER:?}\naudience = {RESOURCE:?}\nhs256_secret = {SECRET:?}\n");
    let server = bed().config(config).start();
    let token = Issuer::new().token("alice");
    let client = |token: String| server.client().with_token(&token);
    assert_eq!(client(token.clone().signed_by(&Signer::hs("", SECRET)).text()).tools_list().await.status, 200);
    for bad in [
        token.clone().signed_by(&Signer::hs("", "another secret of thirty-two bytes")).text(),
        token.clone().signed_by(&Signer::ed("first")).text(),
        token.unsigned(),
    ] {
        challenged(&client(bad).tools_list().await, 401, &invalid_token());
    }
}

/// Asks until the token is accepted: the server reads its keys again when it meets one that it does not know, but not all the time.
async fn accepted(client: &Client) -> Reply {
    let start = std::time::Instant::now();
    loop {
        let reply = client.tools_list().await;
        if reply.status == 200 || start.elapsed() > DEADLINE {
            return reply;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::test]
async fn keys_are_rotated_without_a_restart() {
    let world = World::new();
    let old = world.issuer.token("alice");
    let new = old.clone().signed_by(&Signer::ed("second"));
    let new_token = new.text();
    let (old, new) = (world.with(&old.text()), world.with(&new_token));
    let id = old.create("slow", json!({"ms": 60_000})).await;
    challenged(&new.tools_list().await, 401, &invalid_token());
    world.issuer.publish(&[Signer::ed("second")]);
    // Each node reads them when it needs them.
    for node in world.server.clients() {
        assert_eq!(accepted(&node.with_token(&new_token)).await.status, 200);
    }
    challenged(&old.tools_list().await, 401, &invalid_token());
    assert_eq!(new.task_get(&id).await.task_status(), "working", "the owner is who it was");
    // A key file that is broken half-way does not lock everybody out.
    std::fs::write(world.issuer.key_file(), "{").unwrap();
    challenged(&old.tools_list().await, 401, &invalid_token());
    assert_eq!(new.tools_list().await.status, 200);
}

#[tokio::test]
async fn the_metadata_is_public_and_names_the_issuer() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("required_scopes = [\"mcp\"]")).start();
    tokkuri_server::listener::use_ring();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for (path, resource) in [("/mcp", RESOURCE), ("", RESOURCE), ("/sibling", SIBLING_RESOURCE)] {
        let url = format!("http://{}/.well-known/oauth-protected-resource{path}", server.http());
        let answer = http.get(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{url}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
        let document: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let expected = json!({
            "resource": resource,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "tokkuri",
        });
        assert_eq!(document, expected);
    }
    // The challenge asks for what every token needs.
    let challenge = format!(r#"Bearer resource_metadata="{METADATA}", scope="mcp""#);
    challenged(&server.client().tools_list().await, 401, &challenge);
    let open = bed().start();
    let url = format!("http://{}/.well-known/oauth-protected-resource", open.http());
    assert_eq!(http.get(&url).send().await.unwrap().status(), 404, "there is no authorization to describe");
}

#[tokio::test]
async fn the_earlier_era_needs_tokens_as_well() {
    let world = World::new();
    let server = &world.server;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}});
    let bare = server.client().prepare("initialize", json!({}));
    let bare = bare.without_header("mcp-protocol-version").without_header("mcp-method").unjudged();
    challenged(&bare.bytes(initialize.to_string()).send().await, 401, &no_token());
    let client = EarlierClient::connect_as(server, json!({}), Some(world.issuer.token("alice").text())).await;
    let seen = client.call_tool("whoami", json!({})).await;
    assert_eq!(seen.result()["structuredContent"]["principal"], format!("{ISSUER} alice"));
}

#[tokio::test]
async fn tokens_never_reach_the_log() {
    let issuer = Issuer::new();
    let server =
        bed().config(issuer.config("")).setting("telemetry.log", "tokkuri_server=trace,rmcp=trace,h2=info").start();
    let good = issuer.token("alice").scopes("files:write").text();
    let expired = issuer.token("alice").expires_in(-60).text();
    let client = server.client().with_token(&good);
    let id = client.create("whoami", json!({})).await;
    client.wait_end(&id).await;
    client.declaring(json!({})).call_tool("whoami", json!({})).await;
    client.call_tool("greet", json!({"name": "Ada"})).await;
    client.tools_list().await;
    server.client().with_token(&expired).tools_list().await;
    let earlier = EarlierClient::connect_as(&server, json!({}), Some(good.clone())).await;
    earlier.call_tool("greet", json!({"name": "Ada"})).await;
    let log = server.log();
    assert!(log.contains("it has expired"), "the reason is logged: {log}");
    for token in [&good, &expired] {
        let signature = token.rsplit('.').next().unwrap();
        assert!(!log.contains(token.as_str()) && !log.contains(signature), "a token in the log: {log}");
    }
}
