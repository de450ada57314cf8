//! Which tasks are meant.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::time;
use crate::cluster::proto::{TaskFilter, TaskStatus};

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which tasks")]
pub(super) struct FilterArgs {
    /// Only these statuses, separated by commas.
    #[arg(long, value_enum, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<Status>,
    /// Only this tool.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only this owner: the principal, as the list shows it.
    #[arg(long, value_name = "PRINCIPAL")]
    owner: Option<String>,
    /// Only what this OAuth client created.
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Only what this node runs or ran last: its name or id.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Only what was created at least so long ago, such as 10m or 2h.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    older_than: Option<Duration>,
    /// Only what was created since then.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    younger_than: Option<Duration>,
}

/// A status, in the words of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Status {
    #[value(name = "working")]
    Working,
    #[value(name = "input_required")]
    InputRequired,
    #[value(name = "completed")]
    Completed,
    #[value(name = "failed")]
    Failed,
    #[value(name = "cancelled")]
    Cancelled,
}

impl FilterArgs {
    pub(super) fn proto(&self) -> TaskFilter {
        let status = |status: &Status| match status {
            Status::Working => TaskStatus::Working,
            Status::InputRequired => TaskStatus::InputRequired,
            Status::Completed => TaskStatus::Completed,
            Status::Failed => TaskStatus::Failed,
            Status::Cancelled => TaskStatus::Cancelled,
        };
        let duration = |duration: Option<Duration>| duration.and_then(|it| prost_types::Duration::try_from(it).ok());
        TaskFilter {
            statuses: self.status.iter().map(|it| status(it).into()).collect(),
            tool: self.tool.clone(),
            principal: self.owner.clone(),
            client: self.client.clone(),
            resource: None,
            node: self.node.clone(),
            older_than: duration(self.older_than),
            younger_than: duration(self.younger_than),
        }
    }
}
