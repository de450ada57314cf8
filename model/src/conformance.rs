//! What a server recorded, held against core: would it have done the same?

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;
use tokkuri_core::id::TaskId;
use tokkuri_core::trace::{Conformance, Record};
use tokkuri_core::wire::Json;

/// Nothing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conforming {
    /// How many records there were.
    pub records: usize,
    /// Of how many tasks.
    pub tasks: usize,
}

/// Where the first difference is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverging {
    /// The line, from 1.
    pub line: usize,
    /// The task.
    pub task: TaskId,
    /// How core differs.
    pub why: String,
    /// The record.
    pub record: String,
}

impl fmt::Display for Diverging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, task {}: {}\n  {}", self.line, self.task, self.why, self.record)
    }
}

/// Replays a file of [`Record`]s, one a line of JSON.
///
/// # Errors
/// The file cannot be read, or a line is no record.
pub fn replay(file: &Path) -> anyhow::Result<Result<Conforming, Diverging>> {
    let lines = BufReader::new(File::open(file).with_context(|| format!("opening {}", file.display()))?).lines();
    let mut tasks: HashMap<TaskId, Conformance<Json>> = HashMap::new();
    let mut records = 0;
    for (at, line) in lines.enumerate() {
        let line = line.with_context(|| format!("reading {}", file.display()))?;
        if line.trim().is_empty() {
            continue;
        }
        let place = || format!("{}, line {}: not a record", file.display(), at + 1);
        let record: Record<Json> = serde_json::from_str(&line).with_context(place)?;
        records += 1;
        let task = record.task;
        if let Err(divergence) = tasks.entry(task).or_default().follow(record) {
            return Ok(Err(Diverging { line: at + 1, task, why: divergence.0, record: line }));
        }
    }
    Ok(Ok(Conforming { records, tasks: tasks.len() }))
}
