//! What the bodies of all requests together may take up in memory.

use serde_json::json;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Prepared, Server};

use super::bed;

const HELD: &str = "tokkuri_request_bytes_held";

fn server() -> Server {
    bed()
        .setting("server.max_body_bytes", 65_536)
        .setting("server.max_buffered_bytes", 100_000)
        .setting("server.request_timeout_ms", 60_000)
        .start()
}

/// A request of about 60 kB.
fn large(server: &Server) -> Prepared {
    server.near().tool("ask", json!({"message": "x".repeat(60_000)}))
}

async fn nothing_is_held(server: &Server) {
    server.scrape_until("nothing held", |now| now.value(HELD, &[]) == 0.0).await;
}

/// Sends all of a request but its last byte, and waits until that has been taken in.
async fn all_but_a_byte(server: &Server, request: &Prepared) -> (Connection, u8) {
    let bytes = request.to_http();
    let (last, most) = bytes.split_last().expect("a request");
    let mut connection = Connection::open(server.http()).await;
    connection.write(most).await;
    server.scrape_until("most of the body", |now| now.value(HELD, &[]) > 59_000.0).await;
    (connection, *last)
}

#[tokio::test]
async fn a_body_for_which_there_is_no_room_is_refused_and_the_others_go_on() {
    let server = server();
    let client = server.near();
    let (mut first, last) = all_but_a_byte(&server, &large(&server)).await;
    for _ in 0..3 {
        let refused = Connection::open(server.http()).await.exchange(&large(&server).to_http()).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
        let error = &refused.message()["error"];
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains("server.max_buffered_bytes"), "{error}");
    }
    let small = client.create("slow", json!({"ms": 1})).await;
    client.wait_end(&small).await;
    first.write(&[last]).await;
    let created = first.read_response().await;
    assert_eq!(created.message()["result"]["resultType"], "task", "{}", created.text());
    nothing_is_held(&server).await;
    large(&server).send().await.task_id();
    let now = server.scrape().await;
    assert_eq!(now.sum("tokkuri_tasks_created_total"), 3.0);
    assert_eq!(now.value("tokkuri_http_requests_total", &[("method", "none"), ("status", "5xx")]), 3.0);
}

#[tokio::test]
async fn who_fills_the_budget_keeps_nobody_from_small_requests() {
    let server = bed()
        .setting("server.max_body_bytes", 65_536)
        .setting("server.max_buffered_bytes", 65_536)
        .setting("server.request_timeout_ms", 60_000)
        .start();
    let _first = all_but_a_byte(&server, &large(&server)).await;
    assert_eq!(Connection::open(server.http()).await.exchange(&large(&server).to_http()).await.status, 503);
    let client = server.near();
    let id = client.create("ask", json!({"message": "x".repeat(10_000)})).await;
    client.wait_questions(&id, &["ask"]).await;
    client.task_cancel(&id).await.acknowledged();
}

#[tokio::test]
async fn whatever_becomes_of_a_request_its_bytes_are_given_back() {
    let server = bed()
        .setting("server.max_body_bytes", 65_536)
        .setting("server.max_buffered_bytes", 100_000)
        .setting("server.request_timeout_ms", 2_000)
        .start();
    // The client goes in the middle of the body.
    drop(all_but_a_byte(&server, &large(&server)).await);
    nothing_is_held(&server).await;
    // The body does not come in time.
    let (mut slow, _) = all_but_a_byte(&server, &large(&server)).await;
    assert_eq!(slow.read_response().await.status, 408);
    nothing_is_held(&server).await;
    // It is larger than it may be, and did not say so before.
    let mut chunked = Connection::open(server.http()).await;
    let head = large(&server).to_http();
    let end = head.windows(4).position(|it| it == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(head[..end].to_vec()).unwrap();
    let head: Vec<_> = head.lines().filter(|line| !line.starts_with("content-length")).collect();
    chunked.write(format!("{}\r\ntransfer-encoding: chunked\r\n\r\n", head.join("\r\n")).as_bytes()).await;
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    for _ in 0..2 {
        chunked.write(chunk.as_bytes()).await;
    }
    server.scrape_until("two chunks", |now| now.value(HELD, &[]) == 65_536.0).await;
    chunked.write(b"1\r\nx\r\n").await;
    assert_eq!(chunked.read_response().await.status, 413);
    nothing_is_held(&server).await;
    // It is no JSON.
    large(&server).bytes("{".repeat(60_000)).unjudged().send().await.refused(400, -32700);
    nothing_is_held(&server).await;
    // It runs in the request, and is answered there, or nobody waits for the answer.
    let inline = server.near().declaring(json!({})).tool("slow", json!({"ms": 1, "_": "x".repeat(60_000)}));
    inline.unjudged().send().await;
    nothing_is_held(&server).await;
    let waits = server.near().declaring(json!({})).tool("gate", json!({"name": "x".repeat(60_000)}));
    let mut gone = Connection::open(server.http()).await;
    gone.write(&waits.to_http()).await;
    server.near().wait_runs(1).await;
    drop(gone);
    server.near().wait_runs(0).await;
    nothing_is_held(&server).await;
    // After all that there is as much room as ever.
    let (one, _) = all_but_a_byte(&server, &large(&server)).await;
    drop(one);
    nothing_is_held(&server).await;
}

#[tokio::test]
async fn a_budget_that_could_not_hold_one_body_is_refused_at_the_start() {
    let (code, said) = bed().setting("server.max_buffered_bytes", 10_000).refused();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("max_buffered_bytes") && said.contains("max_body_bytes"), "{said}");
}
