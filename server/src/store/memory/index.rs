//! What a table is asked by, in order: ids, ends of life, owners, nodes. Only keys live here; the rows are in the shards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use tokkuri_core::access::Owner;
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::store::Nodes;
use tokkuri_core::time::Millis;

use super::table::Stored;

const LAST_ID: TaskId = TaskId::from_bytes([0xff; 18]);

/// Ordered keys of every row, and the leases.
#[derive(Default)]
pub(super) struct Index {
    ids: BTreeSet<TaskId>,
    expiry: BTreeSet<(Millis, TaskId)>,
    /// Live rows only, by the end of their life: those that are over are told from the others without a walk over them all.
    owners: HashMap<Owner, BTreeSet<(Millis, TaskId)>>,
    nodes: BTreeMap<NodeId, OfNode>,
    /// The nodes and their leases.
    pub(super) leases: Nodes,
}

#[derive(Default)]
struct OfNode {
    live: BTreeSet<TaskId>,
    touched: BTreeSet<(Millis, TaskId)>,
}

impl Index {
    /// A row changed from `old` to `new`; `None` where there is none.
    pub(super) fn update(&mut self, old: Option<&Stored>, new: Option<&Stored>) {
        let id = |row: &Stored| row.task.id;
        let end = |row: &Stored| (row.task.expires(), row.task.id);
        let touch = |row: &Stored| (row.task.node, row.touched, row.task.id);
        let is_live = |row: &&Stored| row.task.live().is_some();
        let (old_live, new_live) = (old.filter(is_live), new.filter(is_live));

        if old.map(id) != new.map(id) {
            old.map(|old| self.ids.remove(&id(old)));
            new.map(|new| self.ids.insert(id(new)));
        }
        if old.map(end) != new.map(end) {
            old.map(|old| self.expiry.remove(&end(old)));
            new.map(|new| self.expiry.insert(end(new)));
        }
        if old_live.map(end) != new_live.map(end) {
            if let Some(old) = old_live {
                self.forget_owned(&old.task.origin.owner, end(old));
            }
            if let Some(new) = new_live {
                let owner = &new.task.origin.owner;
                // Looked up before it is inserted: most owners are known, and a key costs four strings.
                match self.owners.get_mut(owner) {
                    Some(owned) => owned.insert(end(new)),
                    None => self.owners.entry(owner.clone()).or_default().insert(end(new)),
                };
            }
        }
        if old.map(touch) != new.map(touch) || old_live.map(id) != new_live.map(id) {
            if let Some(old) = old {
                self.forget_of_node(touch(old));
            }
            if let Some(new) = new {
                let of_node = self.nodes.entry(new.task.node).or_default();
                of_node.touched.insert((new.touched, id(new)));
                if is_live(&new) {
                    of_node.live.insert(id(new));
                }
            }
        }
    }

    fn forget_owned(&mut self, owner: &Owner, key: (Millis, TaskId)) {
        if let Some(owned) = self.owners.get_mut(owner) {
            owned.remove(&key);
            if owned.is_empty() {
                self.owners.remove(owner);
            }
        }
    }

    fn forget_of_node(&mut self, (node, touched, id): (NodeId, Millis, TaskId)) {
        if let Some(of_node) = self.nodes.get_mut(&node) {
            of_node.touched.remove(&(touched, id));
            of_node.live.remove(&id);
            if of_node.touched.is_empty() {
                self.nodes.remove(&node);
            }
        }
    }

    /// How many rows there are, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// How many live tasks an owner has at `now`. Costs the number of those that are over and not removed yet.
    pub(super) fn live(&self, owner: &Owner, now: Millis) -> usize {
        self.owners.get(owner).map_or(0, |owned| owned.len() - owned.range(..=(now, LAST_ID)).count())
    }

    /// Rows whose life is over at `now`, oldest first.
    pub(super) fn due(&self, now: Millis) -> impl Iterator<Item = TaskId> {
        self.expiry.range(..=(now, LAST_ID)).map(|(_, id)| *id)
    }

    /// For each node that holds no lease at `now`, its live tasks in the order of their ids.
    pub(super) fn orphans(&self, now: Millis) -> impl Iterator<Item = impl Iterator<Item = TaskId>> {
        let lost = move |node: &NodeId| !self.leases.holds_lease(now, *node);
        self.nodes.iter().filter(move |(node, _)| lost(node)).map(|(_, of_node)| of_node.live.iter().copied())
    }

    /// A node's rows that were stored at or after `since`, in the order in which they were.
    pub(super) fn touched(&self, node: NodeId, since: Millis) -> impl Iterator<Item = TaskId> {
        let first = (since, TaskId::from_bytes([0; 18]));
        self.nodes.get(&node).into_iter().flat_map(move |of_node| of_node.touched.range(first..).map(|(_, id)| *id))
    }

    /// Ids after this one.
    pub(super) fn after(&self, after: Option<TaskId>) -> impl Iterator<Item = TaskId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.ids.range((from, Bound::Unbounded)).copied()
    }
}
