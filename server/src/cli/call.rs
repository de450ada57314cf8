//! `tokkuri call`: one tool call from first question to result.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use clap::Args;

use super::{
    Endpoint, Exit, arguments, content,
    follow::{Follow, OnInterrupt, finish},
    interrupt::Interrupts,
    questions::Answerer,
    show::Show,
};
use crate::client::{Call, Client, Reply};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tokkuri call hash_files --arg path=.
  tokkuri call export_files --arg path=src --arg to=src.tar.gz
  tokkuri call ask_name --yes < /dev/null
  id=$(tokkuri call hash_files --arg path=. --detach); tokkuri task follow \"$id\"

The result goes to standard output, everything else to standard error.
key=value is converted as the tool's schema says; key:=JSON is taken as it is.
Ctrl-C cancels the task and waits for its end; a second Ctrl-C leaves at once.
Exits with 1 if the tool failed, 3 if no server answers, 4 if the server refuses, 5 if a question cannot be answered
here, 130 after Ctrl-C.")]
pub(crate) struct CallArgs {
    /// Name of the tool.
    tool: String,
    #[command(flatten)]
    endpoint: Endpoint,
    /// An argument, key=value or key:=JSON; may be given several times.
    #[arg(long = "arg", value_name = "KEY=VALUE", conflicts_with = "json")]
    args: Vec<String>,
    /// All arguments, as one JSON object.
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// If the call becomes a task, print its id and leave it alone.
    #[arg(long)]
    detach: bool,
    /// Answer questions with their defaults, and decline those without.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(args: CallArgs) -> anyhow::Result<Exit> {
    let client = args.endpoint.client()?;
    let stdout = io::stdout();
    let surroundings = Surroundings {
        answerer: Answerer::of(args.yes),
        interrupts: Interrupts::listen(),
        terminal: stdout.is_terminal(),
    };
    perform(&args, &client, surroundings, &mut stdout.lock()).await
}

/// What the call runs in, so that a test can be it.
#[derive(Debug)]
struct Surroundings {
    answerer: Answerer,
    interrupts: Interrupts,
    /// Whether `out` is a terminal.
    terminal: bool,
}

async fn perform(
    args: &CallArgs,
    client: &Client,
    mut around: Surroundings,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    // JSON that is none is told before the server is asked for anything.
    let given = args.json.as_deref().map(arguments::object).transpose()?;
    let tool = client.tool(&args.tool).await?;
    let arguments = match given {
        Some(object) => object,
        None => arguments::convert(&tool, &args.args)?,
    };
    let mut call = Call::new(tool, arguments);
    let mut show = Show::new(&args.tool);
    loop {
        let reply = {
            let mut progress = |step| show.progress(&step);
            tokio::select! {
                reply = client.call(&call, &mut progress) => reply?,
                // Dropping the request is how the server hears of it.
                () = around.interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        match reply {
            Reply::Complete(result) => {
                show.clear();
                content::print(out, &result, around.terminal)?;
                return Ok(if result.is_error { Exit::Failed } else { Exit::Ok });
            }
            Reply::Task(task) if args.detach => {
                show.clear();
                writeln!(out, "{}", task.id)?;
                return Ok(Exit::Ok);
            }
            Reply::Task(task) => {
                let follow = Follow {
                    client,
                    show: &mut show,
                    interrupts: &mut around.interrupts,
                    answerer: around.answerer,
                    on_interrupt: OnInterrupt::Cancel,
                    must_answer: true,
                    stream: None,
                    url_flag: args.endpoint.flag(),
                };
                let ended = follow.run(*task).await?;
                return finish(out, ended, around.terminal);
            }
            Reply::InputRequired { questions, state } => {
                let answers = async {
                    if questions.is_empty() {
                        // "Call again": the server sheds load, so not at once.
                        tokio::time::sleep(Duration::from_millis(250)).await;
                    }
                    around.answerer.answer(&questions, &show, "").await
                };
                let answers = tokio::select! {
                    answers = answers => answers?,
                    () = around.interrupts.next() => return Ok(Exit::Interrupted),
                };
                call = call.retry(answers, state);
            }
        }
    }
}

#[cfg(test)]
mod tests;
