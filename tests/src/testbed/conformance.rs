//! Section D of the conformance fixtures: what the suite's `tasks-*` scenarios call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokkuri_server::tool::{Elicited, PrepareContext, RunContext, TaskMode, Tool, ToolError};

use super::Nothing;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct SlowCompute {
    seconds: f64,
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct ConfirmDelete {
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Part {
    name: String,
    confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Without arguments for the client; `prepare` fills in the name.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Named {
    #[serde(default)]
    #[schemars(skip)]
    name: Option<String>,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("greet", |args: Greet, _| async move { Ok(format!("Hello, {}!", args.name)) })
            .description("Greets at once"),
        Tool::new("slow_compute", |args: SlowCompute, cx: RunContext| async move {
            let ms = Duration::try_from_secs_f64(args.seconds).unwrap_or_default();
            for step in 1..=10 {
                tokio::time::sleep(ms / 10).await;
                cx.progress(step, 10, &args.label);
            }
            Ok(format!("{}: computed for {} s", args.label, args.seconds))
        })
        .description("Computes for a while")
        .task(TaskMode::Optional),
        Tool::new("failing_job", |_: Nothing, _| async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Err::<String, _>(ToolError::failed("the job failed"))
        })
        .description("Ends with isError")
        .task(TaskMode::Required),
        Tool::new("protocol_error_job", |_: Nothing, _| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Err::<String, _>(ToolError::rpc(-32603, "the job broke", None))
        })
        .description("Ends with a JSON-RPC error")
        .task(TaskMode::Required),
        Tool::new("confirm_delete", |args: ConfirmDelete, cx: RunContext| async move {
            let message = format!("Delete {}?", args.filename);
            Ok(match cx.elicit::<Confirm>("confirm", &message).await? {
                Elicited::Accepted(Confirm { confirm: true }) => format!("deleted {}", args.filename),
                Elicited::Accepted(_) | Elicited::Declined | Elicited::Dismissed => format!("kept {}", args.filename),
            })
        })
        .description("Asks before it deletes")
        .task(TaskMode::Required),
        Tool::new("multi_input", |_: Nothing, cx: RunContext| async move {
            let (first, second) = tokio::join!(
                cx.elicit::<Part>("first", "The first part?"),
                cx.elicit::<Part>("second", "The second part?"),
            );
            let name = |part| match part {
                Elicited::Accepted(Part { name, confirm: true }) => name,
                Elicited::Accepted(_) | Elicited::Declined | Elicited::Dismissed => "nothing".to_owned(),
            };
            Ok(format!("{} and {}", name(first?), name(second?)))
        })
        .description("Asks two things at once")
        .task(TaskMode::Required),
        Tool::new("test_tool_with_task", |args: Named, _| async move {
            Ok(format!("Task done for {}", args.name.unwrap_or_default()))
        })
        .prepare(|_: Named, cx: PrepareContext| async move {
            let name = match cx.elicit::<Name>("user_name", "What is your name?").await? {
                Elicited::Accepted(Name { name }) => Some(name),
                Elicited::Declined | Elicited::Dismissed => None,
            };
            cx.set_arguments(&Named { name })?;
            Ok(())
        })
        .description("Asks on the request, then becomes a task")
        .task(TaskMode::Required),
    ]
}
