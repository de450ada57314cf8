//! The reference store: the protocol in its plainest form, a value that can be cloned, hashed and compared.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::id::TaskId;
use crate::payload::Payload;
use crate::store::{Answer, Nodes, Outcome, Request, Row};
use crate::task::Task;
use crate::time::Millis;

/// Tasks in a map. Its time is an argument, and every request walks all rows: for tests, models and small embeddings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shelf<P> {
    rows: BTreeMap<TaskId, Arc<Task<P>>>,
    /// When each row was stored.
    touched: BTreeMap<TaskId, Millis>,
    nodes: Nodes,
}

impl<P> Default for Shelf<P> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), touched: BTreeMap::new(), nodes: Nodes::default() }
    }
}

impl<P: Payload> Shelf<P> {
    /// Carries out one request at `now`.
    pub fn carry_out(&mut self, now: Millis, request: Request<P>) -> Answer<P> {
        Answer { now, outcome: self.outcome(now, request) }
    }

    /// Every row, expired ones included.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Task<P>>> {
        self.rows.values()
    }

    /// A row that is visible at `now`.
    pub fn row(&self, now: Millis, id: TaskId) -> Option<&Arc<Task<P>>> {
        self.rows.get(&id).filter(|task| task.is_visible(now))
    }

    /// The nodes.
    pub const fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    fn visible(&self, now: Millis) -> impl Iterator<Item = &Arc<Task<P>>> {
        self.rows.values().filter(move |task| task.is_visible(now))
    }

    fn outcome(&mut self, now: Millis, request: Request<P>) -> Outcome<P> {
        match request {
            Request::Load { id } => Outcome::Loaded(self.row(now, id).cloned()),
            Request::Insert { draft, limit } => {
                if self.rows.contains_key(&draft.id) {
                    return Outcome::Exists;
                }
                let task = Arc::new(draft.created(now));
                if limit.is_some_and(|limit| self.live(now, &task) >= limit as usize) {
                    return Outcome::AtTheLimit;
                }
                self.put(now, Arc::clone(&task));
                Outcome::Inserted(task)
            }
            Request::Commit { expected, task } => match self.row(now, task.id) {
                Some(row) if row.revision == expected || mutant!(RevisionNotCompared) => {
                    self.put(now, task);
                    Outcome::Committed
                }
                Some(_) | None => Outcome::Conflict,
            },
            Request::Count { owner } => {
                let live = self.visible(now).filter(|task| task.live().is_some() && task.origin.owner == owner).count();
                Outcome::Live(u32::try_from(live).unwrap_or(u32::MAX))
            }
            Request::Due { limit } => {
                let over =
                    |task: &Task<P>| !task.is_visible(now) || (mutant!(RemovesTheEnded) && task.live().is_none());
                let mut due: alloc::vec::Vec<_> = self.rows.values().filter(|task| over(task)).collect();
                due.sort_by_key(|task| (task.expires(), task.id));
                Outcome::Due(due.into_iter().take(limit as usize).map(|task| Row::from(&**task)).collect())
            }
            Request::Remove { mut rows } => {
                rows.retain(|(id, revision)| {
                    let early = |task: &Task<P>| task.is_visible(now) && !mutant!(RemovesTheEnded);
                    self.rows.get(id).is_some_and(|task| task.revision == *revision && !early(task))
                });
                for (id, _) in &rows {
                    self.rows.remove(id);
                    self.touched.remove(id);
                }
                Outcome::Removed(rows.into_iter().map(|(id, _)| id).collect())
            }
            Request::Orphans { limit } => {
                let lost = |task: &&Arc<Task<P>>| task.live().is_some() && !self.nodes.holds_lease(now, task.node);
                Outcome::Orphans(self.visible(now).filter(lost).take(limit as usize).cloned().collect())
            }
            Request::TouchedSince { node, since } => {
                let touched =
                    self.visible(now).filter(|task| task.node == node && self.touched.get(&task.id) >= Some(&since));
                Outcome::Touched(touched.map(|task| (task.id, task.revision)).collect())
            }
            Request::Page { filter, after, limit } => {
                let mut rows = self
                    .visible(now)
                    .filter(|task| after.is_none_or(|after| task.id > after) && filter.admits(task))
                    .cloned();
                let page = rows.by_ref().take(limit as usize).collect();
                Outcome::Page(page, rows.next().is_some())
            }
            Request::Join { node, lease_ms } => Outcome::leased(self.nodes.join(now, *node, lease_ms)),
            Request::Renew { node, load, lease_ms } => Outcome::leased(self.nodes.renew(now, node, load, lease_ms)),
            Request::Resign { node } => {
                self.nodes.resign(node);
                Outcome::Released
            }
            Request::Nodes => Outcome::Nodes(self.nodes.list(now)),
            Request::Drain { node, drain } => Outcome::Drained(self.nodes.drain(now, node, drain)),
        }
    }

    fn live(&self, now: Millis, like: &Task<P>) -> usize {
        let same = |task: &&Arc<Task<P>>| {
            (task.live().is_some() || mutant!(EndedHoldsPlace)) && task.origin.owner == like.origin.owner
        };
        let now = if mutant!(ExpiredHoldsPlace) { Millis(0) } else { now };
        self.visible(now).filter(same).count()
    }

    fn put(&mut self, now: Millis, task: Arc<Task<P>>) {
        self.touched.insert(task.id, now);
        self.rows.insert(task.id, task);
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use super::*;
    use crate::id::Revision;
    use crate::task::Command;
    use crate::task::samples::{T0, draft};

    #[test]
    fn a_commit_by_a_writer_that_slept_is_touched_when_it_is_stored() {
        let mut shelf = Shelf::default();
        let Outcome::Inserted(task) =
            shelf.carry_out(T0, Request::Insert { draft: Box::new(draft(1)), limit: None }).outcome
        else {
            panic!("there was room");
        };
        let mut next = Task::clone(&task);
        next.apply(T0.after(1), Command::Cancel, &mut Vec::new()).unwrap();
        let commit = Request::Commit { expected: Revision::FIRST, task: Arc::new(next) };
        assert_eq!(shelf.carry_out(T0.after(50), commit).outcome, Outcome::Committed);
        let look = Request::TouchedSince { node: task.node, since: T0.after(40) };
        let touched = Outcome::Touched(alloc::vec![(task.id, Revision::FIRST.next())]);
        assert_eq!(shelf.carry_out(T0.after(60), look).outcome, touched);
    }
}
