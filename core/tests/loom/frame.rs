//! What the scenarios share: a node in small, and the exploration of everything its threads can do.
//!
//! The registry, the table, the monitors and the tasks are the shipped ones. The store is one mutex, so that between a commit
//! and its signal anything can happen; how procedures load, retry and conflict is the model's business.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::future::block_on;
use loom::sync::Mutex;
use tokkuri_core::id::{Attempt, Key, NodeId, TaskId};
use tokkuri_core::procedure::Seen;
use tokkuri_core::run::Stop;
use tokkuri_core::signal::Registry;
use tokkuri_core::task::{Command, Task};
use tokkuri_core::time::Millis;

use crate::payload::{Number, draft};

/// How often a thread may be preempted in one execution, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS: usize = 2;

pub(crate) const T0: Millis = Millis(1_000);
pub(crate) const NODE: NodeId = NodeId(1);
pub(crate) const FIRST: Attempt = Attempt::FIRST;
/// The tasks. Of two shards, each is in its own.
pub(crate) const A: TaskId = TaskId::from_bytes([1; 18]);
pub(crate) const B: TaskId = TaskId::from_bytes([2; 18]);
/// What answers say.
pub(crate) const FOUR: Number = Number(4);

/// Runs the scenario in every order of its threads, and returns everything that came of it. The scenario asserts what must hold
/// in each; what it returns shows that its race was run both ways. A thread that is never woken ends the exploration with a
/// deadlock.
pub(crate) fn explore<T: Eq + Hash + Debug + Send + 'static>(
    scenario: impl Fn() -> T + Send + Sync + 'static,
) -> HashSet<T> {
    let outcomes = Arc::new(std::sync::Mutex::new(HashSet::new()));
    let executions = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    let bound = builder.preemption_bound;
    builder.check({
        let (outcomes, executions) = (Arc::clone(&outcomes), Arc::clone(&executions));
        move || {
            executions.fetch_add(1, Ordering::Relaxed);
            let outcome = scenario();
            outcomes.lock().unwrap().insert(outcome);
        }
    });
    let outcomes = std::mem::take(&mut *outcomes.lock().unwrap());
    println!("{executions:?} executions, preemption bound {bound:?}: {outcomes:?}");
    outcomes
}

/// One node and its store.
pub(crate) struct Node {
    pub(crate) registry: Registry<Number>,
    rows: Mutex<BTreeMap<TaskId, Arc<Task<Number>>>>,
}

impl Node {
    /// A node without tasks.
    pub(crate) fn idle(shards: usize) -> Arc<Self> {
        Arc::new(Self { registry: Registry::new(shards, NODE), rows: Mutex::default() })
    }

    /// A node that runs these tasks; each has asked its question.
    pub(crate) fn running<const N: usize>(ids: [TaskId; N]) -> Arc<Self> {
        let node = Self::idle(1);
        for id in ids {
            assert!(node.registry.start(&node.create(id)));
            assert!(node.write(id, ask(FIRST)));
        }
        node
    }

    /// Stores a new task, and says nobody.
    pub(crate) fn create(&self, id: TaskId) -> Arc<Task<Number>> {
        let task = Arc::new(draft(id.to_bytes()[0], "somebody", NODE, true).created(T0));
        assert!(self.rows.lock().unwrap().insert(id, Arc::clone(&task)).is_none());
        task
    }

    /// Stores what the command makes of the task, and says nobody. Returns the task, and whether the command changed it.
    pub(crate) fn commit(&self, id: TaskId, command: Command<Number>) -> (Arc<Task<Number>>, bool) {
        let mut rows = self.rows.lock().unwrap();
        let row = rows.get_mut(&id).unwrap();
        let mut task = Task::clone(row);
        let changed = task.apply(T0, command, &mut Vec::new()).is_ok() && task.revision != row.revision;
        if changed {
            *row = Arc::new(task);
        }
        (Arc::clone(row), changed)
    }

    /// What a request does: commits, then hands the reading to the run. Returns whether the command changed the task.
    pub(crate) fn write(&self, id: TaskId, command: Command<Number>) -> bool {
        let (task, changed) = self.commit(id, command);
        self.signal(&task);
        changed
    }

    /// A reading reaches the run.
    pub(crate) fn signal(&self, task: &Arc<Task<Number>>) {
        self.registry.observe(task.id, &Seen::Task(Arc::clone(task)));
    }

    /// The node's regular look at the store.
    pub(crate) fn look(&self, id: TaskId) {
        let task = self.row(id);
        if self.registry.is_behind(id, task.revision) {
            self.signal(&task);
        }
    }

    /// The task as it is stored.
    pub(crate) fn row(&self, id: TaskId) -> Arc<Task<Number>> {
        Arc::clone(&self.rows.lock().unwrap()[&id])
    }

    /// Waits for the answer to the task's question.
    pub(crate) fn answer(&self, id: TaskId, attempt: Attempt) -> Result<Number, Stop> {
        let mut waiter = self.registry.waiter(id, attempt);
        let key = key();
        let answer = block_on(poll_fn(|cx| waiter.poll_answer(&key, cx)));
        if answer.is_err() {
            self.assert_no_answer(id, attempt);
        }
        answer
    }

    /// Waits until the run has to stop.
    pub(crate) fn stop(&self, id: TaskId, attempt: Attempt) -> Stop {
        let mut waiter = self.registry.waiter(id, attempt);
        let stop = block_on(poll_fn(|cx| waiter.poll_stop(cx)));
        self.assert_no_answer(id, attempt);
        stop
    }

    /// Whoever has seen a stop sees no answer any more.
    fn assert_no_answer(&self, id: TaskId, attempt: Attempt) {
        let mut waiter = self.registry.waiter(id, attempt);
        let again = block_on(poll_fn(|cx| std::task::Poll::Ready(waiter.poll_answer(&key(), cx))));
        assert!(matches!(again, std::task::Poll::Ready(Err(_))), "after the stop: {again:?}");
    }
}

/// The one question that every task asks.
pub(crate) fn key() -> Key {
    "a".into()
}

pub(crate) fn ask(by: Attempt) -> Command<Number> {
    Command::Ask { by, key: key(), request: Number(1) }
}

pub(crate) fn reply() -> Command<Number> {
    Command::Answer { answers: BTreeMap::from([(key(), FOUR)]) }
}

pub(crate) fn complete(by: Attempt) -> Command<Number> {
    Command::Complete { by, result: Number(9), message: None }
}
