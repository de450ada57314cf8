//! `export_files`: the files below a directory as one archive.

mod archive;

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokkuri_core::wire::Json;

use super::half_written::HalfWritten;
use super::listing::{Wanted, list};
use super::root::{Kind, Root};
use super::thread::on_a_thread;
use super::to_path::{BelowRoot, PathError};
use super::{Unreadable, files, size, usual_skip};
use crate::tool::{Annotations, AskError, Content, Elicited, RunContext, TaskMode, Tool, ToolError, ToolResult};

/// How many files an archive may have.
const MAX_FILES: usize = 1_000_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The directory whose files are exported, relative to the root.
    path: String,
    /// The archive to be written (tar.gz), relative to the root.
    to: String,
    /// Names of files and directories to pass over, wherever they are.
    #[serde(default = "usual_skip")]
    skip: Vec<String>,
    /// How many files to export at most. Without it, more files than a million are refused.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    max_files: Option<usize>,
    /// How many bytes the exported files may have together; files that do not fit are left out.
    #[serde(default)]
    max_bytes: Option<u64>,
}

/// The question whether a file may be replaced.
#[derive(Debug, Deserialize, JsonSchema)]
struct Overwrite {
    /// Whether to replace the file that is there.
    overwrite: bool,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
struct Report {
    /// The archive, relative to the root.
    to: String,
    /// How many files are in it.
    count: u64,
    /// How many bytes they have together.
    total: u64,
    /// How many bytes the archive has.
    bytes: u64,
    /// Whether a file was replaced.
    overwritten: bool,
    /// What could not be read and is not in the archive, or not whole.
    unreadable: Unreadable,
    /// Symbolic links that were passed over.
    symlinks: u64,
    /// Whether there are files that were left out because of `max_files` or `max_bytes`.
    truncated: bool,
}

/// The tool.
pub(crate) fn tool(root: Arc<Root>) -> Tool {
    Tool::new("export_files", move |arguments: Arguments, cx: RunContext| export(Arc::clone(&root), arguments, cx))
        .title("Export files")
        .description(
            "Writes a tar.gz of the regular files below a directory of the root. Asks before it replaces a file; an archive \
             that is not finished is not left behind.",
        )
        .annotations(Annotations { destructive: Some(true), open_world: Some(false), ..Annotations::default() })
        .output::<Report>()
        .task(TaskMode::Optional)
}

async fn export(root: Arc<Root>, arguments: Arguments, cx: RunContext) -> Result<ToolResult, ToolError> {
    let job = Job { path: BelowRoot::parse(&arguments.path)?, to: BelowRoot::parse(&arguments.to)?, root };
    let job = Arc::new(job);
    let looking = Arc::clone(&job);
    let there = on_a_thread(move |_| looking.look()).await?;
    if let Some(bytes) = there
        && !may_overwrite(&cx, &job.to, bytes).await?
    {
        return Ok(ToolResult::error(format!("Nothing was exported: {} is there and was not to be replaced.", job.to)));
    }
    let report = on_a_thread(move |stopped| job.write(&arguments, there.is_some(), &cx, stopped)).await?;
    let structured = Json::of(&report)?;
    Ok(ToolResult {
        content: vec![Content::Text(report.text())],
        structured: Some(structured),
        ..ToolResult::default()
    })
}

async fn may_overwrite(cx: &RunContext, to: &BelowRoot, bytes: u64) -> Result<bool, ToolError> {
    let question = format!("{to} is there already ({}). Replace it?", size(bytes));
    match cx.elicit::<Overwrite>("overwrite", &question).await {
        Ok(Elicited::Accepted(Overwrite { overwrite })) => Ok(overwrite),
        Ok(Elicited::Declined | Elicited::Dismissed) => Ok(false),
        Err(AskError::Undeclared(_) | AskError::NotHere(_)) => Err(ToolError::failed(format!(
            "{to} is there already, and this client cannot be asked whether to replace it: export to another name."
        ))),
        Err(error) => Err(error.into()),
    }
}

/// One export.
#[derive(Debug)]
struct Job {
    root: Arc<Root>,
    path: BelowRoot,
    to: BelowRoot,
}

impl Job {
    /// Whether the export can be made, and the size of the file that it would replace.
    fn look(&self) -> Result<Option<u64>, ToolError> {
        self.root.directory(&self.path)?;
        let (directory, name) = self.to.split()?;
        match self.root.directory(&directory)?.kind(name)? {
            None => Ok(None),
            Some(Kind::File { bytes }) => Ok(Some(bytes)),
            Some(Kind::Directory) => Err(PathError::NotAFile(self.to.to_string()).into()),
            Some(Kind::Link) => Err(PathError::Link(self.to.to_string()).into()),
            Some(Kind::Other) => Err(ToolError::failed(format!("{:?} is no regular file", self.to.to_string()))),
        }
    }

    fn write(
        &self,
        arguments: &Arguments,
        replace: bool,
        cx: &RunContext,
        stopped: &CancellationToken,
    ) -> Result<Report, ToolError> {
        let base = self.root.directory(&self.path)?;
        let itself = self.to.within(&self.path);
        let most = arguments.max_files.unwrap_or(MAX_FILES).min(MAX_FILES);
        let wanted = Wanted {
            skip: &arguments.skip,
            except: itself.as_deref(),
            files: most,
            bytes: arguments.max_bytes.unwrap_or(u64::MAX),
            text: usize::MAX,
        };
        let listing = list(&base, &wanted, stopped)?;
        if listing.truncated && arguments.max_files.is_none() && arguments.max_bytes.is_none() {
            let text =
                format!("there are more than {MAX_FILES} files below {:?}: export a part", self.path.to_string());
            return Err(ToolError::failed(text));
        }
        let (directory, name) = self.to.split()?;
        let cannot = |error: io::Error| ToolError::failed(format!("{} cannot be written: {error}", self.to));
        let (half, file) = HalfWritten::create(self.root.directory(&directory)?, name).map_err(cannot)?;
        let mut unreadable = listing.unreadable;
        let written = archive::write(file, &base, &listing.files, &mut unreadable, cx, stopped).map_err(cannot)?;
        half.keep_as(name, replace).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ToolError::failed(format!(
                "{} was not there when the export began, and is now: it was left alone; export again.",
                self.to
            )),
            _ => cannot(error),
        })?;
        Ok(Report {
            to: self.to.to_string(),
            count: written.count,
            total: written.total,
            bytes: written.bytes,
            overwritten: replace,
            unreadable,
            symlinks: listing.symlinks,
            truncated: listing.truncated,
        })
    }
}

impl Report {
    fn text(&self) -> String {
        let (count, total, bytes) = (files(self.count), size(self.total), size(self.bytes));
        let mut text = format!("{}: {count}, {total} in {bytes}", self.to);
        if self.symlinks > 0 {
            text.push_str(&format!("; symbolic links passed over: {}", self.symlinks));
        }
        if self.unreadable.count > 0 {
            text.push_str(&format!("; unreadable: {}", self.unreadable.count));
        }
        if self.truncated {
            text.push_str("; there are more files than this call was to export (max_files, max_bytes)");
        }
        text
    }
}

#[cfg(test)]
mod tests;
