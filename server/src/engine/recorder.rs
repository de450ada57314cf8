//! What the node did to its tasks, written down for `tokkuri-model replay`: would core have done the same?
//!
//! A switch of the test bed. In production there is no recorder and it costs nothing.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::procedure::{Input, Procedure};
use tokkuri_core::store::{Outcome, Request};
use tokkuri_core::task::{Command, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::trace::{Came, Did, Record};
use tokkuri_core::wire::Json;

/// Writes one line of JSON for every change that was stored, in the order in which each task went through them.
///
/// Changes that were refused, or that changed nothing, are not written.
#[derive(Debug)]
pub struct Recorder {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Changes of tasks whose predecessor is not written yet: two requests may hear of their commits the other way round.
    waiting: HashMap<TaskId, (Revision, BTreeMap<Revision, Record<Json>>)>,
}

impl Recorder {
    /// Records into a new file.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(file: &Path) -> io::Result<Self> {
        Ok(Self { state: Mutex::new(State { file: File::create(file)?, waiting: HashMap::new() }) })
    }

    fn record(&self, record: Record<Json>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { file, waiting } = &mut *state;
        let (next, held) = waiting.entry(record.task).or_insert_with(|| (Revision::FIRST, BTreeMap::new()));
        held.insert(record.revision, record);
        while let Some(record) = held.remove(next) {
            *next = next.next();
            let written =
                serde_json::to_string(&record).map_err(io::Error::other).and_then(|line| writeln!(file, "{line}"));
            if let Err(error) = written {
                tracing::error!(%error, "a change could not be recorded");
            }
        }
    }
}

/// What one procedure is about to have stored.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// The store's time of the last load: the one that the change was made with.
    loaded: Option<Millis>,
    change: Option<Change>,
}

#[derive(Debug)]
enum Change {
    Insert,
    Commit(Command<Json>, Arc<Task<Json>>),
}

impl Tape {
    /// The procedure asks for this.
    pub(super) fn asked<Q: Procedure<Payload = Json>>(&mut self, procedure: &Q, request: &Request<Json>) {
        self.change = match request {
            Request::Insert { .. } => Some(Change::Insert),
            Request::Commit { task, .. } => {
                procedure.command().map(|command| Change::Commit(command.clone(), Arc::clone(task)))
            }
            _ => None,
        };
    }

    /// This came of it.
    pub(super) fn answered(&mut self, recorder: &Recorder, input: &Input<Json>) {
        let Input::Store(answer) = input else { return };
        let record = |task: &Task<Json>, now, did| Record {
            task: task.id,
            now,
            did,
            came: Came::Stored,
            revision: task.revision,
            status: task.status(),
        };
        match (&answer.outcome, self.change.take()) {
            (Outcome::Loaded(_), _) => self.loaded = Some(answer.now),
            (Outcome::Inserted(task), Some(Change::Insert)) => {
                recorder.record(record(task, answer.now, Did::Insert(Task::clone(task))));
            }
            (Outcome::Committed, Some(Change::Commit(command, task))) => {
                let now = self.loaded.unwrap_or(answer.now);
                recorder.record(record(&task, now, command.into()));
            }
            _ => {}
        }
    }
}
