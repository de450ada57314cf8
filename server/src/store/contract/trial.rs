//! One case's view of the store: asks, judges what holds of every answer, and hands the answer on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokkuri_core::access::Owner;
use tokkuri_core::id::{NodeId, Revision, TaskId};
use tokkuri_core::store::{Answer, Filter, Load, NodeState, Outcome, Request, Row};
use tokkuri_core::task::{Command, Draft, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::history::History;
use super::samples::{Shared, holds, joining, short, unexpected};
use super::{HandClock, Subject};

/// How much later than promised a moment may come by the store's clock.
const LATE: Duration = Duration::from_secs(60);

/// A store on trial. Clones share what was seen so far.
#[derive(Clone, Debug)]
pub(super) struct Trial(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    subject: Subject,
    /// The latest time of any answer.
    latest: AtomicU64,
    history: History,
}

impl Trial {
    pub(super) fn new(subject: Subject) -> Self {
        Self(Arc::new(Inner { subject, latest: AtomicU64::new(0), history: History::default() }))
    }

    /// The clock, if it can be moved.
    pub(super) fn clock(&self) -> Option<&HandClock> {
        self.0.subject.clock.as_deref()
    }

    /// Asks. Checks all that must hold whatever was asked.
    pub(super) async fn ask(&self, request: Request<Json>) -> Result<Answer<Json>, String> {
        let asked = Asked::from(&request);
        let latest = Millis(self.0.latest.load(Ordering::SeqCst));
        let known = match asked {
            Asked::Load(id) => self.0.history.newest(id),
            _ => None,
        };
        let answer = self.0.subject.store.carry_out(request).answer().await;
        let now = answer.now;
        holds(now >= latest, || format!("time went back, from {} to {}", latest.0, now.0))?;
        self.0.latest.fetch_max(now.0, Ordering::SeqCst);
        let shown: &[Shared] = match (&asked, &answer.outcome) {
            (Asked::Load(_), Outcome::Loaded(task)) => {
                History::loaded(known.as_ref(), now, task.as_ref())?;
                task.as_slice()
            }
            (Asked::Insert, Outcome::Inserted(task)) => std::slice::from_ref(task),
            (Asked::Commit(task), Outcome::Committed) => std::slice::from_ref(task),
            (Asked::Orphans, Outcome::Orphans(tasks)) | (Asked::Page, Outcome::Page(tasks, _)) => tasks,
            (Asked::Insert, Outcome::AtTheLimit | Outcome::Exists)
            | (Asked::Commit(_), Outcome::Conflict)
            | (Asked::Count, Outcome::Live(_))
            | (Asked::Due, Outcome::Due(_))
            | (Asked::Remove, Outcome::Removed(_))
            | (Asked::Touched, Outcome::Touched(_))
            | (Asked::Lease, Outcome::Leased { .. } | Outcome::LeaseLost)
            | (Asked::Resign, Outcome::Released)
            | (Asked::Nodes, Outcome::Nodes(_))
            | (Asked::Drain, Outcome::Drained(_)) => &[],
            (_, outcome) => return Err(format!("no answer to {asked:?}: {}", short(outcome))),
        };
        for task in shown {
            self.0.history.observe(task)?;
            holds(task.is_visible(now), || {
                format!("shown at {}, though it expired at {}: {}", now.0, task.expires().0, short(task))
            })?;
        }
        Ok(answer)
    }

    /// The store's time.
    pub(super) async fn now(&self) -> Result<Millis, String> {
        Ok(self.ask(Request::Load { id: TaskId::from_bytes([0xee; 18]) }).await?.now)
    }

    /// Waits until the store's time is `moment` or later, by moving its clock if that can be done.
    pub(super) async fn pass(&self, moment: Millis) -> Result<(), String> {
        if let Some(clock) = self.clock() {
            clock.set(clock.now().max(moment));
        }
        let started = Instant::now();
        let mut patience = LATE;
        loop {
            let now = self.now().await?;
            if now >= moment {
                return Ok(());
            }
            let left = Duration::from_millis(moment.since(now));
            patience = patience.max(left + LATE);
            holds(started.elapsed() < patience, || format!("time stands at {}, {left:?} short", now.0))?;
            tokio::time::sleep(left.min(Duration::from_millis(20))).await;
        }
    }

    pub(super) async fn load(&self, id: TaskId) -> Result<(Millis, Option<Shared>), String> {
        let answer = self.ask(Request::Load { id }).await?;
        match answer.outcome {
            Outcome::Loaded(task) => Ok((answer.now, task)),
            outcome => Err(unexpected("a load", &outcome)),
        }
    }

    /// Loads what must be there.
    pub(super) async fn there(&self, id: TaskId) -> Result<Shared, String> {
        self.load(id).await?.1.ok_or_else(|| format!("{id} is not there"))
    }

    pub(super) async fn insert(&self, draft: Draft<Json>, limit: Option<u32>) -> Result<Outcome<Json>, String> {
        Ok(self.ask(Request::Insert { draft: Box::new(draft), limit }).await?.outcome)
    }

    /// Inserts what nothing speaks against.
    pub(super) async fn inserted(&self, draft: Draft<Json>) -> Result<Shared, String> {
        let answer = self.ask(Request::Insert { draft: Box::new(draft.clone()), limit: None }).await?;
        match answer.outcome {
            Outcome::Inserted(task) => {
                let made = draft.created(answer.now);
                holds(*task == made, || format!("inserted {}, wanted {}", short(&task), short(&made)))?;
                Ok(task)
            }
            outcome => Err(unexpected("Inserted", &outcome)),
        }
    }

    /// Whether the commit went through.
    pub(super) async fn commit(&self, expected: Revision, task: &Shared) -> Result<(Millis, bool), String> {
        let answer = self.ask(Request::Commit { expected, task: Arc::clone(task) }).await?;
        Ok((answer.now, answer.outcome == Outcome::Committed))
    }

    /// Carries out a command on a state that was loaded, and commits what nothing speaks against.
    pub(super) async fn change(&self, loaded: &Shared, command: Command<Json>) -> Result<Shared, String> {
        let next = applied(loaded, self.now().await?, command)?;
        self.committed(loaded, &next).await?;
        Ok(next)
    }

    /// Commits what nothing speaks against, and says when.
    pub(super) async fn committed(&self, loaded: &Shared, next: &Shared) -> Result<Millis, String> {
        let (now, committed) = self.commit(loaded.revision, next).await?;
        holds(committed, || format!("a commit on the newest revision was refused: {}", short(next)))?;
        Ok(now)
    }

    pub(super) async fn count(&self, owner: &Owner) -> Result<(Millis, u32), String> {
        let answer = self.ask(Request::Count { owner: owner.clone() }).await?;
        match answer.outcome {
            Outcome::Live(live) => Ok((answer.now, live)),
            outcome => Err(unexpected("a count", &outcome)),
        }
    }

    pub(super) async fn due(&self, limit: u32) -> Result<(Millis, Vec<Row<Json>>), String> {
        let answer = self.ask(Request::Due { limit }).await?;
        match answer.outcome {
            Outcome::Due(rows) => Ok((answer.now, rows)),
            outcome => Err(unexpected("what is due", &outcome)),
        }
    }

    pub(super) async fn remove(&self, rows: Vec<(TaskId, Revision)>) -> Result<Vec<TaskId>, String> {
        match self.ask(Request::Remove { rows }).await?.outcome {
            Outcome::Removed(ids) => Ok(ids),
            outcome => Err(unexpected("what was removed", &outcome)),
        }
    }

    /// Orphans, sorted by id.
    pub(super) async fn orphans(&self, limit: u32) -> Result<(Millis, Vec<Shared>), String> {
        let answer = self.ask(Request::Orphans { limit }).await?;
        match answer.outcome {
            Outcome::Orphans(mut tasks) => {
                tasks.sort_by_key(|task| task.id);
                Ok((answer.now, tasks))
            }
            outcome => Err(unexpected("orphans", &outcome)),
        }
    }

    /// What changed, sorted by id.
    pub(super) async fn touched(
        &self,
        node: NodeId,
        since: Millis,
    ) -> Result<(Millis, Vec<(TaskId, Revision)>), String> {
        let answer = self.ask(Request::TouchedSince { node, since }).await?;
        match answer.outcome {
            Outcome::Touched(mut rows) => {
                rows.sort_unstable();
                Ok((answer.now, rows))
            }
            outcome => Err(unexpected("what changed", &outcome)),
        }
    }

    pub(super) async fn page(
        &self,
        filter: Filter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<(Millis, Vec<Shared>, bool), String> {
        let answer = self.ask(Request::Page { filter, after, limit }).await?;
        match answer.outcome {
            Outcome::Page(tasks, more) => Ok((answer.now, tasks, more)),
            outcome => Err(unexpected("a page", &outcome)),
        }
    }

    /// A node joins. Until when its lease holds and whether it is to drain; `None` if its lease is lost.
    pub(super) async fn join(&self, node: NodeId, lease_ms: u64) -> Result<Option<Leased>, String> {
        self.leased(Request::Join { node: Box::new(joining(node)), lease_ms }, lease_ms).await
    }

    /// A node renews its lease.
    pub(super) async fn renew(&self, node: NodeId, load: Load, lease_ms: u64) -> Result<Option<Leased>, String> {
        self.leased(Request::Renew { node, load, lease_ms }, lease_ms).await
    }

    async fn leased(&self, request: Request<Json>, lease_ms: u64) -> Result<Option<Leased>, String> {
        let answer = self.ask(request).await?;
        match answer.outcome {
            Outcome::Leased { until, drain } => {
                let promised = answer.now.after(lease_ms);
                holds(until == promised, || format!("a lease until {}, wanted {}", until.0, promised.0))?;
                Ok(Some(Leased { until, drain }))
            }
            Outcome::LeaseLost => Ok(None),
            outcome => Err(unexpected("a lease", &outcome)),
        }
    }

    /// A node that nothing speaks against joins, or extends its lease. Until when it holds.
    pub(super) async fn lease(&self, node: NodeId, lease_ms: u64) -> Result<Millis, String> {
        match self.join(node, lease_ms).await? {
            Some(leased) => Ok(leased.until),
            None => Err(format!("{node} has lost its lease, though it did not run out")),
        }
    }

    pub(super) async fn resign(&self, node: NodeId) -> Result<(), String> {
        let outcome = self.ask(Request::Resign { node }).await?.outcome;
        holds(outcome == Outcome::Released, || unexpected("Released", &outcome))
    }

    pub(super) async fn nodes(&self) -> Result<(Millis, Vec<NodeState>), String> {
        let answer = self.ask(Request::Nodes).await?;
        match answer.outcome {
            Outcome::Nodes(nodes) => Ok((answer.now, nodes)),
            outcome => Err(unexpected("nodes", &outcome)),
        }
    }

    /// When the drain was asked for, and whether the node is known and alive.
    pub(super) async fn drain(&self, node: NodeId, drain: Option<u64>) -> Result<(Millis, bool), String> {
        let answer = self.ask(Request::Drain { node, drain }).await?;
        match answer.outcome {
            Outcome::Drained(known) => Ok((answer.now, known)),
            outcome => Err(unexpected("a drain", &outcome)),
        }
    }
}

/// What a node is told of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leased {
    pub(super) until: Millis,
    pub(super) drain: Option<Millis>,
}

/// The state that a command makes of another.
pub(super) fn applied(loaded: &Shared, now: Millis, command: Command<Json>) -> Result<Shared, String> {
    let mut next = Task::clone(loaded);
    next.apply(now, command, &mut Vec::new()).map_err(|rejected| format!("{rejected}: {}", short(loaded)))?;
    Ok(Arc::new(next))
}

/// What was asked, as far as the answer is judged by it.
#[derive(Debug)]
enum Asked {
    Load(TaskId),
    Insert,
    Commit(Shared),
    Count,
    Due,
    Remove,
    Orphans,
    Touched,
    Page,
    Lease,
    Resign,
    Nodes,
    Drain,
}

impl From<&Request<Json>> for Asked {
    fn from(request: &Request<Json>) -> Self {
        match request {
            Request::Load { id } => Self::Load(*id),
            Request::Insert { .. } => Self::Insert,
            Request::Commit { task, .. } => Self::Commit(Arc::clone(task)),
            Request::Count { .. } => Self::Count,
            Request::Due { .. } => Self::Due,
            Request::Remove { .. } => Self::Remove,
            Request::Orphans { .. } => Self::Orphans,
            Request::TouchedSince { .. } => Self::Touched,
            Request::Page { .. } => Self::Page,
            Request::Join { .. } | Request::Renew { .. } => Self::Lease,
            Request::Resign { .. } => Self::Resign,
            Request::Nodes => Self::Nodes,
            Request::Drain { .. } => Self::Drain,
        }
    }
}
