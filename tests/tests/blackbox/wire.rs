//! H17: malformed input. Each gets its own precise answer, and the next good request on the connection works.

use serde_json::{Value, json};
use tokkuri_tests::harness::raw::{Connection, Response};
use tokkuri_tests::harness::{Client, Prepared, Server};

use super::{NEVER, bed};

/// Sends the request and then a good one, on one connection.
async fn then_a_good_one(server: &Server, request: Prepared) -> Response {
    let mut connection = Connection::open(server.http()).await;
    let reply = connection.exchange(&request.to_http()).await;
    let good = connection.exchange(&get(&server.client()).to_http()).await;
    assert_eq!((good.status, &good.message()["error"]["code"]), (200, &json!(-32602)), "{}", good.text());
    reply
}

fn get(client: &Client) -> Prepared {
    client.prepare("tasks/get", json!({"taskId": NEVER})).id(41)
}

#[tokio::test]
async fn what_is_no_json_is_a_parse_error_without_an_id() {
    let server = bed().start();
    let utf8 = get(&server.client()).body.to_string().replace(NEVER, "?").into_bytes();
    let bad_utf8: Vec<u8> = utf8.iter().map(|b| if *b == b'?' { 0xFF } else { *b }).collect();
    for bytes in
        [b"{".to_vec(), b"".to_vec(), b"  ".to_vec(), b"nul".to_vec(), b"{} {}".to_vec(), b"{'a':1}".to_vec(), bad_utf8]
    {
        let reply = then_a_good_one(&server, get(&server.client()).bytes(bytes.clone())).await;
        let message = reply.message();
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!((reply.status, &message["error"]["code"]), (400, &json!(-32700)), "{shown}: {}", reply.text());
        assert!(message.get("id").is_none(), "{shown}: {message}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_an_invalid_request() {
    let server = bed().start();
    let client = server.client();
    let request = get(&client).body;
    let with = |field: &str, value: Value| {
        let mut request = request.clone();
        request[field] = value;
        request
    };
    let mut bodies = vec![json!(null), json!([]), json!([request]), json!(7), json!("x"), json!({})];
    bodies.extend([json!(null), json!(1.5), json!(true), json!({}), json!([])].map(|id| with("id", id)));
    bodies.extend([
        with("jsonrpc", json!("1.0")),
        with("jsonrpc", json!(2)),
        with("method", json!(5)),
        with("method", Value::Null),
    ]);
    bodies.push(json!({"jsonrpc": "2.0", "id": 41, "result": {"resultType": "complete"}}));
    bodies.push(json!({"jsonrpc": "2.0", "id": 41, "error": {"code": 1, "message": "m"}}));
    for body in bodies {
        let reply = then_a_good_one(&server, get(&client).bytes(body.to_string())).await;
        let message = reply.message();
        assert_eq!((reply.status, &message["error"]["code"]), (400, &json!(-32600)), "{body}: {}", reply.text());
        assert!(message.get("id").is_none_or(|id| id == 41), "an id that was read, or none: {message}");
    }
}

#[tokio::test]
async fn params_that_are_no_object_are_refused() {
    let server = bed().start();
    let client = server.client();
    for params in [json!([]), json!(7), json!(null), json!("x")] {
        let mut request = get(&client);
        request.body["params"] = params.clone();
        let reply = then_a_good_one(&server, request).await;
        let code = reply.message()["error"]["code"].as_i64();
        assert!(reply.status == 400 && matches!(code, Some(-32600 | -32602)), "{params}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_refused_or_skipped_and_harms_nothing() {
    let server = bed().start();
    let client = server.client();
    let bytes = [b"\xEF\xBB\xBF".to_vec(), get(&client).body.to_string().into_bytes()].concat();
    let reply = then_a_good_one(&server, get(&client).bytes(bytes)).await;
    let answer = (reply.status, reply.message()["error"]["code"].as_i64());
    assert!(matches!(answer, (400, Some(-32700)) | (200, Some(-32602))), "{}", reply.text());
}

#[tokio::test]
async fn task_methods_without_a_task_id_are_refused() {
    let server = bed().start();
    let client = server.client();
    for task_id in [json!(null), json!(7), json!({})] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let request = client.prepare(method, json!({"taskId": task_id, "inputResponses": {}}));
            let reply = request.header("mcp-name", "x").send().await;
            let code = reply.error()["code"].as_i64();
            assert!(matches!(code, Some(-32602 | -32020)), "{method} {task_id}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn a_notification_is_accepted_in_silence() {
    let server = bed().start();
    let client = server.client();
    for method in ["notifications/cancelled", "notifications/initialized", "notifications/unheard_of"] {
        let mut request = client.prepare(method, json!({"requestId": 1}));
        request.body.as_object_mut().unwrap().remove("id");
        let reply = then_a_good_one(&server, request).await;
        assert_eq!((reply.status, reply.text().as_str()), (202, ""), "{method}");
    }
}

#[tokio::test]
async fn other_http_methods_are_not_for_the_modern_era() {
    let server = bed().start();
    for verb in ["PUT", "PATCH", "GET", "DELETE"] {
        let request = get(&server.client()).verb(verb.parse().unwrap());
        let reply = then_a_good_one(&server, request).await;
        assert_eq!(reply.status, 405, "{verb}: {}", reply.text());
    }
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let server = bed().start();
    let client = server.client();
    for origin in ["http://evil.example", "null", "http://localhost.evil.example", "x"] {
        let reply = then_a_good_one(&server, get(&client).header("origin", origin)).await;
        assert_eq!(reply.status, 403, "{origin}: {}", reply.text());
        assert!(reply.message().get("id").is_none());
    }
    let own = format!("host: {}", server.http());
    let http = String::from_utf8(get(&server.near()).to_http()).unwrap();
    for host in ["host: evil.example", "host: evil.example:80", "host: 127.0.0.1.evil.example"] {
        let mut connection = Connection::open(server.http()).await;
        let reply = connection.exchange(http.replace(&own, host).as_bytes()).await;
        assert_eq!(reply.status, 403, "{host}: {}", reply.text());
    }
    for host in [format!("host: localhost:{}", server.http().port()), own.clone()] {
        let mut connection = Connection::open(server.http()).await;
        assert_eq!(connection.exchange(http.replace(&own, &host).as_bytes()).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let server = bed().setting("server.max_body_bytes", 10_000).start();
    let client = server.client();
    let call = |n: usize| client.tool("ask", json!({"message": "x".repeat(n)}));
    let reply = call(20_000).unjudged().send().await;
    assert_eq!(reply.status, 413, "{}", reply.body);
    call(5_000).send().await.task_id();
}

#[tokio::test]
async fn another_content_type_is_refused() {
    let server = bed().start();
    let client = server.client();
    let reply = get(&client).header("content-type", "text/plain").unjudged().send().await;
    assert_eq!(reply.status, 415, "{}", reply.body);
    get(&client).header("content-type", "application/json; charset=utf-8").send().await.refused(200, -32602);
}
