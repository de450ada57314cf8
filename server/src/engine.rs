//! Drives core's machines on tokio: one node.
//!
//! Everything here is I/O: carrying a procedure's wishes to the store, spawning and stopping runs, looking at the store now and
//! then. What is decided, core decides.

mod driver;
pub(crate) mod followers;
mod heartbeat;
mod hints;
mod node;
mod operate;
mod peers;
mod places;
mod presence;
pub mod probe;
pub mod recorder;
mod runner;
mod task_run;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tokkuri_core::access::{Caller, Owner};
use tokkuri_core::id::{Key, NodeId, TaskId};
use tokkuri_core::lease::Lease;
use tokkuri_core::payload::Capabilities;
use tokkuri_core::procedure::{Answered, Create, Created, Read, Write, Written};
use tokkuri_core::run::Stop;
use tokkuri_core::signal::{Followers, Registry};
use tokkuri_core::store::{Answer, Outcome, Request, Unavailable};
use tokkuri_core::task::{Draft, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

pub use heartbeat::Closed;
pub use node::NodeLoop;
pub use peers::Peers;
pub(crate) use places::{Ticket, WAITING};
pub(crate) use presence::Presence;
pub(crate) use task_run::TaskRun;

use self::hints::Hints;
use self::places::Places;
use self::probe::Probe;
use self::recorder::Recorder;
use crate::store::Store;
use crate::telemetry::{Meters, Metrics, StoreRequest, set};
use crate::tool::{CallInfo, Tool, ToolSet};

/// How many locks the tables of runs and of followers are spread over.
const SHARDS: usize = 32;

/// Settings of `[tasks]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSettings {
    /// Whether there are tasks at all.
    pub enabled: bool,
    /// How long a task is kept after its creation.
    pub ttl_ms: u64,
    /// How long a result stays readable after the task's end, at least.
    pub keep_ms: u64,
    /// How often clients are asked to poll, and how often this node looks at the store for its runs.
    pub poll_interval_ms: u64,
    /// How many live tasks one owner may have; `None` for any number.
    pub max_per_principal: Option<u32>,
    /// How many tasks run at once on this node; further ones wait, and owners take turns. A run whose task is over counts for as
    /// long as anything of it is alive: its thread, say.
    pub max_runs: usize,
    /// How many threads tools may block at once on this node, in the request or as a task; further ones wait, and owners take
    /// turns. Less than what the runtime has (tokio: 512), which needs some of its own.
    pub max_blocking_threads: usize,
    /// How many bytes the arguments of a task may have, and the answers of one update.
    pub max_argument_bytes: usize,
    /// How many bytes a result may have.
    pub max_result_bytes: usize,
    /// How many questions one task may ask.
    pub max_questions: u32,
    /// For how long this node's lease holds without being renewed.
    pub lease_ms: u64,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            ttl_ms: 3_600_000,
            keep_ms: 300_000,
            poll_interval_ms: 1_000,
            max_per_principal: Some(100),
            max_runs: 1_000,
            max_blocking_threads: 256,
            max_argument_bytes: 1 << 20,
            max_result_bytes: 4 << 20,
            max_questions: 64,
            lease_ms: 15_000,
        }
    }
}

/// One node: its store, its tools, its runs.
#[derive(Debug)]
pub struct Engine {
    store: Arc<dyn Store>,
    lease: Mutex<Lease>,
    /// Told each time that the lease moved on.
    beaten: Notify,
    registry: Registry<Json>,
    followers: Arc<Followers<Json>>,
    places: Arc<Places>,
    threads: Arc<Places>,
    tools: ToolSet,
    settings: TaskSettings,
    /// Runs that are alive, blocking ones whose task has ended included.
    alive: AtomicUsize,
    tracker: TaskTracker,
    stopping: CancellationToken,
    started: Instant,
    hints: Hints,
    peers: OnceLock<Arc<dyn Peers>>,
    probe: Option<Arc<dyn Probe>>,
    recorder: Option<Recorder>,
    metrics: Arc<Metrics>,
    meters: Arc<Meters>,
}

/// What is known of a call that becomes a task.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The tool.
    pub tool: Arc<Tool>,
    /// Its arguments, which fit its schema.
    pub arguments: Json,
    /// Who calls.
    pub caller: Caller,
    /// What the request declared.
    pub capabilities: Capabilities,
    /// Who calls, in the words of the tool.
    pub info: CallInfo,
}

impl Engine {
    /// A node over this store. It does nothing by itself until its [`NodeLoop`] runs.
    pub fn new(store: Arc<dyn Store>, tools: ToolSet, settings: TaskSettings) -> Result<Self, getrandom::Error> {
        let metrics = Metrics::new();
        let meters = metrics.meters(tools.iter().map(|tool| tool.name()));
        let node = NodeId::drawn(getrandom::u64()?);
        let lease_ms = heartbeat::lease_ms(store.is_exclusive(), settings.lease_ms);
        Ok(Self {
            store,
            lease: Mutex::new(heartbeat::unnamed(node, lease_ms)),
            beaten: Notify::new(),
            registry: Registry::new(SHARDS, node),
            followers: Arc::new(Followers::new(SHARDS)),
            places: Places::new(settings.max_runs),
            threads: Places::new(settings.max_blocking_threads),
            tools,
            settings,
            alive: AtomicUsize::new(0),
            tracker: TaskTracker::new(),
            stopping: CancellationToken::new(),
            started: Instant::now(),
            hints: Hints::default(),
            peers: OnceLock::new(),
            probe: None,
            recorder: None,
            metrics: Arc::new(metrics),
            meters: Arc::new(meters),
        })
    }

    /// Tells these nodes of what is stored. Default: nobody. Only the first ones that it is given are told.
    pub fn set_peers(&self, peers: Arc<dyn Peers>) {
        let _ = self.peers.set(peers);
    }

    /// Counts in this registry instead of a new one.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.meters = Arc::new(metrics.meters(self.tools.iter().map(|tool| tool.name())));
        self.metrics = Arc::new(metrics);
        self
    }

    /// Lets a test bed hold the node at its named points.
    #[must_use]
    pub fn with_probe(mut self, probe: Arc<dyn Probe>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Records what the node stores, for `tokkuri-model replay`.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// This incarnation of the node. Another one follows if its lease is lost.
    pub fn node(&self) -> NodeId {
        self.lease().node()
    }

    /// Its tools.
    pub const fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// Its settings.
    pub const fn settings(&self) -> &TaskSettings {
        &self.settings
    }

    /// What the node has counted.
    pub const fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// What it counts with.
    pub(crate) const fn meters(&self) -> &Arc<Meters> {
        &self.meters
    }

    /// Sets the gauges of what is counted elsewhere.
    pub(crate) fn take_stock(&self) {
        let (meters, live) = (&self.meters, self.registry.live());
        set(&meters.live_working, live.working);
        set(&meters.live_input_required, live.input_required);
        set(&meters.runs_alive, self.alive());
        set(&meters.runs_queued, self.queued());
        set(&meters.tasks_followed, self.followers.len());
    }

    /// Asks the store. Everything that the node asks goes through here, where it is counted.
    pub(crate) async fn ask(&self, request: Request<Json>) -> Answer<Json> {
        let kind = StoreRequest::of(&request);
        self.meters.answer(kind, self.store.carry_out(request)).await
    }

    /// How many runs are alive in this process, blocking ones whose task has ended included.
    pub fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }

    /// How many tasks of this node wait for a place to run.
    pub fn queued(&self) -> usize {
        self.places.waiting()
    }

    /// Takes a run of this owner's in; `ticket` is its place, if it has one.
    pub(crate) fn present(self: &Arc<Self>, owner: Owner, ticket: Option<Ticket>) -> Arc<Presence> {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Arc::new(Presence { engine: Arc::clone(self), owner, _ticket: ticket })
    }

    /// Whether the owner may have one more live task. Only a hint: what binds is the store's insert.
    ///
    /// # Errors
    /// If the store is not available.
    pub async fn has_room(&self, owner: &Owner) -> Result<bool, Unavailable> {
        let Some(limit) = self.settings.max_per_principal else { return Ok(true) };
        match self.ask(Request::Count { owner: owner.clone() }).await.outcome {
            Outcome::Live(live) if live < limit => Ok(true),
            Outcome::Live(_) => {
                self.meters.quota_refusals.increment(1);
                Ok(false)
            }
            Outcome::Unavailable(unavailable) => Err(unavailable),
            other => {
                Err(Unavailable { why: format!("the store answered {other:?} to a count").into(), maybe_done: false })
            }
        }
    }

    /// Creates a task and starts its run. When it returns, the task is stored and readable.
    ///
    /// The work is done on a task of its own: dropping this future half-way neither loses the run nor leaves one without a
    /// record. Whoever drops it has to [`abandon`](Self::abandon) what it would have returned.
    ///
    /// A node that is [closed](Self::closed) creates none, and says that it is not available.
    pub async fn create(self: &Arc<Self>, new: NewTask) -> Created<Json> {
        if let Some(closed) = self.closed() {
            return Created::Unavailable(Unavailable { why: closed.to_string().into(), maybe_done: false });
        }
        loop {
            let mut bits = [0; 18];
            if let Err(error) = getrandom::fill(&mut bits) {
                let why = format!("the operating system gives no random bits: {error}").into();
                return Created::Unavailable(Unavailable { why, maybe_done: false });
            }
            let id = TaskId::from_bytes(bits);
            // The place is asked for first, so that the stored task says from its first moment on that it waits.
            let place = self.places.reserve(id, &new.caller.owner);
            let draft = self.draft(id, &new, place.waits);
            // 144 random bits are never drawn twice; a store that says so gets another draw all the same.
            match self.drive(Create::new(draft, self.settings.max_per_principal)).await {
                Created::IdTaken => {}
                created @ (Created::Task(_) | Created::AtTheLimit { .. } | Created::Unavailable(_)) => return created,
            }
        }
    }

    fn draft(&self, id: TaskId, new: &NewTask, waits: bool) -> Draft<Json> {
        let tool = &new.tool;
        Draft {
            id,
            owner: new.caller.owner.clone(),
            tool: tool.name.clone(),
            scopes: tool.scopes.clone(),
            granted: new.info.scopes.clone(),
            capabilities: new.capabilities,
            traceparent: new.info.traceparent.clone(),
            restartable: tool.restartable,
            arguments: new.arguments.clone(),
            node: self.node(),
            ttl_ms: tool.ttl_ms.unwrap_or(self.settings.ttl_ms),
            poll_interval_ms: tool.poll_interval_ms.unwrap_or(self.settings.poll_interval_ms),
            keep_ms: self.settings.keep_ms,
            max_questions: self.settings.max_questions,
            status_message: waits.then(|| WAITING.into()),
        }
    }

    /// `tasks/get`.
    pub async fn get(self: &Arc<Self>, id: TaskId, caller: Caller) -> Answered<Json> {
        self.drive(Read::new(id, caller)).await
    }

    /// `tasks/update`.
    pub async fn update(self: &Arc<Self>, id: TaskId, caller: Caller, answers: BTreeMap<Key, Json>) -> Written<Json> {
        self.drive(Write::answers(id, caller, answers)).await
    }

    /// `tasks/cancel`.
    pub async fn cancel(self: &Arc<Self>, id: TaskId, caller: Caller) -> Written<Json> {
        self.drive(Write::cancel(id, caller)).await
    }

    /// Cancels a task whose create reply nobody received: nobody can name it.
    pub fn abandon(self: &Arc<Self>, id: TaskId) {
        let engine = Arc::clone(self);
        self.tracker.spawn(async move {
            tracing::debug!(task = %id, "the create reply was not delivered: the task is cancelled");
            engine.drive(Write::abandon(id)).await;
        });
    }

    /// Fires when the node is to take on nothing new.
    pub const fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Held by a request that runs a tool while it is answered: the drain waits for it, as it does for runs. `None` once the node is
    /// draining: whoever comes then cannot make it longer.
    pub(crate) fn answering(&self) -> Option<TaskTrackerToken> {
        (!self.stopping.is_cancelled()).then(|| self.tracker.token())
    }

    /// Shuts down: takes nothing new, waits up to `drain` for the runs to end, then stops those that are left and waits for that
    /// to be stored. What may run again, or never began, is left to the other nodes (or to the next process on this store); other
    /// tasks have failed. Last, the lease is given up, so that nobody has to wait for it to run out.
    pub async fn shut_down(self: &Arc<Self>, drain: Duration) {
        self.stopping.cancel();
        self.tracker.close();
        if tokio::time::timeout(drain, self.tracker.wait()).await.is_err() {
            let stopped = self.registry.halt(Stop::Shutdown);
            tracing::info!(runs = stopped, "the time to drain is over: what still runs is stopped");
            // A blocking run cannot be stopped, and a store that is gone stores nothing: neither may hold the exit up for long.
            let _ = tokio::time::timeout(Duration::from_secs(2), self.tracker.wait()).await;
        }
        self.resign().await;
    }

    /// The process's own clock, for what nobody else sees.
    fn uptime(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn spawn_run(self: &Arc<Self>, task: Arc<Task<Json>>) {
        let ticket = self.places.ticket((task.id, task.attempt), &task.origin.owner);
        let engine = Arc::clone(self);
        self.tracker.spawn(async move { runner::run(engine, task, ticket).await });
    }
}
