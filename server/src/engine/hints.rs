//! Hints that a task has changed, from other nodes or from the store itself. A hint is no reading: it only says that one is worth
//! its while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokkuri_core::id::{Revision, TaskId};
use tokkuri_core::procedure::Seen;
use tokkuri_core::store::{Outcome, Request};

use crate::engine::Engine;

/// How many tasks are read at a time because of hints: a storm of them leaves the store room for requests.
const AT_ONCE: usize = 32;

/// The newest revision there can be: whoever has not seen it is behind.
const SOME_REVISION: Revision = Revision(u64::MAX);

/// The tasks that are being read because of a hint.
#[derive(Debug)]
pub(super) struct Hints {
    reading: Mutex<BTreeMap<TaskId, Meanwhile>>,
    places: Semaphore,
}

/// What was hinted while the task was being read. The reading may be older than that.
#[derive(Clone, Copy, Debug, Default)]
struct Meanwhile {
    at_least: Option<Revision>,
    /// A hint that named no revision.
    unknown: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self { reading: Mutex::new(BTreeMap::new()), places: Semaphore::new(AT_ONCE) }
    }
}

impl Hints {
    /// Whether the task is to be read now. If it is being read already, the hint is left for whoever reads it.
    fn begin(&self, id: TaskId, revision: Option<Revision>) -> bool {
        let mut reading = self.lock();
        match reading.get_mut(&id) {
            Some(meanwhile) => {
                match revision {
                    Some(_) => meanwhile.at_least = meanwhile.at_least.max(revision),
                    None => meanwhile.unknown = true,
                }
                false
            }
            None => {
                reading.insert(id, Meanwhile::default());
                true
            }
        }
    }

    /// Whether the task is to be read once more. If not, the next hint begins anew.
    fn again(&self, id: TaskId, is_behind: impl FnOnce(Revision) -> bool) -> bool {
        let mut reading = self.lock();
        let meanwhile = reading.get_mut(&id).map(std::mem::take).unwrap_or_default();
        let again = meanwhile.unknown || meanwhile.at_least.is_some_and(is_behind);
        if !again {
            reading.remove(&id);
        }
        again
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Meanwhile>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Somebody says that the task has this revision now, or, without one, that it has changed. If a run or a follower here is
    /// behind, the task is read once and shown to them; if not, nothing is read. Hints for a task that is being read are
    /// taken together.
    pub fn hint(self: &Arc<Self>, id: TaskId, revision: Option<Revision>) {
        if let Some(peers) = self.peers.get() {
            peers.heard(id, revision);
        }
        if !self.is_behind(id, revision.unwrap_or(SOME_REVISION)) || !self.hints.begin(id, revision) {
            return;
        }
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                engine.read_for_hint(id).await;
                if !engine.hints.again(id, |revision| engine.is_behind(id, revision)) {
                    break;
                }
            }
        });
    }

    /// Takes the store's own hints, until dropped.
    pub(super) async fn take_hints(self: Arc<Self>) {
        if let Some(mut hints) = self.store.hints() {
            while let Some((id, revision)) = hints.recv().await {
                self.hint(id, Some(revision));
            }
        }
        std::future::pending().await
    }

    /// Whether somebody here wants to know of the task, and knows this revision already.
    pub(crate) fn knows(&self, id: TaskId, revision: Revision) -> bool {
        !self.is_behind(id, revision) && self.is_behind(id, SOME_REVISION)
    }

    /// Whether a run or a follower here has not seen this revision.
    pub(super) fn is_behind(&self, id: TaskId, revision: Revision) -> bool {
        self.registry.is_behind(id, revision) || self.followers.is_behind(id, revision)
    }

    async fn read_for_hint(&self, id: TaskId) {
        // The semaphore is never closed.
        let _place = self.hints.places.acquire().await;
        // A store that fails is asked again by the node's next look.
        if let Outcome::Loaded(task) = self.ask(Request::Load { id }).await.outcome {
            self.observe(id, &task.map_or(Seen::Gone, Seen::Task));
        }
    }
}

#[cfg(test)]
mod tests;
