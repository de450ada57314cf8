//! The demo tools: they work on real files below one directory and nowhere else.
//!
//! They are tools as anyone would write them: `hash_files` shows progress and structured output, `export_files` a question
//! and what a cancelled tool has to clean up, `ask_name` the smallest form. What keeps them inside is `demo/root.rs`: every path is
//! opened from a directory that was opened at the start, one name at a time, and no symbolic link is followed.

mod ask_name;
mod export_files;
mod half_written;
mod hash_files;
mod listing;
mod read_file;
mod root;
mod thread;
mod to_path;

#[cfg(test)]
mod testing;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use self::root::Root;
use crate::tool::Tool;

/// The ending of a file that an export is still writing.
pub(crate) use self::half_written::ENDING as HALF_WRITTEN;

/// The demo tools over `root`.
///
/// # Errors
/// If `root` is no directory that can be read.
pub fn tools(root: &Path) -> std::io::Result<Vec<Tool>> {
    let root = Arc::new(Root::open(root).map_err(|error| {
        std::io::Error::new(error.kind(), format!("the root {} cannot be opened: {error}", root.display()))
    })?);
    Ok(vec![hash_files::tool(Arc::clone(&root)), export_files::tool(root), ask_name::tool()])
}

/// Names that are passed over unless the call says otherwise: what they hold is made, not written.
fn usual_skip() -> Vec<String> {
    [".git", "target", "node_modules"].map(String::from).to_vec()
}

/// Files and directories that could not be read.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Unreadable {
    /// How many.
    count: u64,
    /// The first of them.
    first: Vec<Reason>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Reason {
    /// Relative to the directory that was asked for.
    path: String,
    /// What is wrong with it.
    reason: String,
}

impl Unreadable {
    /// How many are told one by one.
    const TOLD: usize = 100;

    fn add(&mut self, path: &Path, reason: impl ToString) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push(Reason { path: path.to_string_lossy().into_owned(), reason: reason.to_string() });
        }
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// `1 file`, `2 files`.
pub(crate) fn files(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        _ => format!("{count} files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_is_none_is_said_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let error = tools(&dir.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("the root") && error.contains("none cannot be opened"), "{error}");
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(tools(&dir.path().join("file")).is_err());
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (999_999, "1.0 MB"), (3 << 30, "3.2 GB")] {
            assert_eq!(size(bytes), text);
        }
    }
}
