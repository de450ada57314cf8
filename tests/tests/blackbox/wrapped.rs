//! Tools of an rmcp handler that was wrapped: as tasks, and in the request as they always were.

use serde_json::json;
use tokkuri_tests::harness::caps;
use tokkuri_tests::harness::client::accept;

use super::bed;

#[tokio::test]
async fn a_wrapped_tool_runs_as_a_task_and_its_progress_is_the_status_message() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("wrapped_slow", json!({"ms": 2000})).await;
    client
        .wait(&id, "progress", |reply| reply.result()["statusMessage"].as_str().is_some_and(|it| it.ends_with("/10")))
        .await;
    assert_eq!(client.wait_end(&id).await.task_text(), "done");
}

#[tokio::test]
async fn what_a_wrapped_tool_asks_for_are_the_tasks_questions() {
    let server = bed().start();
    let client = server.client();
    for (answer, said) in [
        (accept(json!({"name": "Ada"})), "hello Ada"),
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "cancel"}), "dismissed"),
    ] {
        let id = client.create("wrapped_ask", json!({"message": "Who?"})).await;
        let asked = client.wait_questions(&id, &["ask"]).await;
        assert_eq!(asked.result()["inputRequests"]["ask"]["params"]["message"], "Who?");
        client.task_update(&id, json!({"ask": accept(json!({"name": 7}))})).await.refused(200, -32602);
        client.task_update(&id, json!({"ask": answer})).await.acknowledged();
        assert_eq!(client.wait_end(&id).await.task_text(), said);
    }
}

#[tokio::test]
async fn a_cancelled_wrapped_tool_stays_cancelled() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("wrapped_slow", json!({"ms": 60_000})).await;
    client.task_cancel(&id).await.acknowledged();
    let cancelled = client.wait_status(&id, "cancelled").await;
    assert_eq!(client.task_get(&id).await.raw(&["result"]), cancelled.raw(&["result"]));
}

#[tokio::test]
async fn in_the_request_a_wrapped_tool_is_the_handlers_own() {
    let server = bed().start();
    let client = server.client().declaring(caps::without_tasks());
    assert_eq!(client.call_tool("wrapped_slow", json!({"ms": 10})).await.text(), "done");
    let asked = client.call_tool("wrapped_ask", json!({"message": "Who?"})).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    let answered = client
        .tool("wrapped_ask", json!({"message": "Who?"}))
        .param("requestState", asked.result()["requestState"].clone())
        .param("inputResponses", json!({"ask": accept(json!({"name": "Ada"}))}))
        .send()
        .await;
    assert_eq!(answered.text(), "hello Ada");
}

#[tokio::test]
async fn a_wrapped_tool_that_asks_first_is_a_task_only_once_it_is_answered() {
    let server = bed().start();
    let client = server.client();
    let asked = client.call_tool("wrapped_first", json!({"message": "Who?"})).await;
    assert_eq!(asked.result()["resultType"], "input_required");
    let created = client
        .tool("wrapped_first", json!({"message": "Who?"}))
        .param("requestState", asked.result()["requestState"].clone())
        .param("inputResponses", json!({"ask": accept(json!({"name": "Ada"}))}))
        .send()
        .await;
    assert_eq!(client.wait_end(&created.task_id()).await.task_text(), "hello Ada");
}

#[tokio::test]
async fn a_panic_of_a_wrapped_tool_fails_its_task_and_says_nothing() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("wrapped_boom", json!({})).await;
    let ended = client.wait_status(&id, "failed").await;
    assert_eq!(ended.result()["error"]["code"], -32603);
}

#[tokio::test]
async fn arguments_of_a_wrapped_tool_are_checked_before_there_is_a_task() {
    let server = bed().start();
    let client = server.client();
    let reply = client.call_tool("wrapped_slow", json!({"ms": "soon"})).await;
    assert!(reply.tool_error().contains("/ms"), "{}", reply.body);
}

#[tokio::test]
async fn each_tool_is_listed_once() {
    let server = bed().start();
    let mut names = server.client().tool_names().await;
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.contains(&"wrapped_slow".to_owned()) && names.contains(&"slow".to_owned()));
}
