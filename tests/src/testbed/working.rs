//! Tools that take time.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::tool::{BlockingContext, RunContext, TaskMode, Tool};

use super::Bed;

#[derive(Deserialize, JsonSchema)]
struct Slow {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Block {
    ms: u64,
    #[serde(default)]
    poll: bool,
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    vec![
        slow("slow", bed).task(TaskMode::Optional),
        slow("slow_required", bed).task(TaskMode::Required),
        block(bed).task(TaskMode::Optional),
        stubborn(bed).task(TaskMode::Optional),
        mirrored().task(TaskMode::Optional),
        Tool::new("scoped", |_: super::Nothing, _| async move { Ok("ok") })
            .description("Needs the scope files:write")
            .scopes(["files:write"])
            .task(TaskMode::Optional),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    #[serde(default)]
    place: Place,
}

#[derive(Default, Deserialize, JsonSchema, serde::Serialize)]
struct Place {
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Shelf"))]
    shelf: i64,
}

fn mirrored() -> Tool {
    Tool::new("mirrored", |args: Mirrored, _| async move { Ok(format!("{} {}", args.region, args.place.shelf)) })
        .description("Has arguments that clients repeat in headers")
}

fn slow(name: &'static str, bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new(name, move |args: Slow, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            for step in 1..=10 {
                tokio::time::sleep(Duration::from_millis(args.ms / 10)).await;
                cx.progress(step, 10, "");
            }
            Ok("done")
        }
    })
    .description("Sleeps, and can be cancelled at an await")
}

fn block(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::blocking("block", move |args: Block, cx: BlockingContext| {
        let _alive = bed.alive();
        let until = Instant::now() + Duration::from_millis(args.ms);
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if args.poll && cx.is_cancelled() {
                return Ok("cancelled");
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok("done")
    })
    .description("Blocks a thread, and looks at is_cancelled only if told to")
}

fn stubborn(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("stubborn", move |args: Slow, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            cx.cancelled().await;
            tokio::time::sleep(Duration::from_millis(args.ms)).await;
            Ok("cleaned up")
        }
    })
    .description("Waits for its cancel, then uses its grace")
    // The grace is the tool's, the argument the call's: more than the longest that any test asks for.
    .cancel_grace(Duration::from_secs(10))
}
