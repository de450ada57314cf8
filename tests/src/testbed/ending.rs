//! Tools that end in every way there is.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokkuri_server::tool::{Content, Json, RunContext, TaskMode, Tool, ToolError, ToolResult};

use super::{Bed, Nothing};

/// What must reach no client.
const SECRET: &str = "SECRET-BOOM";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Start,
    Await,
    Blocking,
    Waiting,
    Drop,
}

#[derive(Deserialize, JsonSchema)]
struct Boom {
    stage: Stage,
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    code: i64,
    message: String,
    data: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    #[expect(dead_code, reason = "nobody gets to read it")]
    name: String,
}

/// Panics when it is dropped, unless that would be a panic within a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{SECRET}");
        }
    }
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    vec![
        boom(bed),
        Tool::new("fail", |args: Fail, _| async move {
            let data = args.data.as_ref().map(Json::from);
            Err::<ToolResult, _>(ToolError::rpc(args.code, args.message, data))
        })
        .description("Ends with that JSON-RPC error")
        .task(TaskMode::Optional),
        Tool::new("tool_error", |_: Nothing, _| async move {
            let result = ToolResult::structured(&serde_json::json!({ "errors": 3 }))?;
            Ok(result.into_error())
        })
        .description("Ends with isError")
        .task(TaskMode::Optional),
        Tool::new("big", |args: Big, _| async move { Ok("x".repeat(args.bytes)) })
            .description("Answers that many bytes of text")
            .task(TaskMode::Optional),
        Tool::new("nul", |_: Nothing, _| async move {
            let odd = r#"{"surrogate":"\ud800","huge":1e300,"digits":123456789012345678901234567890}"#;
            Ok(ToolResult {
                content: vec![Content::Text("before\0after".into())],
                structured: Some(Json::parse(odd)?),
                ..ToolResult::default()
            })
        })
        .description("Answers what is hard to keep")
        .task(TaskMode::Optional),
        Tool::new("bad_output", |_: Nothing, _| async move {
            Ok(ToolResult::structured(&serde_json::json!({ "count": "many" }))?)
        })
        .output_schema(object(serde_json::json!({
            "type": "object", "required": ["count"], "properties": { "count": { "type": "integer" } },
        })))
        .description("Breaks its own output schema")
        .task(TaskMode::Optional),
    ]
}

fn boom(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("boom", move |args: Boom, cx: RunContext| {
        let alive = bed.alive();
        if matches!(args.stage, Stage::Start) {
            panic!("{SECRET}");
        }
        async move {
            let _alive = alive;
            match args.stage {
                Stage::Start => {}
                Stage::Await => {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    panic!("{SECRET}");
                }
                Stage::Blocking => {
                    let thread = tokio::task::spawn_blocking(|| panic!("{SECRET}"));
                    if let Err(error) = thread.await
                        && let Ok(panic) = error.try_into_panic()
                    {
                        std::panic::resume_unwind(panic);
                    }
                }
                Stage::Waiting => {
                    let _bomb = Bomb;
                    // The bomb goes off when the wait is over, however it ends.
                    let _ = cx.elicit::<Person>("boom", "Ready?").await;
                }
                Stage::Drop => {
                    let _bomb = Bomb;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            }
            Ok("it did not go off")
        }
    })
    .description("Panics at that stage")
    .task(TaskMode::Optional)
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}
