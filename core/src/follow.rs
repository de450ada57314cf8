//! Which snapshots of a task its followers are still owed.
//!
//! A follower is told the newest reading of the task that this node has, and never anything older than it was told before: what
//! lies between two deliveries is skipped. So a follower that does not read holds nothing of its own, however often the task
//! changes: the one snapshot that it is owed is the table's. Terminal snapshots are readings like any other, only the last, which
//! is why none can be skipped.
//!
//! When a task is removed its followers are told nothing more: the wire has no word for it, and `tasks/get` answers as for a
//! task that never was. A snapshot of a live task that was not delivered by then is dropped, since it would tell of what is no
//! longer so. A terminal one stays owed: it was true when the task was there, and nothing can take it back.
//!
//! That a task is removed only the store says. By a task's own time to live nothing is told: an end raises it, and the reading
//! of that end may still be on its way.

mod turns;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

pub use turns::Turns;

use crate::access::{self, Caller, Denied};
use crate::id::{Revision, TaskId};
use crate::payload::Payload;
use crate::procedure::Seen;
use crate::task::Task;
use crate::time::Millis;

/// The name of a follower, unique on its node for as long as it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FollowerId(pub u64);

/// What a follower is owed of one task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owed<P> {
    /// This snapshot, now. It counts as delivered.
    Snapshot(Arc<Task<P>>),
    /// Nothing until the task changes.
    Nothing,
    /// Nothing ever again: the terminal snapshot was delivered, the task is gone, or the follower may not see it.
    Over,
}

/// The tasks that are followed on one node, and by whom.
///
/// # Contract
/// * [`join`](Self::join) first, then read the store and [`observe`](Self::observe) the reading: a change that is stored before
///   the reading is in it, one that is stored later is observed by itself. So the first snapshot is the current state, and
///   nothing is missed whenever somebody joins.
/// * [`observe`](Self::observe) every reading of the store, in any order, however often.
/// * [`next`](Self::next) when the follower can take something; what it returns counts as delivered.
/// * Read what is [`open`](Self::open) at every look at the store.
/// * [`leave`](Self::leave) when the follower goes, or when it was told [`Owed::Over`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table<P> {
    topics: BTreeMap<TaskId, Topic<P>>,
}

/// One task that is followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Topic<P> {
    /// The newest reading.
    newest: Option<Arc<Task<P>>>,
    /// The task was removed.
    gone: bool,
    followers: BTreeMap<FollowerId, Follower>,
}

/// One follower of one task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Follower {
    /// As whom it follows.
    caller: Arc<Caller>,
    /// What it was told last.
    told: Option<Revision>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self { topics: BTreeMap::new() }
    }
}

impl<P: Payload> Table<P> {
    /// `follower` follows a task as `caller`. It may or may not be there, and be theirs: that is for the reading to tell.
    /// Joining twice is joining once.
    pub fn join(&mut self, id: TaskId, follower: FollowerId, caller: &Arc<Caller>) {
        let topic =
            self.topics.entry(id).or_insert_with(|| Topic { newest: None, gone: false, followers: BTreeMap::new() });
        let told = topic.newest.as_ref().map(|newest| newest.revision).filter(|_| mutant!(JoinerKnowsAll));
        topic.followers.entry(follower).or_insert_with(|| Follower { caller: Arc::clone(caller), told });
    }

    /// `follower` does not follow the task any more.
    pub fn leave(&mut self, id: TaskId, follower: FollowerId) {
        if let Some(topic) = self.topics.get_mut(&id) {
            topic.followers.remove(&follower);
            if topic.followers.is_empty() && !mutant!(LeaverIsKept) {
                self.topics.remove(&id);
            }
        }
    }

    /// A reading of the store. Returns whether it is news to followers of the task.
    pub fn observe(&mut self, id: TaskId, seen: &Seen<P>) -> bool {
        let Some(topic) = self.topics.get_mut(&id) else { return false };
        if topic.gone {
            return false;
        }
        match seen {
            // A reading from before the task was stored says nothing of its end.
            Seen::Gone if topic.newest.is_none() || mutant!(GoneNotTold) => false,
            Seen::Gone => {
                topic.gone = true;
                true
            }
            Seen::Task(task) => {
                let news = topic.is_news(task);
                if news {
                    topic.newest = Some(Arc::clone(task));
                }
                news && !(mutant!(EndWakesNobody) && task.live().is_none())
            }
        }
    }

    /// What `follower` is owed of a task, and takes with this.
    pub fn next(&mut self, id: TaskId, follower: FollowerId) -> Owed<P> {
        let Some(topic) = self.topics.get_mut(&id) else { return Owed::Over };
        let Some(follower) = topic.followers.get_mut(&follower) else { return Owed::Over };
        let Some(newest) = &topic.newest else { return if topic.gone { Owed::Over } else { Owed::Nothing } };
        let ended = newest.live().is_none();
        let drops = !ended || mutant!(EndDroppedWithTask);
        if topic.gone && drops && !mutant!(GoneShownAlive) {
            return Owed::Over;
        }
        let is_told = |told| told >= newest.revision && !(mutant!(OlderStateShown) && told > newest.revision);
        if follower.told.is_some_and(is_told) {
            return if ended { Owed::Over } else { Owed::Nothing };
        }
        match access::check(newest, &follower.caller) {
            Ok(()) => {}
            Err(Denied::NotTheirs) if mutant!(FollowerNotChecked) => {}
            Err(Denied::LacksScope { .. }) if mutant!(FollowersScopeNotChecked) => {}
            Err(Denied::NotTheirs | Denied::LacksScope { .. }) => return Owed::Over,
        }
        if !(ended && mutant!(EndToldTwice)) {
            follower.told = Some(newest.revision);
        }
        Owed::Snapshot(Arc::clone(newest))
    }

    /// Somebody says that the task has this revision now. Returns whether the store has to be asked.
    pub fn is_behind(&self, id: TaskId, revision: Revision) -> bool {
        self.topics
            .get(&id)
            .is_some_and(|topic| !topic.gone && topic.newest.as_ref().is_none_or(|newest| newest.revision < revision))
    }

    /// The followed tasks of which the store has to be asked at every look. Those that may still change, unless they are
    /// `fed`: run on this node, which reads every change of theirs. And at `now`, the store's time, those whose time to live is
    /// over by what is known of them, whether they are gone or their end has raised it.
    pub fn open(&self, now: Millis, fed: impl Fn(TaskId) -> bool) -> impl Iterator<Item = TaskId> {
        let open = move |id: TaskId, topic: &Topic<P>| match &topic.newest {
            _ if topic.gone => false,
            Some(_) if mutant!(ToldIsNotAskedFor) => false,
            Some(newest) => {
                let over = !newest.is_visible(now) && !mutant!(FedIsNeverAsked);
                newest.live().is_some() && (over || !fed(id))
            }
            None => !fed(id),
        };
        self.topics.iter().filter(move |(id, topic)| open(**id, topic)).map(|(id, _)| *id)
    }

    /// How many tasks are followed.
    pub fn len(&self) -> usize {
        self.topics.len()
    }

    /// Whether nobody follows anything.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }
}

impl<P> Topic<P> {
    /// Whether nobody here has read anything as new.
    fn is_news(&self, task: &Task<P>) -> bool {
        let Some(newest) = &self.newest else { return true };
        if mutant!(OldestUnreadKept) && self.followers.values().any(|it| it.told < Some(newest.revision)) {
            return false;
        }
        if mutant!(FirstReadingStays) && self.followers.values().all(|it| it.told.is_none()) {
            return false;
        }
        newest.revision < task.revision || (mutant!(OlderStateShown) && newest.revision != task.revision)
    }
}

#[cfg(test)]
mod tests;
