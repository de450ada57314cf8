//! One body, all modes: as a task, in the request of a modern client (asked by rounds), in the request of a client of the
//! earlier era (asked on its session), over HTTP and over stdio. The tool cannot tell, and the answers are the same.

use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, EarlierClient, Server, Stdio, caps};
use tokkuri_tests::one_process;

use super::bed;

/// One call of a tool that asks, and what has to come of it in every mode.
struct Case {
    tool: &'static str,
    arguments: Value,
    /// The questions, as they come together.
    rounds: &'static [&'static [&'static str]],
    /// In the order of the questions.
    answers: Vec<Value>,
    text: &'static str,
}

fn case(
    tool: &'static str,
    arguments: Value,
    rounds: &'static [&'static [&'static str]],
    names: &[&str],
    text: &'static str,
) -> Case {
    let answers = names.iter().map(|name| accept(json!({"name": name}))).collect();
    Case { tool, arguments, rounds, answers, text }
}

fn cases() -> Vec<Case> {
    let mut declined = case("ask", json!({"message": "Who?"}), &[&["ask"]], &[], "declined");
    declined.answers.push(json!({"action": "decline"}));
    let mut mixed = case("ask_many", json!({"n": 2, "parallel": true}), &[&["q1", "q2"]], &[], "dismissed,b");
    mixed.answers.extend([json!({"action": "cancel"}), accept(json!({"name": "b", "age": 7}))]);
    vec![
        case("ask", json!({"message": "Who?"}), &[&["ask"]], &["東京"], "hello 東京"),
        case("ask_many", json!({"n": 3, "parallel": true}), &[&["q1", "q2", "q3"]], &["a", "b", "c"], "a,b,c"),
        case("ask_many", json!({"n": 3, "parallel": false}), &[&["q1"], &["q2"], &["q3"]], &["a", "b", "c"], "a,b,c"),
        case("ask_blocking", json!({"n": 3}), &[&["q1"], &["q2"], &["q3"]], &["a", "b", "c"], "a,b,c"),
        // The second time, the key has its answer already.
        case("ask_again", json!({}), &[&["k"]], &["Ada"], "hello Ada hello Ada"),
        case("restartable_ask", json!({"name": "m", "n": 2}), &[&["q1"], &["q2"]], &["a", "b"], "a,b"),
        declined,
        mixed,
    ]
}

/// What stands in the content of an earlier or inner result.
fn text(result: &Value) -> &str {
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {result}"))
}

fn keys(asked: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = asked["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// What a client of the earlier era answers: it sees no keys, but questions that could be confused say their key.
fn answers_by_message(answers: &[Value]) -> impl FnMut(&Value) -> Value {
    let mut in_order = answers.iter();
    move |request| {
        let next = in_order.next().unwrap_or_else(|| panic!("asked once too often: {request}"));
        let message = request["params"]["message"].as_str().unwrap_or_default();
        let numbered = (1..=answers.len()).find(|n| message == format!("Who is q{n}?"));
        numbered.map_or(next, |n| &answers[n - 1]).clone()
    }
}

/// The answers of one round, by key; takes them from the front.
fn next_answers(round: &[&str], answers: &mut impl Iterator<Item = Value>) -> Value {
    round.iter().map(|key| ((*key).to_owned(), answers.next().expect("an answer for each question"))).collect()
}

async fn as_a_task(client: &Client, case: &Case) {
    let id = client.create(case.tool, case.arguments.clone()).await;
    let mut answers = case.answers.iter().cloned();
    for round in case.rounds {
        client.wait_questions(&id, round).await;
        client.task_update(&id, next_answers(round, &mut answers)).await.acknowledged();
    }
    assert_eq!(client.wait_end(&id).await.task_text(), case.text);
}

async fn by_rounds(client: &Client, case: &Case) {
    let mut answers = case.answers.iter().cloned();
    let mut reply = client.call_tool(case.tool, case.arguments.clone()).await;
    for round in case.rounds {
        assert_eq!((reply.questions(), &reply.result()["resultType"]), (owned(round), &json!("input_required")));
        let mut call = client.tool(case.tool, case.arguments.clone());
        call = call.param("requestState", reply.result()["requestState"].clone());
        reply = call.param("inputResponses", next_answers(round, &mut answers)).send().await;
    }
    assert_eq!(reply.text(), case.text);
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

async fn on_a_session(client: &EarlierClient, case: &Case) {
    let (reply, asked) =
        client.call_answering(case.tool, case.arguments.clone(), answers_by_message(&case.answers)).await;
    assert_eq!(text(reply.result()), case.text);
    assert_eq!(asked.len(), case.answers.len(), "{asked:?}");
    assert!(asked.iter().all(|request| request["method"] == "elicitation/create"), "{asked:?}");
}

#[tokio::test]
async fn over_http_every_mode_answers_the_same() {
    let server = bed().start();
    let client = server.client();
    let undeclaring = client.declaring(caps::without_tasks());
    let earlier = EarlierClient::connect(&server, caps::without_tasks()).await;
    for case in cases() {
        as_a_task(&client, &case).await;
        by_rounds(&undeclaring, &case).await;
        on_a_session(&earlier, &case).await;
    }
    client.wait_runs(0).await;
}

#[tokio::test]
async fn over_stdio_every_mode_answers_the_same() {
    one_process!("a client of stdio starts its server itself: one");
    for case in cases() {
        // The era belongs to the connection, and so does the process.
        let mut client = Stdio::modern(&bed(), caps::all());
        let created = client.call_tool(case.tool, case.arguments.clone()).await;
        let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}")).to_owned();
        let mut answers = case.answers.iter().cloned();
        for round in case.rounds {
            client.wait_task(&id, |task| task["status"] == "input_required" && keys(task) == *round).await;
            let answers = next_answers(round, &mut answers);
            let ack = client.request("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
            assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
        }
        let ended = client.wait_task(&id, |task| task["status"] == "completed").await;
        assert_eq!(text(&ended["result"]["result"]), case.text);
        drop(client);

        let mut client = Stdio::modern(&bed(), caps::without_tasks());
        let mut answers = case.answers.iter().cloned();
        let mut reply = client.call_tool(case.tool, case.arguments.clone()).await;
        for round in case.rounds {
            assert_eq!(
                (reply["result"]["resultType"].as_str(), keys(&reply["result"])),
                (Some("input_required"), round.to_vec())
            );
            let params = json!({"name": case.tool, "arguments": case.arguments, "requestState": reply["result"]["requestState"],
                "inputResponses": next_answers(round, &mut answers)});
            reply = client.request("tools/call", params).await;
        }
        assert_eq!(text(&reply["result"]), case.text);
        drop(client);

        let mut client = Stdio::earlier(&bed(), caps::without_tasks()).await;
        let (reply, asked) =
            client.call_answering(case.tool, case.arguments.clone(), answers_by_message(&case.answers)).await;
        assert_eq!(text(&reply["result"]), case.text);
        assert_eq!(asked.len(), case.answers.len());
    }
}

#[tokio::test]
async fn a_question_on_the_session_that_is_answered_badly_fails_the_call_and_not_the_session() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, caps::without_tasks()).await;
    for answer in [json!({"action": "maybe"}), json!({}), accept(json!({"name": 7})), accept(json!({}))] {
        let (reply, _) = client.call_answering("ask", json!({"message": "Who?"}), |_| answer.clone()).await;
        assert!(!reply.tool_error().is_empty());
    }
    let ada = |_: &Value| accept(json!({"name": "Ada"}));
    let (reply, _) = client.call_answering("ask", json!({"message": "Who?"}), ada).await;
    assert_eq!(text(reply.result()), "hello Ada");
}

#[tokio::test]
async fn a_client_that_did_not_declare_a_question_is_not_asked_it() {
    let server = bed().start();
    let undeclaring = server.client().declaring(json!({}));
    // The body is told, and this one passes it on.
    let reply = undeclaring.call_tool("ask", json!({"message": "Who?"})).await;
    assert!(reply.tool_error().contains("elicitation"), "{}", reply.body);
    let earlier = EarlierClient::connect(&server, json!({})).await;
    for (tool, arguments) in [("ask", json!({"message": "Who?"})), ("prepare_ask", json!({})), ("sample", json!({}))] {
        let (reply, asked) = earlier.call_answering(tool, arguments, |_| Value::Null).await;
        assert!(asked.is_empty());
        assert!(!reply.tool_error().is_empty(), "{}", reply.body);
    }
}

#[tokio::test]
async fn prepare_and_every_kind_of_question_work_on_a_session() {
    let server = bed().start();
    let client = EarlierClient::connect(&server, caps::without_tasks()).await;
    let name = |_: &Value| accept(json!({"name": "Ada"}));
    assert_eq!(text(client.call_answering("prepare_ask", json!({}), name).await.0.result()), "hello Ada");
    let sampled = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
    let (reply, asked) = client.call_answering("sample", json!({}), |_| sampled.clone()).await;
    assert_eq!(asked[0]["method"], "sampling/createMessage");
    assert!(text(reply.result()).contains("Paris"));
    let roots = json!({"roots": [{"uri": "file:///a", "name": "a"}]});
    let (reply, asked) = client.call_answering("roots", json!({}), |_| roots.clone()).await;
    assert_eq!(asked[0]["method"], "roots/list");
    assert!(text(reply.result()).contains("file:///a"));
    let (reply, asked) = client.call_answering("ask_url", json!({}), |_| json!({"action": "accept"})).await;
    assert_eq!(asked[0]["params"]["mode"], "url");
    assert_eq!(text(reply.result()), r#"{"action":"accept"}"#);
}

/// A client of the earlier era that is gone leaves its call running.
#[tokio::test]
async fn a_call_on_a_session_goes_on_without_its_connection() {
    let server: Server = bed().start();
    let client = EarlierClient::connect(&server, json!({})).await;
    client.call_and_hang_up("count", json!({"name": "c", "ms": 400})).await;
    let counter = server.client().wait_counter("c", |counter| counter.finished == 1).await;
    assert_eq!((counter.started, counter.cancelled), (1, 0));
}
