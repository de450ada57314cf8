//! Questions of a running task, and the answers that come by `tasks/update`.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;

use super::bed;

fn name(name: &str) -> Value {
    accept(json!({"name": name}))
}

#[tokio::test]
async fn a_question_is_asked_and_its_answer_reaches_the_tool() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "Who are you?"})).await;
    let asked = client.wait_questions(&id, &["ask"]).await;
    let request = &asked.result()["inputRequests"]["ask"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who are you?");
    assert_eq!(request["params"]["requestedSchema"]["required"], json!(["name"]));
    client.task_update(&id, json!({"ask": accept(json!({"name": "Ada", "age": 36}))})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

#[tokio::test]
async fn a_question_stands_under_the_key_that_the_tool_chose() {
    let server = bed().start();
    let client = server.client();
    for key in ["who", "a/b", "a.b~c", "Schlüssel", "", "__proto__"] {
        let id = client.create("ask", json!({"message": "?", "key": key})).await;
        client.wait_questions(&id, &[key]).await;
        client.task_update(&id, json!({key: name("Ada")})).await.acknowledged();
        assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
    }
}

#[tokio::test]
async fn answered_questions_vanish_and_the_status_follows() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 3, "parallel": true})).await;
    client.wait_questions(&id, &["q1", "q2", "q3"]).await;
    client.task_update(&id, json!({"q3": name("c")})).await.acknowledged();
    let read = client.task_get(&id).await;
    assert_eq!((read.task_status(), read.questions()), ("input_required", vec!["q1".into(), "q2".into()]));
    client.task_update(&id, json!({"q2": name("b"), "q1": name("a")})).await.acknowledged();
    assert_ne!(client.task_get(&id).await.task_status(), "input_required");
    assert_eq!(client.wait_end(&id).await.task_text(), "a,b,c");
}

#[tokio::test]
async fn a_key_asked_again_gives_the_first_answer_without_asking() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_again", json!({})).await;
    client.wait_questions(&id, &["k"]).await;
    client.task_update(&id, json!({"k": name("Ada")})).await.acknowledged();
    let ended = client
        .wait(&id, "its end", |reply| {
            assert_ne!(reply.task_status(), "input_required", "asked once more: {}", reply.body);
            reply.task_status() == "completed"
        })
        .await;
    assert_eq!(ended.task_text().matches("Ada").count(), 2, "both replies: {}", ended.body);
}

/// H07
#[tokio::test]
async fn an_update_of_a_working_task_is_acknowledged_and_changes_nothing() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("count", json!({"name": "c", "ms": 60_000})).await;
    client.wait_counter("c", |counter| counter.started == 1).await;
    let before = client.task_get(&id).await;
    assert_eq!(before.task_status(), "working");
    client.task_update(&id, json!({})).await.acknowledged();
    client.task_update(&id, json!({"no such key": name("Ada")})).await.acknowledged();
    assert_eq!(client.task_get(&id).await.raw(&["result"]), before.raw(&["result"]));
    assert_eq!(client.counter("c").await.started, 1);
}

#[tokio::test]
async fn an_update_of_an_ended_task_is_acknowledged_and_changes_nothing() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    client.wait_questions(&id, &["ask"]).await;
    client.task_update(&id, json!({"ask": name("Ada")})).await.acknowledged();
    let ended = client.wait_end(&id).await;
    for answers in [json!({"ask": name("Bob")}), json!({}), json!({"ask": 7})] {
        client.task_update(&id, answers).await.acknowledged();
        assert_eq!(client.task_get(&id).await.raw(&["result"]), ended.raw(&["result"]));
    }
}

/// H08
#[tokio::test]
async fn an_answer_replayed_during_the_next_question_answers_nothing() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 2, "parallel": false})).await;
    client.wait_questions(&id, &["q1"]).await;
    client.task_update(&id, json!({"q1": name("first")})).await.acknowledged();
    let asked = client.wait_questions(&id, &["q2"]).await;
    for _ in 0..3 {
        client.task_update(&id, json!({"q1": name("first")})).await.acknowledged();
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
    }
    client.task_update(&id, json!({"q2": name("second")})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "first,second");
}

/// H09
#[tokio::test]
async fn the_first_answer_to_a_key_wins() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 2, "parallel": true})).await;
    client.wait_questions(&id, &["q1", "q2"]).await;
    client.task_update(&id, json!({"q1": name("yes")})).await.acknowledged();
    assert_eq!(client.task_get(&id).await.questions(), ["q2"]);
    client.task_update(&id, json!({"q1": name("no")})).await.acknowledged();
    client.task_update(&id, json!({"q1": 7})).await.acknowledged();
    assert_eq!(client.task_get(&id).await.questions(), ["q2"]);
    client.task_update(&id, json!({"q2": name("ok")})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "yes,ok");
}

/// H11
#[tokio::test]
async fn unknown_keys_are_dropped_before_their_values_are_looked_at() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    let asked = client.wait_questions(&id, &["ask"]).await;
    for answers in [
        json!({"ASK": name("Ada")}),
        json!({"ask ": name("Ada")}),
        json!({"unknown-key": {"ignored": true}}),
        json!({"unknown-key": 7, "other": null, "third": [[]]}),
        json!({}),
    ] {
        client.task_update(&id, answers).await.acknowledged();
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
    }
    client.task_update(&id, json!({"unknown-key": 7, "ask": name("Ada")})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

/// H11
#[tokio::test]
async fn input_responses_that_are_no_object_are_refused() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    let asked = client.wait_questions(&id, &["ask"]).await;
    for answers in [json!([]), json!(null), json!(7), json!("ask")] {
        client.task_update(&id, answers).await.refused(200, -32602);
    }
    client.request("tasks/update", json!({"taskId": id})).await.refused(200, -32602);
    assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
}

/// H12
#[tokio::test]
async fn decline_and_cancel_reach_the_tool_as_such() {
    let server = bed().start();
    let client = server.client();
    for (action, text) in [("decline", "declined"), ("cancel", "dismissed")] {
        let id = client.create("ask", json!({"message": "?"})).await;
        client.wait_questions(&id, &["ask"]).await;
        client.task_update(&id, json!({"ask": {"action": action}})).await.acknowledged();
        assert_eq!(client.wait_end(&id).await.task_text(), text);
    }
}

/// H12
#[tokio::test]
async fn an_answer_that_breaks_the_form_is_refused_and_the_key_stays_outstanding() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask", json!({"message": "?"})).await;
    let asked = client.wait_questions(&id, &["ask"]).await;
    for answer in [
        accept(json!({})),
        accept(json!({"name": 42})),
        accept(json!({"name": null})),
        accept(json!({"name": "Ada", "age": -1})),
        accept(json!({"name": "Ada", "age": 1.5})),
        accept(json!({"name": "Ada", "age": "36"})),
        accept(json!(7)),
        accept(json!([])),
        json!({"action": "accept"}),
        json!({"action": "maybe"}),
        json!({"action": "ACCEPT", "content": {"name": "Ada"}}),
        json!({"content": {"name": "Ada"}}),
        json!({}),
        json!(null),
        json!("Ada"),
    ] {
        client.task_update(&id, json!({"ask": answer})).await.refused(200, -32602);
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]), "{answer}");
    }
    client.task_update(&id, json!({"ask": name("Ada")})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

/// H12
#[tokio::test]
async fn one_bad_answer_refuses_the_whole_update() {
    let server = bed().start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 2, "parallel": true})).await;
    let asked = client.wait_questions(&id, &["q1", "q2"]).await;
    for answers in [json!({"q1": name("a"), "q2": 7}), json!({"q1": accept(json!({})), "q2": name("b")})] {
        client.task_update(&id, answers).await.refused(200, -32602);
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
    }
    client.task_update(&id, json!({"q1": name("a"), "q2": name("b")})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "a,b");
}

#[tokio::test]
async fn an_answer_reaches_the_tool_even_if_every_signal_is_lost() {
    let server = bed().env("TOKKURI_TEST_NO_SIGNALS", 1).setting("tasks.poll_interval_ms", 100).start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 3, "parallel": false})).await;
    for key in ["q1", "q2", "q3"] {
        client.wait_questions(&id, &[key]).await;
        client.task_update(&id, json!({key: name(key)})).await.acknowledged();
    }
    assert_eq!(client.wait_end(&id).await.task_text(), "q1,q2,q3");
}
