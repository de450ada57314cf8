//! The record, by task.

use std::collections::BTreeMap;

use super::{Entry, History, Life, Micros, Rules, State, StreamEnd, What};

/// A history, sorted by task.
#[derive(Debug)]
pub struct Tasks<'a> {
    /// The settings.
    pub rules: Rules,
    /// All of it, in the order of what was heard.
    pub entries: Vec<&'a Entry>,
    /// The tasks that anything is known of.
    pub tasks: BTreeMap<&'a str, TaskHistory<'a>>,
    /// What was done to the cluster.
    pub faults: Vec<Fault<'a>>,
}

/// Something that was done to the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    /// What.
    pub what: &'a str,
    /// To which nodes.
    pub nodes: &'a [usize],
    /// Whether runs are lost by it.
    pub loses: bool,
    /// From when.
    pub from: Micros,
    /// Until when.
    pub until: Micros,
}

/// What is known of one task. Each list is in the order of what was heard.
#[derive(Debug, Default)]
pub struct TaskHistory<'a> {
    /// The answer to its create; `None` if nobody recorded one.
    pub created: Option<Created<'a>>,
    /// Reads.
    pub reads: Vec<(&'a Entry, &'a State)>,
    /// Answers that there is no such task.
    pub not_found: Vec<&'a Entry>,
    /// What followers were told, by stream.
    pub streams: BTreeMap<u64, Stream<'a>>,
    /// Answers to questions.
    pub answers: Vec<Answer<'a>>,
    /// Cancels, and whether they were acknowledged.
    pub cancels: Vec<(&'a Entry, bool)>,
}

/// A create that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Created<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// What is known of the tool.
    pub life: &'a Life,
    /// When the time to live is over, at the earliest.
    pub expires: Micros,
}

/// An answer to a question.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The question.
    pub key: &'a str,
    /// The name.
    pub name: &'a str,
    /// Whether it was acknowledged.
    pub acknowledged: bool,
}

/// One follower's stream.
#[derive(Debug, Default)]
pub struct Stream<'a> {
    /// What it was told.
    pub states: Vec<(&'a Entry, &'a State)>,
    /// How it ended; `None` if it did not.
    pub end: Option<(&'a Entry, StreamEnd)>,
}

impl<'a> Tasks<'a> {
    /// Sorts a history.
    pub fn of(history: &'a History) -> Self {
        let mut entries: Vec<&Entry> = history.entries.iter().collect();
        entries.sort_by_key(|entry| entry.heard);
        let mut tasks: BTreeMap<&str, TaskHistory<'_>> = BTreeMap::new();
        let mut faults = Vec::new();
        for entry in &entries {
            match &entry.what {
                What::Created { task, life, created, ttl_ms } => {
                    let expires = u64::try_from(*created).unwrap_or(0).saturating_add(*ttl_ms).saturating_mul(1000);
                    tasks.entry(task).or_default().created = Some(Created { entry, life, expires });
                }
                What::Read { task, state } => tasks.entry(task).or_default().reads.push((entry, state)),
                What::NotFound { task } => tasks.entry(task).or_default().not_found.push(entry),
                What::Told { task, stream, state } => {
                    let streams = &mut tasks.entry(task).or_default().streams;
                    streams.entry(*stream).or_default().states.push((entry, state));
                }
                What::StreamOver { task, stream, how } => {
                    tasks.entry(task).or_default().streams.entry(*stream).or_default().end = Some((entry, *how));
                }
                What::Answered { task, key, name, acknowledged } => {
                    let answer = Answer { entry, key, name, acknowledged: *acknowledged };
                    tasks.entry(task).or_default().answers.push(answer);
                }
                What::Cancelled { task, acknowledged } => {
                    tasks.entry(task).or_default().cancels.push((entry, *acknowledged));
                }
                What::Fault { what, nodes, loses } => {
                    faults.push(Fault { what, nodes, loses: *loses, from: entry.sent, until: entry.heard });
                }
                What::AtTheLimit | What::Later { .. } | What::Unheard { .. } | What::Unexpected { .. } => {}
            }
        }
        Self { rules: history.rules, entries, tasks, faults }
    }

    /// What `check` finds of each task, with the task's id.
    pub fn each(&self, check: impl Fn(&TaskHistory<'a>) -> Vec<String>) -> Vec<String> {
        let tasks = self.tasks.iter();
        tasks.flat_map(|(id, task)| check(task).into_iter().map(move |why| format!("task {id}: {why}"))).collect()
    }
}

impl<'a> TaskHistory<'a> {
    /// All states that anybody saw, followers included.
    pub fn states(&self) -> impl Iterator<Item = (&'a Entry, &'a State)> {
        self.reads.iter().copied().chain(self.streams.values().flat_map(|stream| stream.states.iter().copied()))
    }

    /// The terminal state that was heard of first.
    pub fn end(&self) -> Option<(&'a Entry, &'a State)> {
        self.states().filter(|(_, state)| state.is_terminal()).min_by_key(|(entry, _)| entry.heard)
    }

    /// Whether a node's create was the one of this task.
    pub fn ran_on(&self, node: usize) -> bool {
        self.created.is_some_and(|created| created.entry.node == node)
    }
}
