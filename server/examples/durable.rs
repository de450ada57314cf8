//! A server of your own that is what `tokkuri serve` is, with your tools: its flags, its configuration file and environment, its
//! store (a SQLite file unless you say otherwise), its way of stopping.
//!
//! ```sh
//! cargo run -p tokkuri-server --example durable                   # `--help` shows the flags
//! cargo run -- call bake --arg loaves=3                           # in another terminal: it asks before it begins
//! id=$(cargo run -- call bake --arg loaves=300 --detach)          # or let it run, and
//! cargo run -- task answer "$id" sure accept --json '{"begin": true}'
//! # Kill the server now, even with -9, and start it again:
//! cargo run -- task follow "$id"                                  # it runs again, and does not ask again
//! ```

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::Tokkuri;
use tokkuri_server::cli::{ServeArgs, run_to_exit, serve};
use tokkuri_server::tool::{Elicited, RunContext, TaskMode, Tool, ToolError};

/// Serves a bakery.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Deserialize, JsonSchema)]
struct Bake {
    /// How many.
    loaves: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    /// Whether to begin.
    begin: bool,
}

fn main() -> ExitCode {
    let args = Cli::parse().serve;
    let bake = Tool::new("bake", bake)
        .description("Bakes loaves, a second each")
        .task(TaskMode::Optional)
        // Should the server die, the next one runs the tool again. Without this, the task has failed and says why.
        .restartable();
    run_to_exit(async move { serve(Tokkuri::new().tool(bake), &args.load()?, &args).await })
}

async fn bake(args: Bake, cx: RunContext) -> Result<String, ToolError> {
    // Asked once: a run that starts again gets the answer that was given.
    let sure = cx.elicit::<Sure>("sure", &format!("Bake {} loaves?", args.loaves)).await?;
    let Elicited::Accepted(Sure { begin: true }) = sure else { return Ok("Nothing was baked.".to_owned()) };
    for loaf in 0..args.loaves {
        cx.progress(loaf, args.loaves, "baking");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(format!("{} loaves", args.loaves))
}
