//! Histories that nobody lived, to see the checker notice.

use super::{Entry, History, Life, Micros, Rules, State, StreamEnd, What};

/// The task that they are about.
pub(super) const TASK: &str = "t";
/// Its owner.
pub(super) const OWNER: &str = "alice";

/// A history to be. Times are in milliseconds; a request takes the ten from the time that is given.
#[derive(Debug)]
pub(super) struct Forged {
    history: History,
    node: usize,
    by: String,
    task: String,
}

/// A state without anything but its status.
pub(super) fn state(status: &str) -> State {
    let outcome = matches!(status, "completed" | "failed").then(|| "{}".to_owned());
    State { status: status.into(), outcome, ..State::default() }
}

/// A completed state with this text.
pub(super) fn said(text: &str) -> State {
    State { outcome: Some(text.into()), text: Some(text.into()), ..state("completed") }
}

/// A state in which the keys are asked.
pub(super) fn asking(keys: &[(&str, &str)]) -> State {
    let questions = keys.iter().map(|(key, request)| ((*key).to_owned(), (*request).to_owned())).collect();
    State { questions, ..state("input_required") }
}

/// The state of a task whose node was lost.
pub(super) fn lost() -> State {
    let message = Some("The server that ran the task stopped before the task ended.".to_owned());
    State { message, outcome: Some(r#"{"code":-32603}"#.into()), ..state("failed") }
}

impl Forged {
    /// Nothing has happened.
    pub(super) fn new() -> Self {
        let history = History { rules: Rules { limit: 2, orphans_end_within: 1_000_000 }, entries: Vec::new() };
        Self { history, node: 0, by: OWNER.into(), task: TASK.into() }
    }

    /// What follows is about this node.
    pub(super) fn on(mut self, node: usize) -> Self {
        self.node = node;
        self
    }

    /// What follows is done by this principal.
    pub(super) fn by(mut self, by: &str) -> Self {
        self.by = by.into();
        self
    }

    /// What follows is about this task.
    pub(super) fn of(mut self, task: &str) -> Self {
        self.task = task.into();
        self
    }

    pub(super) fn created(self, ms: u64, life: Life) -> Self {
        let task = self.task.clone();
        let created = i64::try_from(ms).expect("a small number");
        self.entry(ms, What::Created { task, life, created, ttl_ms: 60_000 })
    }

    pub(super) fn read(self, ms: u64, state: State) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::Read { task, state })
    }

    pub(super) fn not_found(self, ms: u64) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::NotFound { task })
    }

    pub(super) fn told(self, ms: u64, stream: u64, state: State) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::Told { task, stream, state })
    }

    pub(super) fn stream_over(self, ms: u64, stream: u64, how: StreamEnd) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::StreamOver { task, stream, how })
    }

    pub(super) fn answered(self, ms: u64, key: &str, name: &str, acknowledged: bool) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::Answered { task, key: key.into(), name: name.into(), acknowledged })
    }

    pub(super) fn cancelled(self, ms: u64, acknowledged: bool) -> Self {
        let task = self.task.clone();
        self.entry(ms, What::Cancelled { task, acknowledged })
    }

    pub(super) fn fault(self, from: u64, until: u64, nodes: &[usize], loses: bool) -> Self {
        let mut forged = self.entry(from, What::Fault { what: "fault".into(), nodes: nodes.into(), loses });
        if let Some(entry) = forged.history.entries.last_mut() {
            entry.heard = until * 1000;
        }
        forged
    }

    pub(super) fn entry(mut self, ms: u64, what: What) -> Self {
        let sent: Micros = ms * 1000;
        self.history.entries.push(Entry { by: self.by.clone(), node: self.node, sent, heard: sent + 10_000, what });
        self
    }

    /// Asserts that the claim does not mind.
    #[track_caller]
    pub(super) fn holds(self, claim: super::claims::Check) -> Self {
        assert_eq!(claim(&super::Tasks::of(&self.history)), Vec::<String>::new());
        self
    }

    /// Asserts that the claim is broken once.
    #[track_caller]
    pub(super) fn breaks(self, claim: super::claims::Check) {
        let found = claim(&super::Tasks::of(&self.history));
        assert_eq!(found.len(), 1, "{found:?}");
        // And the checker asks for this claim.
        assert!(!self.history.violations().is_empty());
    }
}
