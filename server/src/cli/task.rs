//! `tokkuri task`: what can be done with a task that already is.

use std::io::{self, IsTerminal as _, Write};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::{
    Endpoint, Exit, Stop, arguments, content,
    follow::{Follow, OnInterrupt, finish},
    interrupt::Interrupts,
    questions::{Answerer, message},
    show::{Show, printable},
};
use crate::client::{Client, Task};

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Print where a task stands: status, questions, result.
    Get {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Follow a task to its end and print its result.
    #[command(after_help = "\
At a terminal its questions are asked; elsewhere they are told with the command that answers them.
Ctrl-C leaves; the task goes on.")]
    Follow {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Cancel a task.
    Cancel {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Answer a question of a task.
    #[command(after_help = "\
Examples:
  tokkuri task get ID                                     shows the questions and their keys
  tokkuri task answer ID ask accept --json '{\"name\": \"Ada\"}'
  tokkuri task answer ID ask decline")]
    Answer {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        /// Key of the question.
        key: String,
        /// What to do with it.
        action: Action,
        /// The content of an accepted form, as one JSON object; for other questions the whole answer.
        #[arg(long, value_name = "JSON")]
        json: Option<String>,
        #[command(flatten)]
        endpoint: Endpoint,
    },
}

/// What can be done with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Say yes, with the content given.
    Accept,
    /// Say no.
    Decline,
    /// Dismiss it without a decision.
    Cancel,
}

pub(crate) async fn run(args: TaskArgs) -> anyhow::Result<Exit> {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let mut out = stdout.lock();
    match args.command {
        TaskCommand::Get { id, endpoint } => {
            let task = endpoint.client()?.task(&id).await?;
            print(&mut out, &task, terminal)?;
            Ok(Exit::Ok)
        }
        TaskCommand::Follow { id, endpoint } => {
            let client = endpoint.client()?;
            let task = client.task(&id).await?;
            // A server that refuses it is polled.
            let stream = client.follow(&id).await.ok();
            let follow = Follow {
                client: &client,
                show: &mut Show::new("task"),
                interrupts: &mut Interrupts::listen(),
                answerer: Answerer::of(false),
                on_interrupt: OnInterrupt::Leave,
                must_answer: false,
                stream,
                url_flag: endpoint.flag(),
            };
            let ended = follow.run(task).await?;
            finish(&mut out, ended, terminal)
        }
        TaskCommand::Cancel { id, endpoint } => {
            let client = endpoint.client()?;
            client.cancel(&id).await?;
            // The acknowledgement says nothing of the task: it may have ended before.
            let task = client.task(&id).await?;
            writeln!(out, "{}", task.status.as_str())?;
            Ok(Exit::Ok)
        }
        TaskCommand::Answer { id, key, action, json, endpoint } => {
            let client = endpoint.client()?;
            answer(&client, &id, &key, action, json.as_deref()).await?;
            Ok(Exit::Ok)
        }
    }
}

/// Answers one question; one that is not outstanding is an error here, since the server would ignore it unseen.
async fn answer(client: &Client, id: &str, key: &str, action: Action, json: Option<&str>) -> anyhow::Result<()> {
    if json.is_some() && action != Action::Accept {
        return Err(Stop::new(Exit::Usage, "--json goes with accept only").into());
    }
    let content = json.map(arguments::object).transpose()?;
    let task = client.task(id).await?;
    let Some(question) = task.questions.get(key) else {
        let keys: Vec<_> = task.questions.keys().map(String::as_str).collect();
        let line = match keys.is_empty() {
            true => format!("the task asks nothing (it is {})", task.status.as_str()),
            false => format!("the task does not ask {key:?}; it asks: {}", keys.join(", ")),
        };
        return Err(Stop::new(Exit::Refused, line).into());
    };
    let elicitation = question.method == "elicitation/create";
    let form = question.params.get("mode").and_then(Value::as_str) != Some("url");
    let answer = match (action, elicitation, content) {
        (Action::Accept, true, None) if form => json!({ "action": "accept", "content": {} }),
        (Action::Accept, true, None) => json!({ "action": "accept" }),
        (Action::Accept, true, Some(content)) => json!({ "action": "accept", "content": content }),
        (Action::Accept, false, Some(whole)) => Value::Object(whole),
        (Action::Decline, true, _) => json!({ "action": "decline" }),
        (Action::Cancel, true, _) => json!({ "action": "cancel" }),
        (Action::Accept | Action::Decline | Action::Cancel, false, _) => {
            let line = format!("{key:?} is asked by {}; give accept and the whole result with --json", question.method);
            return Err(Stop::new(Exit::Usage, line).into());
        }
    };
    client.answer(id, Map::from_iter([(key.to_owned(), answer)])).await?;
    Ok(())
}

fn print(out: &mut dyn Write, task: &Task, terminal: bool) -> anyhow::Result<()> {
    writeln!(out, "task     {}", printable(&task.id))?;
    writeln!(out, "status   {}", task.status.as_str())?;
    if let Some(message) = &task.status_message {
        writeln!(out, "message  {}", printable(message))?;
    }
    writeln!(out, "created  {}", printable(&task.created_at))?;
    writeln!(out, "updated  {}", printable(&task.last_updated_at))?;
    match task.ttl_ms {
        Some(ttl_ms) => writeln!(out, "ttl      {ttl_ms} ms")?,
        None => writeln!(out, "ttl      unlimited")?,
    }
    for (key, question) in &task.questions {
        writeln!(out, "asks     {}: {}", printable(key), message(question))?;
    }
    if let Some(error) = &task.error {
        writeln!(out, "error    {} (code {})", printable(&error.message), error.code)?;
    }
    if let Some(result) = &task.result {
        writeln!(out, "result   {}", if result.is_error { "the tool failed" } else { "ok" })?;
        content::print(out, result, terminal)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{Answer, Scripted};

    fn asking() -> Value {
        json!({ "resultType": "complete", "taskId": "T1", "status": "input_required", "ttlMs": 5,
            "createdAt": "2026-09-01T08:00:00Z", "lastUpdatedAt": "2026-09-01T08:00:01Z", "inputRequests": {
                "form": { "method": "elicitation/create", "params": { "message": "Who?" } },
                "url": { "method": "elicitation/create", "params": { "mode": "url" } },
                "roots": { "method": "roots/list" },
            } })
    }

    async fn server() -> Scripted {
        Scripted::start(|request| match request.method() {
            "tasks/get" => Answer::Result(asking()),
            _ => Answer::Result(json!({ "resultType": "complete" })),
        })
        .await
    }

    #[tokio::test]
    async fn each_answer_goes_out_as_its_question_wants_it() {
        let server = server().await;
        let client = Client::new(&server.url, None).unwrap();
        for (key, action, json, sent) in [
            (
                "form",
                Action::Accept,
                Some("{\"name\":\"Ada\"}"),
                json!({ "action": "accept", "content": { "name": "Ada" } }),
            ),
            ("form", Action::Accept, None, json!({ "action": "accept", "content": {} })),
            ("form", Action::Decline, None, json!({ "action": "decline" })),
            ("form", Action::Cancel, None, json!({ "action": "cancel" })),
            ("url", Action::Accept, None, json!({ "action": "accept" })),
            ("roots", Action::Accept, Some("{\"roots\":[]}"), json!({ "roots": [] })),
        ] {
            answer(&client, "T1", key, action, json).await.unwrap();
            let update = server.of("tasks/update").pop().unwrap();
            assert_eq!(update.params()["inputResponses"], json!({ key: sent }));
        }
    }

    #[tokio::test]
    async fn an_answer_that_makes_no_sense_is_never_sent() {
        let server = server().await;
        let client = Client::new(&server.url, None).unwrap();
        for (key, action, json, exit, needle) in [
            ("other", Action::Decline, None, Exit::Refused, "it asks: form, roots, url"),
            ("roots", Action::Decline, None, Exit::Usage, "give accept and the whole result"),
            ("form", Action::Decline, Some("{}"), Exit::Usage, "--json goes with accept only"),
            ("form", Action::Accept, Some("5"), Exit::Usage, "--json is no object"),
        ] {
            let error = answer(&client, "T1", key, action, json).await.unwrap_err();
            assert!(error.to_string().contains(needle), "{error}");
            assert_eq!(Exit::of(&error), exit);
        }
        assert!(server.of("tasks/update").is_empty());
    }

    #[test]
    fn a_task_is_printed_line_by_line() {
        let mut out = Vec::new();
        print(&mut out, &serde_json::from_value(asking()).unwrap(), false).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in [
            "task     T1",
            "status   input_required",
            "ttl      5 ms",
            "asks     form: Who?",
            "asks     roots: roots/list",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
        }
    }
}
