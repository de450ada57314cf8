//! Tokens and headers that somebody thought about: what is odd but right is accepted, everything else is refused, and in no case
//! does anybody become who they are not.

use serde_json::{Value, json};
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::token::{ISSUER, METADATA, RESOURCE, SECRET, SIBLING_RESOURCE, Signer, Token};
use tokkuri_tests::harness::{Client, Issuer, Server};

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

    fn alice(&self) -> Token {
        self.issuer.token("alice")
    }

    fn with(&self, token: &Token) -> Client {
        self.server.client().with_token(&token.text())
    }

    /// Whom the server takes the bearer for.
    async fn seen(&self, token: &Token) -> Value {
        let inline = self.with(token).declaring(json!({}));
        let mut seen = inline.call_tool("whoami", json!({})).await.result()["structuredContent"].clone();
        seen.as_object_mut().unwrap().remove("traceparent");
        seen
    }

    async fn refused(&self, what: &str, token: &str) {
        let client = self.server.client().with_token(token);
        for request in [
            client.prepare("tools/list", json!({})),
            client.prepare("tasks/get", json!({"taskId": NEVER})),
            client.listening(json!({"taskIds": [NEVER]})),
        ] {
            let reply = request.send().await;
            assert_eq!((reply.status, reply.body.as_str()), (401, ""), "{what}");
            let challenge = format!(r#"Bearer error="invalid_token", resource_metadata="{METADATA}""#);
            assert_eq!(reply.headers["www-authenticate"], challenge, "{what}");
        }
    }
}

fn many(n: usize, last: &[&str]) -> Value {
    let others = (0..n).map(|n| format!("https://other.example/{n}"));
    others.chain(last.iter().map(|one| (*one).to_owned())).collect()
}

#[tokio::test]
async fn what_is_odd_but_right_is_who_it_says() {
    let world = World::new();
    let is = |sub: &str, client: &str, resource: &str, scopes: &[&str]| json!({"principal": format!("{ISSUER} {sub}"), "client": client, "resource": resource, "scopes": scopes});
    let plain = is("alice", "c1", RESOURCE, &[]);
    let table = [
        ("many audiences, ours the last", world.alice().claim("aud", many(200, &[RESOURCE])), plain.clone()),
        (
            "both of ours: the first in our order, not in the token's",
            world.alice().claim("aud", json!([SIBLING_RESOURCE, RESOURCE])),
            plain.clone(),
        ),
        ("for ever, nearly", world.alice().claim("exp", 1e300), plain.clone()),
        ("with a fraction", world.alice().claim("exp", 4_000_000_000.5), plain.clone()),
        ("issued tomorrow", world.alice().claim("iat", 4_000_000_000_u64), plain.clone()),
        ("without a key's name", world.alice().header(|header| header.kid = None), plain.clone()),
        ("the type of RFC 9068", world.alice().header(|header| header.typ = Some("at+jwt".into())), plain.clone()),
        ("claims that mean nothing here", world.alice().claim("admin", true).claim("roles", json!(["root"])), plain),
        // Whoever writes it differently is somebody else.
        ("a subject with a blank", world.issuer.token(" alice"), is(" alice", "c1", RESOURCE, &[])),
        ("a subject that looks like two", world.issuer.token("x alice"), is("x alice", "c1", RESOURCE, &[])),
        ("a subject of other letters", world.issuer.token("аlice"), is("аlice", "c1", RESOURCE, &[])),
        ("another case", world.issuer.token("Alice"), is("Alice", "c1", RESOURCE, &[])),
        ("a client that looks like a resource", world.alice().client(RESOURCE), is("alice", RESOURCE, RESOURCE, &[])),
        (
            "scopes that are none",
            world.alice().scopes("files:write\u{0} \"files:write\" files:write\\"),
            is("alice", "c1", RESOURCE, &[]),
        ),
    ];
    let id = world.with(&world.alice()).create("slow", json!({"ms": 120_000})).await;
    for (what, token, expected) in table {
        assert_eq!(world.seen(&token).await, expected, "{what}");
        let status = world.with(&token).task_get(&id).await.message["result"]["status"].clone();
        let owner = expected["principal"] == format!("{ISSUER} alice") && expected["client"] == "c1";
        assert_eq!(status == "working", owner, "{what}");
    }
    // A moment that no clock reaches ends no stream.
    let mut stream = world.with(&world.alice().claim("exp", 1e300)).follow(&[&id]).await;
    assert_eq!(stream.task().await["status"], "working");
    world.with(&world.alice()).task_cancel(&id).await.acknowledged();
    assert_eq!(stream.to_the_end().await.last().unwrap()["status"], "cancelled");
}

#[tokio::test]
async fn what_is_not_right_is_nobody() {
    let world = World::new();
    let mallory = Signer::ed("mallory");
    let own_key = |header: &mut jsonwebtoken::Header| {
        header.kid = Some("first".into());
        header.jwk = Some(serde_json::from_value(mallory.jwk()).unwrap());
        header.jku = Some("https://mallory.example/keys".into());
        header.x5u = Some("https://mallory.example/cert".into());
    };
    let kid = |kid: &str| world.alice().header(|header| header.kid = Some(kid.to_owned()));
    let table = [
        ("more than a token may hold", world.alice().claim("aud", many(600, &[RESOURCE]))),
        ("audiences without ours", world.alice().claim("aud", many(200, &["https://tokkuri.example/mc"]))),
        ("an audience within an array within an array", world.alice().claim("aud", json!([[RESOURCE]]))),
        ("an audience as an object", world.alice().claim("aud", json!({RESOURCE: true}))),
        ("an audience with a blank", world.alice().audience(&format!("{RESOURCE} "))),
        ("two audiences in one text", world.alice().audience(&format!("{RESOURCE} {SIBLING_RESOURCE}"))),
        ("no audience", world.alice().claim("aud", json!([]))),
        ("not before tomorrow", world.alice().claim("nbf", 4_000_000_000_u64)),
        ("not before ever", world.alice().claim("nbf", 1e300)),
        ("not before what is no time", world.alice().claim("nbf", "0")),
        ("expired long ago", world.alice().claim("exp", -1e300)),
        ("an expiry that is a text", world.alice().claim("exp", "4000000000")),
        ("an expiry that is true", world.alice().claim("exp", true)),
        ("two issuers", world.alice().claim("iss", json!([ISSUER, "https://mallory.example"]))),
        ("an issuer with a slash more", world.alice().claim("iss", format!("{ISSUER}/"))),
        ("a subject that is empty", world.issuer.token("")),
        ("a subject with a line end", world.issuer.token("alice\n")),
        ("a subject that goes on after U+0000", world.issuer.token("alice\u{0}")),
        ("a subject that is a list", world.alice().claim("sub", json!(["alice"]))),
        ("a client with a line end", world.alice().client("c1\r")),
        ("a subject of two thousand bytes", world.issuer.token(&"a".repeat(2_000))),
        ("an unknown key", kid("second")),
        ("a key that is a path", kid("../../../../etc/passwd")),
        ("a key that is a place", kid("https://mallory.example/keys")),
        ("a key without a name", kid("")),
        ("a key's name in another case", kid("FIRST")),
        ("a key's name of eight thousand bytes", kid(&"first".repeat(1_600))),
        ("a key brought along", world.alice().signed_by(&mallory).header(own_key)),
        ("a token of another kind", world.alice().header(|header| header.typ = Some("logout+jwt".into()))),
        ("something critical", world.alice().header(|header| header.crit = Some(vec!["exp".into()]))),
        ("a secret under a key's name", world.alice().signed_by(&Signer::hs("first", SECRET))),
        ("a published key as a secret", {
            let public = world.issuer.signer().jwk()["x"].as_str().unwrap().to_owned();
            world.alice().signed_by(&Signer::hs("first", &public))
        }),
        ("a key of another kind under a known name", world.alice().signed_by(&Signer::ec("first"))),
    ];
    for (what, token) in table {
        world.refused(what, &token.text()).await;
    }
    let good = world.alice().text();
    let parts: Vec<&str> = good.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("three parts") };
    let other = world.issuer.token("bob").text();
    let others: Vec<&str> = other.split('.').collect();
    for (what, token) in [
        ("no signature", world.alice().unsigned()),
        ("an empty signature", format!("{header}.{claims}.")),
        ("two parts", format!("{header}.{claims}")),
        ("four parts", format!("{good}.{signature}")),
        ("five parts", format!("{header}.{claims}.{signature}.{signature}.{signature}")),
        ("other claims under a good signature", format!("{header}.{}.{signature}", others[1])),
        ("a padded part", format!("{header}.{claims}.{signature}==")),
        ("a signature of its own length twice", format!("{good}{signature}")),
        ("a dot", ".".to_owned()),
        ("fifteen thousand bytes", "A".repeat(15_000)),
        ("twenty thousand bytes", "A.".repeat(10_000)),
    ] {
        world.refused(what, &token).await;
    }
    assert_eq!(world.with(&world.alice()).tools_list().await.status, 200, "nobody else is the worse for it");
}

#[tokio::test]
async fn credentials_count_in_their_one_header_alone() {
    let world = World::new();
    let token = world.alice().text();
    let bearer = format!("Bearer {token}");
    let bare = || world.server.client().prepare("tools/list", json!({})).unjudged();
    for (name, value) in [
        ("proxy-authorization", bearer.as_str()),
        ("x-authorization", &bearer),
        ("x-forwarded-access-token", &token),
        ("x-forwarded-user", "alice"),
        ("cookie", &format!("access_token={token}")),
        ("mcp-session-id", &token),
    ] {
        let reply = bare().header(name, value).send().await;
        assert_eq!((reply.status, reply.body.as_str()), (401, ""), "{name}");
    }
    for value in ["Bearer", "Bearer ", &format!("Bearer\t{token}"), &format!("Token {token}"), &token] {
        let reply = bare().header("authorization", value).send().await;
        assert!(matches!(reply.status, 400 | 401) && reply.body.is_empty(), "{value}: {}", reply.status);
    }
    // Who somebody is does not depend on what else they send.
    let id = world.with(&world.alice()).create("slow", json!({"ms": 120_000})).await;
    let bob = world.with(&world.issuer.token("bob"));
    for (name, value) in [("mcp-session-id", "alice's"), ("x-forwarded-user", "alice"), ("cookie", &bearer)] {
        let theirs = bob.prepare("tasks/get", json!({"taskId": id})).header(name, value).send().await;
        theirs.refused(200, -32602);
    }
    let named = bob.prepare("tasks/get", json!({"taskId": NEVER})).header("mcp-name", &id).send().await;
    named.refused(400, -32020);
    let twice = bob.prepare("tasks/get", json!({"taskId": id})).second_header("mcp-name", NEVER).send().await;
    twice.refused(400, -32020);
}

#[tokio::test]
async fn a_request_is_one_request_however_its_length_is_told() {
    let world = World::new();
    let request = world.with(&world.alice()).prepare("tools/list", json!({})).to_http();
    let text = String::from_utf8(request).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let line = |of: &str| head.lines().find(|line| line.starts_with(of)).unwrap().to_owned();
    // What hides behind the first request must never be answered as if somebody had sent it.
    let hidden = format!("{head}\r\n\r\n{body}");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let lengths = |with: &str| head.replace(&line("content-length"), with);
    for (what, request) in [
        (
            "two lengths",
            format!(
                "{}\r\n\r\n{body}{hidden}",
                lengths(&format!("content-length: {}\r\ncontent-length: 0", body.len()))
            ),
        ),
        (
            "chunks that are not last",
            format!("{}\r\n\r\n{chunked}{hidden}", lengths("transfer-encoding: chunked, identity")),
        ),
        (
            "a length with a sign",
            format!("{}\r\n\r\n{body}{hidden}", lengths(&format!("content-length: +{}", body.len()))),
        ),
        ("a folded header", format!("{head}\r\nx-folded: a\r\n b: c\r\n\r\n{body}{hidden}")),
        (
            "a blank before the colon",
            format!("{}\r\n\r\n{body}{hidden}", lengths(&format!("content-length : {}", body.len()))),
        ),
        (
            "a foreign target",
            format!("{}\r\n\r\n{body}", head.replacen("POST /mcp", "POST http://evil.example/mcp", 1)),
        ),
        ("no host", format!("{}\r\n\r\n{body}", head.replace(&format!("{}\r\n", line("host")), ""))),
        ("two hosts", format!("{head}\r\nhost: evil.example\r\n\r\n{body}")),
    ] {
        let mut connection = Connection::open(world.server.http()).await;
        connection.write(request.as_bytes()).await;
        let response = connection.read_response().await;
        assert!((400..500).contains(&response.status), "{what}: {} {}", response.status, response.text());
    }
    let plain = format!("{head}\r\n\r\n{body}");
    assert_eq!(Connection::open(world.server.http()).await.exchange(plain.as_bytes()).await.status, 200);
}
