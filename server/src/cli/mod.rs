//! The command `tokkuri`: what can be typed, and what it exits with.
//!
//! `serve` and the client commands share nothing but this file: each command lives in a file of its own, and what it
//! prints for scripts goes to standard output, everything else to standard error.

mod admin;
mod arguments;
mod call;
mod config;
mod content;
mod demo;
mod exit;
mod follow;
mod form;
mod interrupt;
mod questions;
mod serve;
mod serve_args;
mod show;
mod task;

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

pub use exit::{Exit, Stop};
pub use serve::serve;
pub use serve_args::{ServeArgs, ToolSet};

use crate::client::{Client, ClientError};

const EXIT_CODES: &str = "Exit codes:
  0    it went as it should
  1    the tool or task failed (or was cancelled by someone else)
  2    wrong usage or configuration
  3    the server cannot be reached, or broke off
  4    the server refused: no such tool, task or question, not allowed, or not an MCP server
  5    a question was asked that nobody here can answer
  130  interrupted with Ctrl-C";

/// MCP tools as tasks that survive: the server, and a client to try it with.
#[derive(Debug, Parser)]
#[command(name = "tokkuri", version, after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  tokkuri demo                             see a task, a question and a cancel on your own files
  tokkuri serve --tools demo --root .      serve the demo tools on http://127.0.0.1:8080/mcp
  tokkuri call hash_files --arg path=.     call one of them and watch it
  tokkuri admin watch                      see every task of every node change
  tokkuri config check tokkuri.toml        find out what is wrong with a configuration

{EXIT_CODES}"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve tools over MCP.
    Serve(ServeArgs),
    /// Show what it does, in one terminal, with nothing to configure.
    #[command(after_help = "\
Starts a server on free loopback ports and plays a client against it over real HTTP.
Exits with 0 only if everything went as it should.")]
    Demo,
    /// Call a tool: shows progress, asks the tool's questions, prints the result.
    Call(call::CallArgs),
    /// Look at a task, follow it, answer it, cancel it.
    Task(task::TaskArgs),
    /// See what the nodes of a store do, and act as their operator.
    Admin(admin::AdminArgs),
    /// Work with configuration files.
    Config(config::ConfigArgs),
    /// Print the completion script of a shell.
    #[command(after_help = "\
Example:
  tokkuri completions bash > ~/.local/share/bash-completion/completions/tokkuri")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Which server a client command talks to.
#[derive(Debug, Clone, Args)]
pub(crate) struct Endpoint {
    /// Endpoint of the server.
    #[arg(long, value_name = "URL", default_value = Endpoint::DEFAULT)]
    url: String,
    /// Token to show to the server; better given as the variable TOKKURI_TOKEN, which no process list shows.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl Endpoint {
    const DEFAULT: &str = "http://127.0.0.1:8080/mcp";

    fn client(&self) -> Result<Client, ClientError> {
        let variable = std::env::var("TOKKURI_TOKEN").ok();
        let token = self.token.clone().or(variable).filter(|token| !token.is_empty());
        Client::new(&self.url, token.as_deref())
    }

    /// The flag that makes another command talk to the same server; empty where it is the default.
    fn flag(&self) -> String {
        match self.url == Self::DEFAULT {
            true => String::new(),
            false => format!(" --url {}", self.url),
        }
    }
}

/// Runs the command with the process's arguments.
///
/// Errors become one line on standard error and an exit code, see [`Exit`].
#[must_use]
pub fn main() -> ExitCode {
    // clap prints its own errors and help, and exits with 2 or 0.
    let cli = Cli::parse();
    run_to_exit(run(cli.command))
}

/// Runs a command on a runtime of its own. Its error becomes one line on standard error, and an exit code.
#[must_use]
pub fn run_to_exit(command: impl Future<Output = anyhow::Result<Exit>>) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the threads of the runtime cannot be started: {error}");
            return Exit::Failed.into();
        }
    };
    let ended = runtime.block_on(command);
    // A thread may still wait for a line at the terminal, or run a blocking tool; the process does not wait for it.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit.into(),
        // Whoever read the output has had enough, like `head`.
        Err(error) if is_closed_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            eprintln!("error: {}", show::printable(&format!("{error:#}")));
            Exit::of(&error).into()
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

async fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => {
            let config = args.load()?;
            serve::run(config, &args).await
        }
        Command::Demo => demo::run().await,
        Command::Call(args) => call::run(args).await,
        Command::Task(args) => task::run(args).await,
        Command::Admin(args) => admin::run(args).await,
        Command::Config(args) => config::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "tokkuri", &mut std::io::stdout().lock());
            Ok(Exit::Ok)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_commands_of_the_contract_are_understood() {
        for line in [
            "serve --config f --http 127.0.0.1:0 --grpc 127.0.0.1:0 --admin off --store memory --node n --tools demo --root . --stdio",
            "demo",
            "call t --url http://h/mcp --arg a=1 --arg b=2 --token x --detach --yes",
            "call t --json {}",
            "task get T",
            "task follow T",
            "task get --72ZQ5BzVbWM-hX6D1tJoy_",
            "task follow -j --url http://h/mcp",
            "task cancel --url http://h/mcp --json-ZQ5BzVbWM-hX6D1tJ",
            "task answer -72ZQ5BzVbWM-hX6D1tJoy_ k accept --json {}",
            "task cancel T",
            "task answer T k accept --json {}",
            "task answer T k decline",
            "admin nodes",
            "admin tasks --status working,failed --tool t --owner o --node n --older-than 10m --limit 5 -o json",
            "admin task -72ZQ5BzVbWM-hX6D1tJoy_ --payloads --grpc 127.0.0.1:1 --token t",
            "admin cancel T --ca f --cert f --key f",
            "admin drain n --deadline 30s",
            "admin undrain n",
            "admin watch --current -o table",
            "admin metrics --node n",
            "admin prune",
            "config check f",
            "completions bash",
        ] {
            let words = std::iter::once("tokkuri").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_as_usage() {
        for line in [
            "call t --json {} --arg a=1",
            "call",
            "serve --http 8080",
            "serve --store tasks.db",
            "serve --tools all",
            "task answer T k maybe",
            "admin",
            "admin tasks --status done",
            "admin tasks --older-than 10",
            "admin nodes --cert f",
            "admin nodes -o yaml",
        ] {
            let words = std::iter::once("tokkuri").chain(line.split(' '));
            let error = Cli::try_parse_from(words).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
