//! A tool that asks: a form whose answer arrives as a type, and a page that the user is to open.
//!
//! As a task the tool waits (`input_required`) until the client answers with `tasks/update`. In the request, for a client
//! without the extension, the very same code works too: the reply carries the question, the client sends the call again with
//! the answer, and the tool runs again from its start up to the next question. So what stands before a question should be
//! cheap and do nothing that may not be done twice.
//!
//! ```sh
//! cargo run -p tokkuri-server --example questions
//! cargo run -- call order                       # in another terminal: asks you
//! cargo run -- call order --yes < /dev/null     # takes defaults, declines what has none
//! ```

use schemars::JsonSchema;
use serde::Deserialize;
use tokkuri_server::Tokkuri;
use tokkuri_server::tool::{Consent, Elicited, RunContext, TaskMode, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// A form is a flat struct: strings, numbers, booleans and choices. What is an `Option` need not be filled in.
#[derive(Deserialize, JsonSchema)]
struct Pizza {
    /// What goes on it.
    topping: Topping,
    /// How many of them.
    #[schemars(range(min = 1, max = 20))]
    count: u8,
    /// Anything that the kitchen should know.
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Topping {
    Cheese,
    Mushrooms,
    Pineapple,
}

async fn order(_: NoArguments, cx: RunContext) -> Result<String, ToolError> {
    // Every question has a key. Asking a key again gives the first answer, so a run that starts over asks nobody twice.
    let pizza = match cx.elicit::<Pizza>("pizza", "What may it be?").await? {
        Elicited::Accepted(pizza) => pizza,
        Elicited::Declined => return Ok("Another time, then.".to_owned()),
        Elicited::Dismissed => return Ok("The menu was closed.".to_owned()),
    };
    // `?` is enough for everything that can go wrong: a cancel, or a client that did not declare url elicitation.
    let page = "https://pay.example.com/orders/1";
    match cx.elicit_url("pay", "Pay on the page of the shop.", page).await? {
        // The user agreed to open it. Whether they paid, the shop tells, not the client.
        Consent::Accepted => {}
        Consent::Declined | Consent::Dismissed => return Err(ToolError::failed("Nothing was ordered: not paid.")),
    }
    let note = pizza.note.map(|note| format!(" ({note})")).unwrap_or_default();
    Ok(format!("{} x {:?}{note} on their way.", pizza.count, pizza.topping))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let order = Tool::new("order", order).description("Orders pizza").task(TaskMode::Optional);
    let server = Tokkuri::new().tool(order).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    server.serve(listener, std::future::pending()).await?;
    Ok(())
}
