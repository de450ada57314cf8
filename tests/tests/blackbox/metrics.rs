//! What operators read: what was done is in the numbers, and nothing of it that is anybody's secret.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::token::ISSUER;
use tokkuri_tests::harness::{Issuer, caps};

use super::{bed, durable_bed};

const SLACK: Duration = Duration::from_secs(10);

const ENDED: &str = "tokkuri_tasks_ended_total";
const LIVE: &str = "tokkuri_tasks_live";

#[tokio::test]
async fn what_is_done_is_counted() {
    let server = bed().setting("tasks.max_per_principal", 2).setting("tasks.max_runs", 1).start();
    let client = server.near();
    let idle = server.scrape().await;
    assert_eq!(
        idle.sum("tokkuri_build_info"),
        idle.value("tokkuri_build_info", &[("version", env!("CARGO_PKG_VERSION"))])
    );
    assert_eq!(idle.sum("tokkuri_tasks_created_total"), 0.0);

    for (tool, arguments) in [
        ("slow", json!({"ms": 1})),
        ("slow", json!({"ms": 1})),
        ("tool_error", json!({})),
        ("fail", json!({"code": 7, "message": "m"})),
    ] {
        let id = client.create(tool, arguments).await;
        client.wait_end(&id).await;
    }
    let ended = server.scrape_until("four ends", |now| now.sum(ENDED) == 4.0).await;
    for (tool, outcome, count) in [
        ("slow", "completed", 2.0),
        ("tool_error", "completed", 1.0),
        ("fail", "failed", 1.0),
        ("fail", "completed", 0.0),
    ] {
        assert_eq!(ended.value(ENDED, &[("tool", tool), ("outcome", outcome)]), count, "{tool} {outcome}");
    }
    assert_eq!(ended.value("tokkuri_tasks_created_total", &[("tool", "slow")]), 2.0);

    // One asks and holds the only place to run; one waits for it; the owner is at the limit.
    let asks = client.create("ask", json!({"message": "who?"})).await;
    client.wait_questions(&asks, &["ask"]).await;
    let queued = client.create("slow", json!({"ms": 60_000})).await;
    let full = server
        .scrape_until("a run that asks and one that waits", |now| {
            now.value(LIVE, &[("status", "input_required")]) == 1.0 && now.value("tokkuri_runs_queued", &[]) == 1.0
        })
        .await;
    assert_eq!(full.value(LIVE, &[("status", "working")]), 1.0);
    assert_eq!(full.value("tokkuri_runs_alive", &[]), 1.0);
    assert_eq!(full.value("tokkuri_quota_refusals_total", &[]), 0.0);
    client.call_tool("slow_required", json!({"ms": 1})).await.refused(200, -32600);
    assert_eq!(client.call_tool("slow", json!({"ms": 1})).await.text(), "done");
    assert_eq!(server.scrape().await.value("tokkuri_quota_refusals_total", &[]), 2.0);

    let listening = client.follow(&[&asks]).await;
    let followed = server.scrape_until("a follower", |now| now.value("tokkuri_tasks_followed", &[]) == 1.0).await;
    assert_eq!(followed.value("tokkuri_streams_open", &[]), 1.0);
    drop(listening);
    server
        .scrape_until("no follower", |now| {
            now.value("tokkuri_tasks_followed", &[]) == 0.0 && now.value("tokkuri_streams_open", &[]) == 0.0
        })
        .await;

    client.task_update(&asks, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    client.wait_end(&asks).await;
    client.task_cancel(&queued).await.acknowledged();
    // A second time it is acknowledged, too, and ends nothing.
    client.task_cancel(&queued).await.acknowledged();
    let over = server
        .scrape_until("nothing alive", |now| now.sum(LIVE) == 0.0 && now.value("tokkuri_runs_alive", &[]) == 0.0)
        .await;
    assert_eq!(over.value(ENDED, &[("tool", "slow"), ("outcome", "cancelled")]), 1.0);
    assert_eq!(over.value(ENDED, &[("tool", "ask"), ("outcome", "completed")]), 1.0);
    assert_eq!(over.sum(ENDED), 6.0);
    assert_eq!(over.sum("tokkuri_tasks_created_total"), 6.0);
    assert_eq!(over.value("tokkuri_runs_queued", &[]), 0.0);
    assert_eq!(over.value("tokkuri_store_requests_total", &[("request", "insert")]), 6.0);
    assert!(over.value("tokkuri_store_requests_total", &[("request", "commit")]) >= 6.0);
    assert_eq!(over.sum("tokkuri_store_unavailable_total"), 0.0);
    assert!(over.value("tokkuri_lease_renewals_total", &[]) >= 1.0);
    if server.store().is_durable() {
        let measured = [("request", "insert")];
        assert_eq!(over.value("tokkuri_store_request_duration_seconds_count", &measured), 6.0);
        assert!(over.value("tokkuri_store_request_duration_seconds_sum", &measured) > 0.0);
    }
}

#[tokio::test]
async fn requests_are_counted_by_method_and_status() {
    let server = bed().start();
    let client = server.client();
    let requests = "tokkuri_http_requests_total";
    let id = client.create("slow", json!({"ms": 1})).await;
    client.task_get(&id).await;
    client.task_get(super::NEVER).await.refused(200, -32602);
    client.prepare("no/such", json!({})).unjudged().send().await;
    client.prepare("tasks/get", json!({"taskId": id})).header("host", "evil.example").unjudged().send().await;
    client.prepare("tasks/get", json!({"taskId": id})).bytes("{").unjudged().send().await;
    let now = server.scrape().await;
    let count = |method, status| now.value(requests, &[("method", method), ("status", status)]);
    assert_eq!(count("tools/call", "2xx"), 1.0);
    assert_eq!(count("tasks/get", "2xx"), 2.0);
    assert_eq!((count("none", "4xx"), count("other", "4xx")), (2.0, 1.0), "{:#?}", now.nonzero());
    assert_eq!(now.sum(requests), 6.0);
}

#[tokio::test]
async fn what_expires_is_counted_as_what_it_was() {
    let server = bed().setting("tasks.ttl_ms", 400).setting("tasks.keep_ms", 1).start();
    let client = server.client();
    client.create("slow", json!({"ms": 60_000})).await;
    let ended = client.create("slow", json!({"ms": 1})).await;
    client.wait_end(&ended).await;
    let expired = "tokkuri_tasks_expired_total";
    let over = server.scrape_until("two that expired", |now| now.sum(expired) == 2.0).await;
    assert_eq!(over.value(expired, &[("was", "live")]), 1.0);
    assert_eq!(over.value(expired, &[("was", "ended")]), 1.0);
    assert_eq!(over.sum(ENDED), 1.0, "an expired task has not ended: it is gone");
    server.scrape_until("nothing live", |now| now.sum(LIVE) == 0.0).await;
}

#[tokio::test]
async fn what_a_lost_server_ran_is_counted_by_the_one_that_takes_it_over() {
    let server = durable_bed().start();
    let client = server.client();
    client.create("slow", json!({"ms": 60_000})).await;
    client.create("ask", json!({"message": "?"})).await;
    let again = client.create("restartable", json!({"name": "r", "ms": 60_000})).await;
    let server = server.restart().await;
    let orphaned = "tokkuri_tasks_orphaned_total";
    let over = server.scrape_until("three that were lost", |now| now.sum(orphaned) == 3.0).await;
    assert_eq!(over.value(orphaned, &[("became", "failed")]), 2.0);
    assert_eq!(over.value(orphaned, &[("became", "restarted")]), 1.0);
    assert_eq!(over.value(ENDED, &[("tool", "slow"), ("outcome", "failed")]), 1.0);
    assert_eq!(over.sum(ENDED), 2.0);
    assert_eq!(over.sum("tokkuri_tasks_created_total"), 0.0, "what runs again was created before");
    let live = server.scrape_until("the run", |now| now.value("tokkuri_runs_alive", &[]) == 1.0).await;
    assert_eq!(live.value(LIVE, &[("status", "working")]), 1.0);
    server.client().task_cancel(&again).await.acknowledged();
}

#[tokio::test]
async fn it_is_ready_until_it_shuts_down_and_tells_its_numbers_to_the_end() {
    let mut server = bed().setting("server.shutdown_ms", 60_000).start();
    for (path, says) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let page = server.admin_get(path, &[]).await;
        assert_eq!((page.status, page.body.as_str()), (200, says), "{path}");
    }
    // Something that each node has to stay for.
    for node in server.clients() {
        node.create("slow", json!({"ms": 4_000})).await;
    }
    server.signal(libc::SIGTERM);
    let start = std::time::Instant::now();
    let unready = loop {
        let page = server.admin_get("/readyz", &[]).await;
        if page.status != 200 {
            break page;
        }
        assert!(start.elapsed() < SLACK, "it is still ready");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(unready.status, 503);
    assert!(unready.body.contains("shutting down"), "{}", unready.body);
    assert_eq!(server.admin_get("/healthz", &[]).await.status, 200);
    assert_eq!(server.scrape().await.value("tokkuri_runs_alive", &[]), server.nodes() as f64);
    assert_eq!(server.exited(SLACK).await.code(), Some(0));
}

#[tokio::test]
async fn with_a_token_the_numbers_are_for_whoever_has_it() {
    let server = bed().setting("admin.token", "s3cret").start();
    for (headers, status) in [
        (&[][..], 401),
        (&[("authorization", "Bearer s3cres")], 401),
        (&[("authorization", "Basic s3cret")], 401),
        (&[("authorization", "Bearer s3cret")], 200),
    ] {
        let page = server.admin_get("/metrics", headers).await;
        assert_eq!(page.status, status, "{headers:?}");
        assert_eq!(page.body.contains("tokkuri_build_info"), status == 200, "{headers:?}");
    }
    assert_eq!(server.admin_get("/healthz", &[]).await.status, 200);
    assert_eq!(server.admin_get("/readyz", &[]).await.status, 200);
}

#[tokio::test]
async fn what_others_could_reach_is_refused_at_the_start() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (code, said) = bed().arg("--admin").arg(address).refused();
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("admin.listen") && said.contains("admin.token"), "{said}");
        let server = bed().arg("--admin").arg(address).setting("admin.token", "t").start();
        assert!(server.admin().is_some());
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, said) = bed().arg("--admin").arg(taken.local_addr().unwrap().to_string()).refused();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("admin.listen: cannot listen on"), "{said}");
    assert_eq!(bed().arg("--admin").arg("off").start().admin(), None);
}

#[tokio::test]
async fn there_is_nothing_to_change_and_no_page_gets_in() {
    let server = bed().start();
    for path in ["/metrics", "/healthz", "/readyz"] {
        let posted = server.try_admin(Method::POST, path, &[]).await.unwrap();
        assert_eq!((posted.status, posted.headers["allow"].to_str().unwrap()), (405, "GET, HEAD"), "{path}");
        let head = server.try_admin(Method::HEAD, path, &[]).await.unwrap();
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        assert_eq!(server.admin_get(path, &[("host", "evil.example")]).await.status, 403, "{path}");
    }
    assert_eq!(server.admin_get("/mcp", &[]).await.status, 404);
}

#[tokio::test]
async fn nothing_of_a_task_or_of_its_owner_is_in_the_numbers() {
    let issuer = Issuer::new();
    let server = bed().config(issuer.config("")).start();
    let token = issuer.token("SECRET-principal").client("SECRET-client").text();
    let client = server.client().with_token(&token);
    let asked = client.create("ask", json!({"message": "SECRET-argument"})).await;
    client.wait_questions(&asked, &["ask"]).await;
    client.task_update(&asked, json!({"ask": accept(json!({"name": "SECRET-answer"}))})).await.acknowledged();
    client.wait_end(&asked).await;
    let failed = client.create("fail", json!({"code": 1, "message": "SECRET-fault"})).await;
    client.wait_end(&failed).await;
    client.call_tool("SECRET-tool", json!({})).await;
    client.prepare("SECRET/method", json!({})).unjudged().send().await;
    client.declaring(caps::without_tasks()).call_tool("slow", json!({"ms": 1})).await;
    server.scrape_until("both ends", |now| now.sum(ENDED) == 2.0).await;
    let text = server.admin_get("/metrics", &[]).await.body;
    for secret in ["SECRET", &asked, &failed, &token, ISSUER] {
        assert!(!text.contains(secret), "{secret} is in\n{text}");
    }
}
