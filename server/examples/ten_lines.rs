//! The smallest server: one tool of ten lines, which becomes a task for clients that know tasks and answers in the request for
//! those that do not.
//!
//! ```sh
//! cargo run -p tokkuri-server --example ten_lines
//! cargo run -- call sleep --arg seconds=3                  # in another terminal: a bar, then `good morning`
//! cargo run -- call sleep --arg seconds=30                 # Ctrl-C cancels the task
//! id=$(cargo run -- call sleep --arg seconds=3 --detach)   # or let it run, and look later
//! cargo run -- task get "$id"
//! ```

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::Tokkuri;
use tokkuri_server::tool::{RunContext, TaskMode, Tool};

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    /// How long to sleep.
    seconds: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sleep = Tool::new("sleep", |args: Sleep, cx: RunContext| async move {
        for second in 0..args.seconds {
            cx.progress(second, args.seconds, "sleeping");
            // A cancelled task stops here: nothing after this line runs.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok("good morning")
    })
    .description("Sleeps, then says good morning")
    .task(TaskMode::Optional);

    let server = Tokkuri::new().tool(sleep).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    server.serve(listener, std::future::pending()).await?;
    Ok(())
}
