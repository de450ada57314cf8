//! `prepare`: questions on the original request, before a task exists.

use std::time::Duration;

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, Prepared, Reply, caps};

use super::bed;

/// Asks for the first round and returns its state.
async fn first_round(client: &Client) -> String {
    let asked = client.call_tool("prepare_ask", json!({})).await;
    asks_for_the_user(&asked);
    asked.result()["requestState"].as_str().expect("a state to bring back").to_owned()
}

fn asks_for_the_user(reply: &Reply) {
    let result = reply.result();
    assert_eq!((reply.status, &result["resultType"]), (200, &json!("input_required")), "{}", reply.body);
    assert_eq!(reply.questions(), ["user"]);
    assert_eq!(result["inputRequests"]["user"]["method"], "elicitation/create");
    assert!(result.get("taskId").is_none() && result.get("status").is_none(), "no task yet: {}", reply.body);
}

fn retry(client: &Client, state: &str, answer: Value) -> Prepared {
    client.tool("prepare_ask", json!({})).param("requestState", state).param("inputResponses", json!({"user": answer}))
}

fn ada() -> Value {
    accept(json!({"name": "Ada"}))
}

#[tokio::test]
async fn prepare_asks_first_and_the_task_comes_with_the_answer() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    assert_eq!(client.runs().await, 0);
    let created = retry(&client, &state, ada()).send().await;
    for field in ["inputRequests", "requestState"] {
        assert!(created.result().get(field).is_none(), "{field}: {}", created.body);
    }
    assert_eq!(client.wait_end(&created.task_id()).await.task_text(), "hello Ada");
}

#[tokio::test]
async fn without_the_extension_the_answer_comes_in_the_request() {
    let server = bed().start();
    let client = server.client().declaring(caps::without_tasks());
    let state = first_round(&client).await;
    assert_eq!(retry(&client, &state, ada()).send().await.text(), "hello Ada");
}

#[tokio::test]
async fn a_retry_without_the_answer_is_asked_again() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    let call = || client.tool("prepare_ask", json!({})).param("requestState", state.as_str());
    asks_for_the_user(&call().send().await);
    asks_for_the_user(&call().param("inputResponses", json!({})).send().await);
    asks_for_the_user(&call().param("inputResponses", json!({"other": 7, "USER": ada()})).send().await);
    let created = call().param("inputResponses", json!({"other": 7, "user": ada()})).send().await;
    client.wait_status(&created.task_id(), "completed").await;
}

#[tokio::test]
async fn malformed_answers_are_refused() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    for answer in [json!(7), json!(null), json!({"action": "maybe"}), accept(json!({})), accept(json!({"name": 42}))] {
        retry(&client, &state, answer).send().await.refused(200, -32602);
    }
    for responses in [json!(null), json!([]), json!("user")] {
        let call = client.tool("prepare_ask", json!({})).param("requestState", state.as_str());
        call.param("inputResponses", responses).send().await.refused(200, -32602);
    }
    retry(&client, &state, ada()).send().await.task_id();
}

#[tokio::test]
async fn a_state_that_was_tampered_with_is_refused() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    let mut tampered =
        vec![format!("{state}-TAMPERED"), format!("x{state}"), String::new(), "v1.".into(), "\u{0}é".into()];
    tampered.push(state[..state.len() - 1].into());
    tampered.push(state[1..].into());
    // Some characters all over it. Not the last: base64 leaves bits of it unused, so that two texts may be one state.
    for at in (0..state.len() - 1).step_by(7) {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        tampered.push(String::from_utf8(bytes).unwrap());
    }
    for state in tampered {
        let reply = retry(&client, &state, ada()).send().await;
        assert_eq!((reply.status, &reply.message["error"]["code"]), (200, &json!(-32602)), "{state}: {}", reply.body);
    }
    assert_eq!(client.runs().await, 0);
    retry(&client, &state, ada()).send().await.task_id();
}

#[tokio::test]
async fn a_state_that_is_no_text_is_refused() {
    let server = bed().start();
    let client = server.client();
    for state in [json!(7), json!({}), json!([])] {
        let call = client.tool("prepare_ask", json!({})).param("requestState", state.clone());
        let reply = call.param("inputResponses", json!({"user": ada()})).send().await;
        assert_eq!(reply.error()["code"], -32602, "{state}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_state_of_another_tool_is_refused() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    let other = client.call_tool("test_tool_with_task", json!({})).await;
    assert_eq!(other.result()["resultType"], "input_required", "{}", other.body);
    let key = &other.questions()[0];
    let call = client.tool("test_tool_with_task", json!({})).param("inputResponses", json!({key: ada()}));
    call.clone().param("requestState", state).send().await.refused(200, -32602);
    let state = other.result()["requestState"].as_str().unwrap();
    retry(&client, state, ada()).send().await.refused(200, -32602);
    call.param("requestState", state).send().await.task_id();
}

#[tokio::test]
async fn a_state_of_other_arguments_is_refused() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    let mut call = retry(&client, &state, ada());
    call.body["params"]["arguments"] = json!({"other": 1});
    let reply = call.send().await;
    // Either way no task: the schema may forbid the argument before the state is looked at.
    assert!(reply.message["error"]["code"] == -32602 || reply.result()["isError"] == true, "{}", reply.body);
}

#[tokio::test]
async fn a_state_of_another_server_is_refused() {
    let one = bed().start();
    let state = first_round(&one.client()).await;
    let two = bed().start();
    retry(&two.client(), &state, ada()).send().await.refused(200, -32602);
    retry(&one.client(), &state, ada()).send().await.task_id();
}

#[tokio::test]
async fn a_state_expires() {
    let server = bed().setting("server.state_ttl_ms", 200).start();
    let client = server.client();
    let state = first_round(&client).await;
    tokio::time::sleep(Duration::from_millis(300)).await; // time itself is what is waited for
    retry(&client, &state, ada()).send().await.refused(200, -32602);
    assert_eq!(client.runs().await, 0);
}

#[tokio::test]
async fn prepare_asks_nothing_that_the_request_did_not_declare() {
    let server = bed().start();
    for declared in [json!({}), json!({"elicitation": {"url": {}}}), json!({"sampling": {}})] {
        let client = server.client().declaring(caps::with_tasks(declared));
        let reply = client.call_tool("prepare_ask", json!({})).await;
        let error = reply.refused(400, -32021);
        assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object(), "{error}");
    }
}

#[tokio::test]
async fn questions_before_and_in_a_task_have_keys_of_their_own() {
    let server = bed().start();
    let client = server.client();
    let state = first_round(&client).await;
    let created = retry(&client, &state, accept(json!({"name": "東京"}))).send().await;
    client.task_update(&created.task_id(), json!({"user": ada()})).await.acknowledged();
    assert_eq!(client.wait_end(&created.task_id()).await.task_text(), "hello 東京");
}
