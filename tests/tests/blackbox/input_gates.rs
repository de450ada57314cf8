//! What may be asked at all, by kind: nothing that the creating request did not declare.

use serde_json::{Value, json};
use tokkuri_tests::harness::{caps, client::accept};

use super::bed;

const URL: &str = "elicitation/create";

#[tokio::test]
async fn every_kind_of_question_reaches_the_client_and_its_answer_the_tool() {
    let server = bed().start();
    let client = server.client();
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "Paris-71"}, "model": "m"});
    for (tool, method, answer, mark) in [
        ("ask_url", URL, json!({"action": "accept"}), "accept"),
        ("ask_url", URL, json!({"action": "decline"}), "decline"),
        ("sample", "sampling/createMessage", message, "Paris-71"),
        ("roots", "roots/list", json!({"roots": [{"uri": "file:///home/ada", "name": "home"}]}), "file:///home/ada"),
        ("roots", "roots/list", json!({"roots": []}), "roots"),
    ] {
        let id = client.create(tool, json!({})).await;
        let asked = client.wait_status(&id, "input_required").await;
        let [key] = &asked.questions()[..] else { panic!("one question: {}", asked.body) };
        let request = &asked.result()["inputRequests"][key];
        assert_eq!(request["method"], method);
        if tool == "ask_url" {
            assert_eq!(request["params"]["mode"], "url");
            assert!(request["params"].get("elicitationId").is_none(), "of the earlier era: {request}");
        }
        client.task_update(&id, json!({key: answer})).await.acknowledged();
        let ended = client.wait_end(&id).await;
        serde_json::from_str::<Value>(ended.task_text()).expect("the tool answers what it got as JSON");
        assert!(ended.task_text().contains(mark), "{tool}: {}", ended.body);
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_kind_is_refused_and_the_key_stays_outstanding() {
    let server = bed().start();
    let client = server.client();
    for (tool, bad) in [
        ("ask_url", vec![json!({"action": "maybe"}), json!({}), json!(7), json!({"roots": []})]),
        (
            "sample",
            vec![json!(7), json!({}), json!({"action": "accept"}), json!({"role": "robot", "content": [], "model": 1})],
        ),
        ("roots", vec![json!(7), json!({}), json!({"roots": 7}), json!({"roots": [{"name": "no uri"}]})]),
    ] {
        let id = client.create(tool, json!({})).await;
        let asked = client.wait_status(&id, "input_required").await;
        let key = &asked.questions()[0];
        for answer in bad {
            client.task_update(&id, json!({key: answer})).await.refused(200, -32602);
            assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]), "{tool}: {answer}");
        }
        client.task_cancel(&id).await.acknowledged();
    }
}

#[tokio::test]
async fn what_the_creating_request_did_not_declare_is_never_asked() {
    let server = bed().start();
    let client = server.client();
    let form = json!({"elicitation": {"form": {}}});
    let url = json!({"elicitation": {"url": {}}});
    for (tool, declared) in [
        ("ask", json!({})),
        ("ask", url),
        ("ask", json!({"sampling": {}, "roots": {}})),
        ("ask_url", json!({})),
        ("ask_url", form),
        ("ask_url", json!({"elicitation": {}})),
        ("sample", json!({"elicitation": {"form": {}, "url": {}}, "roots": {}})),
        ("roots", json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}})),
    ] {
        let client = client.declaring(caps::with_tasks(declared.clone()));
        let arguments = if tool == "ask" { json!({"message": "?"}) } else { json!({}) };
        let id = client.create(tool, arguments).await;
        let ended = client
            .wait(&id, "its end", |reply| {
                assert_ne!(reply.task_status(), "input_required", "{tool} with {declared}: {}", reply.body);
                reply.task_status() != "working"
            })
            .await;
        let told = ended.task_status() == "failed" || ended.result()["result"]["isError"] == true;
        assert!(told, "the tool was told that it may not ask: {tool} with {declared}: {}", ended.body);
    }
}

#[tokio::test]
async fn an_empty_elicitation_capability_means_forms() {
    let server = bed().start();
    let client = server.client().declaring(caps::with_tasks(json!({"elicitation": {}})));
    let id = client.create("ask", json!({"message": "?"})).await;
    client.wait_questions(&id, &["ask"]).await;
    client.task_update(&id, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

#[tokio::test]
async fn a_poll_that_declares_only_the_extension_still_sees_and_answers_the_questions() {
    let server = bed().start();
    let id = server.client().create("ask", json!({"message": "?"})).await;
    let poller = server.client().declaring(caps::only_tasks());
    poller.wait_questions(&id, &["ask"]).await;
    poller.task_update(&id, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    assert_eq!(poller.wait_end(&id).await.task_text(), "hello Ada");
}
