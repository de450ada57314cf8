//! Keep the server you have: an rmcp `ServerHandler` with a prompt and two tools, one of which becomes a task, and a task tool
//! of ours merged into its list.
//!
//! Everything that is the handler's passes through to it, prompts, resources and tools alike; calls of our tools never reach
//! it. Both eras are served at the same endpoint.
//!
//! ```sh
//! cargo run -p tokkuri-server --example wrap
//! cargo run -- call hello                     # in another terminal: the handler's own tool, answered in the request
//! cargo run -- call nap                       # the handler's own as well, as a task: Ctrl-C cancels it
//! cargo run -- call count --arg to=5          # ours, as a task
//! ```

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptMessage, Role,
    ServerCapabilities, ServerConfig, Tool as PlainTool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::Tokkuri;
use tokkuri_server::tool::{RunContext, TaskMode, Tool};

/// A handler as one has it: it knows nothing of tasks.
struct Existing;

impl ServerHandler for Existing {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_prompts().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(plain_tools()))
    }

    /// What becomes a task needs a schema that is known before it is called.
    fn get_tool(&self, name: &str) -> Option<PlainTool> {
        plain_tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "hello" => Ok(CallToolResult::success(vec![ContentBlock::text("hello")]).into()),
            "nap" => {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(3)) => {}
                    // It fires when the task is cancelled, as it does when the client of a plain call is gone.
                    () = context.ct.cancelled() => {}
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("rested")]).into())
            }
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("greet", Some("A greeting"), None)]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match request.name.as_str() {
            "greet" => {
                let text = ContentBlock::text("Say hello to everyone.");
                Ok(GetPromptResult::new(vec![PromptMessage::new(Role::User, text)]).into())
            }
            other => Err(ErrorData::invalid_params(format!("Unknown prompt: {other}"), None)),
        }
    }
}

fn plain_tools() -> Vec<PlainTool> {
    let schema = serde_json::json!({ "type": "object" });
    let schema = schema.as_object().cloned().unwrap_or_default();
    vec![PlainTool::new("hello", "Says hello", schema.clone()), PlainTool::new("nap", "Takes a nap", schema)]
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// How far to count.
    to: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = Tool::new("count", |args: Count, cx: RunContext| async move {
        for n in 1..=args.to {
            cx.progress(n, args.to, "counting");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(format!("counted to {}", args.to))
    });
    let count = count.description("Counts, slowly").task(TaskMode::Optional);

    let server = Tokkuri::wrap(Existing).name("existing").task("nap", TaskMode::Optional).tool(count).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    server.serve(listener, std::future::pending()).await?;
    Ok(())
}
