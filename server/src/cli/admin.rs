//! `tokkuri admin`: what an operator sees and does, over gRPC.

mod failure;
mod filter;
mod json;
mod metrics;
mod nodes;
mod reach;
mod table;
mod tasks;
mod time;
mod watch;

use std::io::{self, IsTerminal as _, Write};

use clap::{Args, Subcommand, ValueEnum};

use self::failure::Caller;
use self::filter::FilterArgs;
use self::reach::Reach;
use super::Exit;
use crate::cluster::proto::{
    CancelTaskRequest, DrainNodeRequest, GetMetricsRequest, GetTaskRequest, ListNodesRequest, PruneRequest,
    UndrainNodeRequest,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Any node answers for all that share its store. Which one is asked: --grpc ADDR, and what it wants to be shown:
--token (better TOKKURI_GRPC_TOKEN, which no process list shows), or --ca, --cert and --key.

Examples:
  tokkuri admin nodes                              who is there, and what they do
  tokkuri admin tasks --status working,input_required --older-than 10m
  tokkuri admin task ID --payloads                 also what it was called with, asked, was answered and returned
  tokkuri admin watch                              a live view; in a pipe, a line for every change
  tokkuri admin drain node-1 --wait                before the machine is taken away")]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Debug, Subcommand)]
enum AdminCommand {
    /// List the nodes that share the store.
    #[command(after_help = "\
A node is alive as long as its lease holds. A draining one takes no new runs; one that is drained has none left, and can be stopped.
The one that answered is marked with *. What runs there is as of two seconds ago. Nodes whose lease ran out are shown for an hour.")]
    Nodes {
        #[command(flatten)]
        reach: Reach,
    },
    /// List tasks, whoever owns them.
    #[command(after_help = "\
Examples:
  tokkuri admin tasks --status input_required      what waits for an answer
  tokkuri admin tasks --node node-1 --tool export_files
  tokkuri admin tasks --all -o json                every task there is

Payloads are never part of a list; see `tokkuri admin task`.")]
    Tasks {
        #[command(flatten)]
        filter: FilterArgs,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "all")]
        limit: usize,
        /// Every one.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Show one task, whoever owns it.
    Task {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        /// Also what it was called with, asked, was answered and returned. The server shows that only to callers with a token or a certificate.
        #[arg(long)]
        payloads: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Cancel a task, whoever owns it.
    #[command(after_help = "Prints the status that the task has then: one that had ended before stays as it is.")]
    Cancel {
        /// Id of the task.
        // One id in 64 begins with a hyphen.
        #[arg(allow_hyphen_values = true)]
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
    /// Have a node take no new runs.
    #[command(after_help = "\
What runs goes on. At the deadline, runs of tools that may be repeated are handed over to other nodes; the others go on.
When `tokkuri admin nodes` says that the node is drained, or --wait is over, it can be stopped and nothing is lost.")]
    Drain {
        /// Name or id of the node.
        node: String,
        /// How long until what may be repeated is handed over, such as 30s or 5m.
        #[arg(long, value_name = "TIME", value_parser = time::parse, default_value = "60s")]
        deadline: std::time::Duration,
        /// Wait until the node is drained. Ctrl-C ends the wait, not the drain.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Take a drain back.
    Undrain {
        /// Name or id of the node.
        node: String,
        #[command(flatten)]
        reach: Reach,
    },
    /// Watch tasks change, on all nodes.
    #[command(after_help = "\
At a terminal a live view, until Ctrl-C. In a pipe a line for every change; with -o json an object a line.
Changes that come faster than they are read are shown as the latest state.")]
    Watch {
        #[command(flatten)]
        filter: FilterArgs,
        /// Begin with the tasks that are there (a live view does so anyway).
        #[arg(long)]
        current: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// Show what the nodes count: the sum over all, or one node's.
    Metrics {
        /// Name or id of the node.
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Remove the tasks whose time to live is over, now rather than soon.
    Prune {
        #[command(flatten)]
        reach: Reach,
    },
}

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs: one JSON value.
    Json,
}

pub(crate) async fn run(args: AdminArgs) -> anyhow::Result<Exit> {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let mut out = stdout.lock();
    match args.command {
        AdminCommand::Nodes { reach } => {
            let answer = Caller::new(&reach)?.call(async |it| it.list_nodes(ListNodesRequest {}).await).await?;
            match reach.output {
                Output::Table => nodes::table(&answer).print(&mut out, terminal)?,
                Output::Json => json::line(&mut out, &answer.nodes.iter().map(json::node).collect::<Vec<_>>())?,
            }
        }
        AdminCommand::Tasks { filter, limit, all, reach } => {
            let limit = if all { usize::MAX } else { limit };
            let listed = tasks::list(&mut Caller::new(&reach)?, filter.proto(), limit).await?;
            match reach.output {
                Output::Table => {
                    tasks::table(&listed).print(&mut out, terminal)?;
                    if listed.more {
                        eprintln!("there are more: --all shows every one, --limit N so many");
                    }
                }
                Output::Json => json::line(&mut out, &listed.tasks.iter().map(json::task).collect::<Vec<_>>())?,
            }
        }
        AdminCommand::Task { id, payloads, reach } => {
            let request = GetTaskRequest { id, include_payloads: payloads };
            let task = Caller::new(&reach)?.call(async |it| it.get_task(request.clone()).await).await?;
            match reach.output {
                Output::Table => tasks::print(&mut out, &task)?,
                Output::Json => json::line(&mut out, &json::task(&task))?,
            }
        }
        AdminCommand::Cancel { id, reach } => {
            let request = CancelTaskRequest { id };
            let task = Caller::new(&reach)?.call(async |it| it.cancel_task(request.clone()).await).await?;
            match reach.output {
                Output::Table => writeln!(out, "{}", json::status(&task))?,
                Output::Json => json::line(&mut out, &json::task(&task))?,
            }
        }
        AdminCommand::Drain { node, deadline, wait, reach } => {
            let deadline = prost_types::Duration::try_from(deadline).ok();
            let request = DrainNodeRequest { node, deadline };
            let mut caller = Caller::new(&reach)?;
            let mut node = caller.call(async |it| it.drain_node(request.clone()).await).await?.node;
            if let Some(told) = node.as_ref().filter(|_| wait) {
                node = Some(nodes::drained(&mut caller, told).await?);
            }
            nodes::changed(&mut out, node.as_ref(), reach.output)?;
        }
        AdminCommand::Undrain { node, reach } => {
            let request = UndrainNodeRequest { node };
            let answer = Caller::new(&reach)?.call(async |it| it.undrain_node(request.clone()).await).await?;
            nodes::changed(&mut out, answer.node.as_ref(), reach.output)?;
        }
        AdminCommand::Watch { filter, current, reach } => {
            let mut caller = Caller::new(&reach)?;
            return watch::run(&mut caller, &mut out, filter.proto(), current, reach.output, terminal).await;
        }
        AdminCommand::Metrics { node, reach } => {
            let request = GetMetricsRequest { node };
            let answer = Caller::new(&reach)?.call(async |it| it.get_metrics(request.clone()).await).await?;
            match reach.output {
                Output::Table => metrics::table(&answer).print(&mut out, terminal)?,
                Output::Json => json::line(&mut out, &metrics::json(&answer))?,
            }
            for silent in &answer.silent {
                eprintln!("warning: {} is missing, so sums are too small: {}", silent.name, silent.why);
            }
        }
        AdminCommand::Prune { reach } => {
            let answer = Caller::new(&reach)?.call(async |it| it.prune(PruneRequest {}).await).await?;
            match reach.output {
                Output::Table => writeln!(out, "{} removed", answer.removed)?,
                Output::Json => json::line(&mut out, &serde_json::json!({ "removed": answer.removed }))?,
            }
        }
    }
    Ok(Exit::Ok)
}
