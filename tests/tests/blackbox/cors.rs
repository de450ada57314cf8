//! Browsers: preflights of allowed origins, and answers that their pages may read.

use reqwest::Method;
use serde_json::json;
use tokkuri_tests::harness::raw::{Connection, Response};
use tokkuri_tests::harness::{Prepared, Server};

use super::{NEVER, bed};

const APP: &str = "https://app.example.com";

fn server() -> Server {
    bed().setting("server.allowed_origins", format!("{APP},http://localhost:3000")).start()
}

fn request(server: &Server, origin: &str) -> Prepared {
    server.client().prepare("tasks/get", json!({"taskId": NEVER})).header("origin", origin)
}

async fn send(server: &Server, request: &Prepared) -> Response {
    Connection::open(server.http()).await.exchange(&request.to_http()).await
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_allows_what_it_asks_for() {
    let server = server();
    for origin in [APP, "http://localhost:3000"] {
        let preflight = request(&server, origin)
            .verb(Method::OPTIONS)
            .bytes("")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,mcp-method,mcp-param-region,authorization");
        let reply = send(&server, &preflight).await;
        assert_eq!((reply.status, reply.text().as_str()), (204, ""));
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        assert!(reply.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
        let allowed = reply.header("access-control-allow-headers").unwrap_or_default();
        for header in ["content-type", "mcp-method", "mcp-param-region", "authorization"] {
            assert!(allowed.contains(header), "{header}: {allowed}");
        }
        assert_eq!(reply.header("access-control-allow-credentials"), None, "nothing here rests on cookies");
    }
}

#[tokio::test]
async fn a_preflight_of_another_origin_allows_nothing() {
    let server = server();
    for origin in ["https://evil.example", "http://app.example.com", "https://app.example.com:444", "null"] {
        let preflight = request(&server, origin).verb(Method::OPTIONS).header("access-control-request-method", "POST");
        let reply = send(&server, &preflight).await;
        assert_eq!(reply.status, 403, "{origin}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
    }
}

#[tokio::test]
async fn pages_of_an_allowed_origin_may_read_answers_and_refusals() {
    let server = server();
    let broken = request(&server, APP).bytes("{");
    let mismatched = request(&server, APP).header("mcp-method", "x");
    let other = request(&server, APP).verb(Method::PUT);
    for (request, status) in [(request(&server, APP), 200), (broken, 400), (mismatched, 400), (other, 405)] {
        let reply = send(&server, &request).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), Some(APP), "{status}");
        assert!(reply.header("vary").is_some_and(|vary| vary.contains("origin")), "{status}");
        let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
        assert!(exposed.contains("www-authenticate"), "{status}: {exposed}");
    }
}

#[tokio::test]
async fn without_an_origin_nothing_is_said_of_origins() {
    let server = server();
    let request = server.client().prepare("tasks/get", json!({"taskId": NEVER}));
    let reply = send(&server, &request).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, None));
}
