//! The nodes that share a store: who they are, until when they are thought alive, and whether they drain.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Text;
use crate::id::NodeId;
use crate::time::Millis;

/// How long a node whose lease ran out is still listed, in milliseconds. Then it is forgotten.
pub const REMEMBERED_MS: u64 = 3_600_000;

/// A node, as it joins: one incarnation of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The incarnation: drawn anew at every start of the process, and whenever a lease was lost.
    pub id: NodeId,
    /// What operators call it; the same after a restart.
    pub name: Text,
    /// Where other nodes reach it (gRPC, `host:port`); `None` if they cannot.
    pub address: Option<Text>,
    /// The version of the program.
    pub version: Text,
}

/// How much a node has to do, as it said when it last renewed its lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Load {
    /// Runs that are alive.
    pub runs: u32,
    /// Tasks that wait for a place to run.
    pub queued: u32,
    /// The [drain](NodeState::drain) that it knew of: it takes nothing new since. [`Lease::due`](crate::lease::Lease::due) adds
    /// this to what it is given.
    pub heeds: Option<Millis>,
}

/// A node, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeState {
    /// Who it is.
    pub node: Node,
    /// Until when its lease holds. From this moment on its live tasks are orphans.
    pub leased_until: Millis,
    /// What it said last.
    pub load: Load,
    /// The node is to take nothing new; from this moment on it hands its restartable tasks over. `None` if it does not drain.
    pub drain: Option<Millis>,
}

impl NodeState {
    /// Whether its lease holds at `now`.
    pub fn is_alive(&self, now: Millis) -> bool {
        now < self.leased_until
    }

    /// Whether it drains and has nothing left to do: it can be stopped, and nothing is lost. That it has nothing to do is worth
    /// something only if it knew by then that it takes nothing new.
    pub fn is_drained(&self) -> bool {
        let Load { runs, queued, heeds } = self.load;
        self.drain.is_some() && (heeds == self.drain || mutant!(DrainedUnheard)) && runs == 0 && queued == 0
    }

    /// Whether the store still knows of it at `now`.
    pub fn is_remembered(&self, now: Millis) -> bool {
        now < self.leased_until.after(REMEMBERED_MS)
    }
}

/// Every node that a store remembers, and the rules of their leases: the part of the protocol that is about nodes, for stores
/// that keep it in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nodes(BTreeMap<NodeId, NodeState>);

impl Nodes {
    /// [`Request::Join`](super::Request::Join); `None` if the node's lease ran out.
    pub fn join(&mut self, now: Millis, node: Node, lease_ms: u64) -> Option<&NodeState> {
        self.0.retain(|_, state| state.is_remembered(now));
        match self.0.entry(node.id) {
            Entry::Occupied(state) => extend(state.into_mut(), now, lease_ms).map(|state| &*state),
            Entry::Vacant(place) => {
                let leased_until = now.after(lease_ms);
                Some(place.insert(NodeState { node, leased_until, load: Load::default(), drain: None }))
            }
        }
    }

    /// [`Request::Renew`](super::Request::Renew); `None` if the node's lease ran out, or it is unknown.
    pub fn renew(&mut self, now: Millis, node: NodeId, load: Load, lease_ms: u64) -> Option<&NodeState> {
        let state = extend(self.0.get_mut(&node)?, now, lease_ms)?;
        state.load = load;
        Some(state)
    }

    /// [`Request::Resign`](super::Request::Resign).
    pub fn resign(&mut self, node: NodeId) {
        self.0.remove(&node);
    }

    /// [`Request::Drain`](super::Request::Drain): whether the node is known and alive.
    pub fn drain(&mut self, now: Millis, node: NodeId, drain: Option<u64>) -> bool {
        match self.0.get_mut(&node).filter(|state| state.is_alive(now)) {
            Some(state) => {
                state.drain = drain.map(|ms| now.after(ms));
                true
            }
            None => false,
        }
    }

    /// [`Request::Nodes`](super::Request::Nodes).
    pub fn list(&self, now: Millis) -> Vec<NodeState> {
        self.0.values().filter(|state| state.is_remembered(now)).cloned().collect()
    }

    /// One node, as it is remembered.
    pub fn get(&self, node: NodeId) -> Option<&NodeState> {
        self.0.get(&node)
    }

    /// Whether the node's lease holds.
    pub fn holds_lease(&self, now: Millis, node: NodeId) -> bool {
        let now = if mutant!(LeaseOrphansTheLiving) { now.after(10_000) } else { now };
        self.0.get(&node).is_some_and(|state| state.is_alive(now))
    }
}

/// A lease that ran out is never revived: others may have taken the node's tasks over.
fn extend(state: &mut NodeState, now: Millis, lease_ms: u64) -> Option<&mut NodeState> {
    if !state.is_alive(now) && !mutant!(LostLeaseRevived) {
        return None;
    }
    state.leased_until = now.after(lease_ms);
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Millis = Millis(1_000_000);

    fn node(id: u64) -> Node {
        Node { id: NodeId(id), name: "a".into(), address: None, version: "1".into() }
    }

    fn told(state: Option<&NodeState>) -> Option<(Millis, Option<Millis>)> {
        state.map(|state| (state.leased_until, state.drain))
    }

    #[test]
    fn a_lease_that_ran_out_is_never_revived() {
        let mut nodes = Nodes::default();
        let until = T0.after(10);
        assert_eq!(told(nodes.join(T0, node(1), 10)), Some((until, None)));
        assert!(nodes.holds_lease(until.before(1), NodeId(1)));
        for now in [until, until.after(5)] {
            assert!(!nodes.holds_lease(now, NodeId(1)));
            assert_eq!(nodes.renew(now, NodeId(1), Load::default(), 10), None);
            assert_eq!(nodes.join(now, node(1), 10), None);
            assert!(!nodes.drain(now, NodeId(1), Some(0)));
        }
        assert_eq!(nodes.list(until.after(REMEMBERED_MS - 1)).len(), 1);
        assert!(nodes.list(until.after(REMEMBERED_MS)).is_empty());
    }

    #[test]
    fn a_drain_is_told_with_every_renewal_until_it_is_taken_back() {
        let mut nodes = Nodes::default();
        nodes.join(T0, node(1), 10);
        assert!(nodes.drain(T0, NodeId(1), Some(3)));
        let load = Load { runs: 1, queued: 2, heeds: None };
        let drain = Some(T0.after(3));
        assert_eq!(told(nodes.renew(T0.after(1), NodeId(1), load, 10)), Some((T0.after(11), drain)));
        assert_eq!(told(nodes.join(T0.after(2), node(1), 10)), Some((T0.after(12), drain)));
        assert_eq!(nodes.list(T0)[0].load, load);
        assert!(nodes.drain(T0, NodeId(1), None));
        assert_eq!(told(nodes.renew(T0, NodeId(1), load, 10)), Some((T0.after(10), None)));
        assert!(!nodes.drain(T0, NodeId(2), None));
    }

    #[test]
    fn a_node_is_drained_when_it_has_nothing_to_do_and_knew_by_then_that_it_drains() {
        let mut nodes = Nodes::default();
        nodes.join(T0, node(1), 10);
        let (first, second) = (Some(T0.after(3)), Some(T0.after(4)));
        let mut after = |drain: Option<u64>, load: Load| {
            nodes.drain(T0, NodeId(1), drain);
            nodes.renew(T0, NodeId(1), load, 10).unwrap().is_drained()
        };
        let idle = |heeds| Load { heeds, ..Load::default() };
        assert!(!after(None, idle(None)), "it does not drain");
        assert!(!after(Some(3), idle(None)), "it may have taken something up since");
        assert!(!after(Some(3), Load { runs: 1, ..idle(first) }));
        assert!(!after(Some(3), Load { queued: 1, ..idle(first) }));
        assert!(after(Some(3), idle(first)));
        assert!(!after(Some(4), idle(first)), "it was taken back in between");
        assert!(after(Some(4), idle(second)));
        assert!(!after(None, idle(second)));
    }
}
