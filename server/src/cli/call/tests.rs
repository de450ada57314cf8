//! Whole calls against a scripted server over real HTTP.

use clap::Parser;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::*;
use crate::client::scripted::{Answer, Scripted, Seen};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: CallArgs,
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } } })
}

fn done(text: &str, is_error: bool) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }], "isError": is_error })
}

fn task(result_type: &str, status: &str, more: Value) -> Value {
    let mut task = json!({ "resultType": result_type, "taskId": "T1", "status": status, "ttlMs": null,
        "pollIntervalMs": 60_000, "createdAt": "2026-09-01T08:00:00Z", "lastUpdatedAt": "2026-09-01T08:00:00Z" });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn question(default: Option<&str>) -> Value {
    let mut name = json!({ "type": "string" });
    if let Some(default) = default {
        name["default"] = json!(default);
    }
    json!({ "ask": { "method": "elicitation/create", "params": { "mode": "form", "message": "Who?",
        "requestedSchema": { "type": "object", "required": ["name"], "properties": { "name": name } } } } })
}

/// A server with the tool `t` that answers everything else by `script`.
async fn server(mut script: impl FnMut(&Seen) -> Answer + Send + 'static) -> Scripted {
    Scripted::start(move |request| match request.method() {
        "tools/list" => Answer::Result(json!({ "tools": [{ "name": "t", "inputSchema": schema() }] })),
        _ => script(request),
    })
    .await
}

struct Outcome {
    ended: anyhow::Result<Exit>,
    printed: String,
}

impl Outcome {
    fn error(&self) -> String {
        self.ended.as_ref().unwrap_err().to_string()
    }

    fn exit(&self) -> Exit {
        match &self.ended {
            Ok(exit) => *exit,
            Err(error) => Exit::of(error),
        }
    }
}

async fn call(url: &str, line: &str, answerer: Answerer) -> Outcome {
    let (_press, interrupts) = Interrupts::scripted();
    call_with(url, line, answerer, interrupts).await
}

async fn call_with(url: &str, line: &str, answerer: Answerer, interrupts: Interrupts) -> Outcome {
    let words = ["call", "--url", url].into_iter().chain(line.split(' '));
    let args = Line::parse_from(words).args;
    let client = args.endpoint.client().unwrap();
    let around = Surroundings { answerer, interrupts, terminal: false };
    let mut out = Vec::new();
    let ended = perform(&args, &client, around, &mut out).await;
    Outcome { ended, printed: String::from_utf8(out).unwrap() }
}

#[tokio::test]
async fn an_inline_answer_is_printed() {
    let server = server(|_| Answer::Result(done("hello", false))).await;
    let outcome = call(&server.url, "t --arg n=5", Answerer::Nobody).await;
    assert_eq!((outcome.exit(), outcome.printed.as_str()), (Exit::Ok, "hello\n"));
    assert_eq!(server.of("tools/call")[0].params()["arguments"], json!({ "n": 5 }));
}

#[tokio::test]
async fn a_tool_that_says_it_failed_is_printed_and_exits_1() {
    let server = server(|_| Answer::Result(done("no such file", true))).await;
    let outcome = call(&server.url, "t", Answerer::Nobody).await;
    assert_eq!((outcome.exit(), outcome.printed.as_str()), (Exit::Failed, "no such file\n"));
}

#[tokio::test]
async fn a_task_with_a_question_is_followed_answered_once_and_printed() {
    let mut answered = false;
    let server = server(move |request| match request.method() {
        "tools/call" => Answer::Result(task("task", "working", json!({}))),
        "tasks/update" => {
            answered = true;
            Answer::Result(json!({ "resultType": "complete" }))
        }
        _ if answered => Answer::Result(task("complete", "completed", json!({ "result": done("hello Ada", false) }))),
        _ => Answer::Result(task("complete", "input_required", json!({ "inputRequests": question(Some("Ada")) }))),
    })
    .await;
    let outcome = call(&server.url, "t", Answerer::Defaults).await;
    assert_eq!((outcome.exit(), outcome.printed.as_str()), (Exit::Ok, "hello Ada\n"));
    let updates = server.of("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(
        updates[0].params()["inputResponses"],
        json!({ "ask": { "action": "accept", "content": { "name": "Ada" } } })
    );
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_ends_the_call_but_not_the_task() {
    let server =
        server(|_| Answer::Result(task("task", "input_required", json!({ "inputRequests": question(None) })))).await;
    let outcome = call(&server.url, "t", Answerer::Nobody).await;
    assert_eq!(outcome.exit(), Exit::Unanswered);
    let want = "tokkuri task answer T1 ask accept --json '{\"name\":\"…\"}' --url http://127.0.0.1:";
    assert!(outcome.error().contains(want), "{}", outcome.error());
    assert!(server.of("tasks/cancel").is_empty());
}

#[tokio::test]
async fn a_failed_task_says_why_and_exits_1() {
    let server = server(|request| match request.method() {
        "tools/call" => Answer::Result(task("task", "working", json!({ "statusMessage": "1/2 first" }))),
        _ => Answer::Result(task(
            "complete",
            "failed",
            json!({ "error": { "code": -32603, "message": "the node was lost" } }),
        )),
    })
    .await;
    let outcome = call(&server.url, "t", Answerer::Nobody).await;
    assert_eq!(outcome.exit(), Exit::Failed);
    assert_eq!(outcome.error(), "the task failed: the node was lost (code -32603)");
}

#[tokio::test]
async fn what_a_tool_asks_before_it_starts_is_answered_on_the_retry() {
    let server = server(|request| match request.params().get("inputResponses") {
        Some(_) => Answer::Result(done("hello", false)),
        None => Answer::Result(json!({ "resultType": "input_required", "requestState": "s",
            "inputRequests": question(None) })),
    })
    .await;
    let outcome = call(&server.url, "t", Answerer::Defaults).await;
    assert_eq!(outcome.printed, "hello\n");
    let retry = &server.of("tools/call")[1];
    assert_eq!(retry.params()["requestState"], "s");
    assert_eq!(retry.params()["inputResponses"], json!({ "ask": { "action": "decline" } }));
}

#[tokio::test]
async fn a_detached_call_prints_the_id_and_asks_no_more() {
    let server = server(|_| Answer::Result(task("task", "working", json!({})))).await;
    let outcome = call(&server.url, "t --detach", Answerer::Nobody).await;
    assert_eq!((outcome.exit(), outcome.printed.as_str()), (Exit::Ok, "T1\n"));
    assert!(server.of("tasks/get").is_empty());
}

/// A server whose task runs until it is cancelled (or, if it `stays`, for ever), and that presses Ctrl-C itself: when
/// the task is first polled, and if it stays again while the cancel waits for its acknowledgement.
async fn cancelling(press: UnboundedSender<()>, stays: bool) -> Scripted {
    let (mut polled, mut cancelled) = (false, false);
    server(move |request| match request.method() {
        "tools/call" => Answer::Result(task("task", "working", json!({}))),
        "tasks/cancel" => {
            cancelled = true;
            if stays {
                press.send(()).unwrap();
            }
            Answer::Result(json!({ "resultType": "complete" }))
        }
        _ if cancelled && !stays => Answer::Result(task("complete", "cancelled", json!({}))),
        _ => {
            if !polled {
                polled = true;
                press.send(()).unwrap();
            }
            Answer::Result(task("complete", "working", json!({})))
        }
    })
    .await
}

#[tokio::test]
async fn ctrl_c_cancels_the_task_once_and_waits_for_its_end() {
    let (press, interrupts) = Interrupts::scripted();
    let server = cancelling(press, false).await;
    let outcome = call_with(&server.url, "t", Answerer::Nobody, interrupts).await;
    assert_eq!(outcome.exit(), Exit::Interrupted);
    let last: Vec<_> = server.seen().iter().rev().take(2).map(|r| r.method().to_owned()).collect();
    assert_eq!(last, ["tasks/get", "tasks/cancel"]);
    assert_eq!(server.of("tasks/cancel").len(), 1);
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_a_task_that_does_not_end() {
    let (press, interrupts) = Interrupts::scripted();
    let server = cancelling(press, true).await;
    let outcome = call_with(&server.url, "t", Answerer::Nobody, interrupts).await;
    assert_eq!(outcome.exit(), Exit::Interrupted);
    assert_eq!(server.of("tasks/cancel").len(), 1);
}

#[tokio::test]
async fn what_cannot_be_called_says_why_with_its_own_exit_code() {
    let server = server(|_| Answer::Error(200, json!({ "code": -32602, "message": "no" }))).await;
    for (line, exit, needle) in [
        ("tt", Exit::Refused, "the server has no tool \"tt\"; did you mean t?"),
        ("t --arg n=many", Exit::Usage, "n is a whole number"),
        ("t --json [1]", Exit::Usage, "--json is no object"),
        ("t", Exit::Refused, "the server refused tools/call: no (code -32602)"),
    ] {
        let outcome = call(&server.url, line, Answerer::Nobody).await;
        assert_eq!(outcome.exit(), exit, "{line}");
        assert!(outcome.error().contains(needle), "{line}: {}", outcome.error());
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = call(&format!("http://{free}/mcp"), "t", Answerer::Nobody).await;
    assert_eq!(outcome.exit(), Exit::Unreachable);
}
