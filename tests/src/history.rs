//! What clients saw, and what it has to show: a record of everything that was sent and heard, and a checker over it.
//!
//! The checker knows nothing of the server. It has each request's two moments, before it was sent and after it was answered,
//! so "later" always means: sent after the other one was answered. What was sent and never answered may have happened or not,
//! and both are allowed.

pub mod claims;
#[cfg(test)]
mod forged;
mod tasks;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use tasks::{TaskHistory, Tasks};

/// Microseconds since 1970.
pub type Micros = u64;

/// One thing that happened to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Who.
    pub by: String,
    /// The node that was asked, by position.
    pub node: usize,
    /// Before it was sent.
    pub sent: Micros,
    /// After the answer was read.
    pub heard: Micros,
    /// What was asked and answered.
    pub what: What,
}

/// What was asked and answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A create was answered with a task.
    Created {
        /// Its id.
        task: String,
        /// What is known of its tool.
        life: Life,
        /// When it says it was created, in milliseconds.
        created: i64,
        /// Its time to live.
        ttl_ms: u64,
    },
    /// There was no place for a task: the limit of live ones. It was refused, or ran in the request.
    AtTheLimit,
    /// A task was read.
    Read {
        /// Which.
        task: String,
        /// How it was.
        state: State,
    },
    /// A read was answered: no such task.
    NotFound {
        /// Which.
        task: String,
    },
    /// A follower was told a state.
    Told {
        /// Which.
        task: String,
        /// On which stream.
        stream: u64,
        /// How it is.
        state: State,
    },
    /// A stream is over.
    StreamOver {
        /// Of which task.
        task: String,
        /// Which stream.
        stream: u64,
        /// How it ended.
        how: StreamEnd,
    },
    /// A question was answered.
    Answered {
        /// Whose.
        task: String,
        /// Which.
        key: String,
        /// The name that was given, unlike any other.
        name: String,
        /// Whether it was acknowledged; it may have been taken anyway.
        acknowledged: bool,
    },
    /// A cancel was sent.
    Cancelled {
        /// Which.
        task: String,
        /// Whether it was acknowledged; it may have been carried out anyway.
        acknowledged: bool,
    },
    /// The answer was an error that says to try again.
    Later {
        /// The request.
        what: String,
    },
    /// There was no answer: the connection failed, or patience ended.
    Unheard {
        /// The request.
        what: String,
        /// Why.
        why: String,
    },
    /// The answer was something else.
    Unexpected {
        /// The request.
        what: String,
        /// The answer.
        answer: String,
    },
    /// Something was done to the cluster, from `sent` to `heard`.
    Fault {
        /// What.
        what: String,
        /// To which nodes: all for one of the database.
        nodes: Vec<usize>,
        /// Whether the nodes' runs are lost by it: the process ended, or it could not renew its lease.
        loses: bool,
    },
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamEnd {
    /// It was told of the end, and listened for a while for what must not follow.
    Whole,
    /// The server ended it, or the connection broke.
    Broken,
    /// The client gave up: the task had ended long before.
    Overdue,
}

/// What the one who creates a task knows of it beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The tool.
    pub tool: String,
    /// It never ends by itself.
    pub endless: bool,
    /// It is run again if its node is lost.
    pub restartable: bool,
    /// How many questions it asks, `q1` …, one after another; its result is the names, joined by commas.
    pub questions: usize,
}

/// A state of a task, as the wire shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// `status`
    pub status: String,
    /// `statusMessage`
    pub message: Option<String>,
    /// `lastUpdatedAt`, in milliseconds.
    pub updated: i64,
    /// `inputRequests`: by key, the bytes of the request.
    pub questions: BTreeMap<String, String>,
    /// The bytes of `result` or `error`.
    pub outcome: Option<String>,
    /// The text of a completed task's one content item.
    pub text: Option<String>,
}

impl State {
    /// Whether the task has ended.
    pub fn is_terminal(&self) -> bool {
        crate::harness::is_terminal(&self.status)
    }

    /// Whether the task failed because its node was lost.
    pub fn is_lost(&self) -> bool {
        let of_ours = self.outcome.as_ref().is_some_and(|outcome| outcome.contains("-32603"));
        let why = self.message.as_deref().unwrap_or_default();
        self.status == "failed" && of_ours && why.contains("server")
    }

    /// What never changes once the task has ended.
    pub fn end(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.status, self.message.as_deref(), self.outcome.as_deref())
    }
}

/// What the checker has to know of the servers' settings.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `tasks.max_per_principal`
    pub limit: usize,
    /// How long after a node was lost its tasks may still be live: its lease, one sweep, and what a loaded machine adds.
    pub orphans_end_within: Micros,
}

/// Everything that was recorded.
#[derive(Debug)]
pub struct History {
    /// The settings.
    pub rules: Rules,
    /// In no order.
    pub entries: Vec<Entry>,
}

impl History {
    /// Checks all claims: what breaks them, each with the claim's name.
    pub fn violations(&self) -> Vec<String> {
        let tasks = Tasks::of(self);
        let claims = claims::ALL.iter();
        claims.flat_map(|(name, check)| check(&tasks).into_iter().map(move |why| format!("{name}: {why}"))).collect()
    }

    /// All entries of a task, in the order of what was heard, a line each.
    pub fn story(&self, task: &str) -> String {
        let needle = format!("{task:?}");
        let mut entries: Vec<_> =
            self.entries.iter().filter(|entry| format!("{:?}", entry.what).contains(&needle)).collect();
        entries.sort_by_key(|entry| entry.heard);
        entries.iter().map(|entry| format!("{}\n", serde_json::to_string(entry).unwrap_or_default())).collect()
    }

    /// Writes it into a file, an entry a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, file: &Path) -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(file)?);
        for entry in &self.entries {
            serde_json::to_writer(&mut file, entry)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }

    /// How often each kind of thing happened.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.entries {
            let kind = match &entry.what {
                What::Answered { acknowledged: false, .. } => "answers without acknowledgement".into(),
                What::Cancelled { acknowledged: false, .. } => "cancels without acknowledgement".into(),
                What::Fault { what, .. } => format!("fault: {what}"),
                What::StreamOver { how, .. } => format!("streams over: {how:?}"),
                other => format!("{other:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase(),
            };
            *counts.entry(kind).or_insert(0) += 1;
        }
        counts
    }
}

/// Records, for many clients at once. Clones share the record.
#[derive(Clone, Debug)]
pub struct Recorder {
    entries: Arc<Mutex<Vec<Entry>>>,
    epoch: Micros,
    start: Instant,
}

impl Default for Recorder {
    fn default() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(epoch.as_micros()).unwrap_or(u64::MAX);
        Self { entries: Arc::default(), epoch, start: Instant::now() }
    }
}

impl Recorder {
    /// Now, by one clock for all.
    pub fn now(&self) -> Micros {
        self.epoch + u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records what was heard just now.
    pub fn record(&self, by: &str, node: usize, sent: Micros, what: What) {
        let entry = Entry { by: by.to_owned(), node, sent, heard: self.now(), what };
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// What was recorded until now.
    pub fn history(&self, rules: Rules) -> History {
        History { rules, entries: self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_survives_its_file() {
        let recorder = Recorder::default();
        recorder.record("alice", 1, recorder.now(), What::NotFound { task: "t".into() });
        let history = recorder.history(Rules { limit: 1, orphans_end_within: 0 });
        let file = tempfile::NamedTempFile::new().unwrap();
        history.save(file.path()).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let read: Vec<Entry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, history.entries);
        assert_eq!(history.counts(), BTreeMap::from([("notfound".to_owned(), 1)]));
        assert_eq!(history.story("t").lines().count(), 1);
    }
}
