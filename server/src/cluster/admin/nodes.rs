//! The nodes of the store, by name and by id.

use tokkuri_core::id::NodeId;
use tokkuri_core::store::NodeState;
use tokkuri_core::time::Millis;
use tonic::Status;

use super::convert::timestamp;
use crate::cluster::proto;
use crate::cluster::status::{Reason, bad_field, refuse, refuse_with, unavailable};
use crate::engine::Engine;

/// One reading of who is there.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) now: Millis,
    me: NodeId,
    states: Vec<NodeState>,
}

impl Nodes {
    pub(super) async fn read(engine: &Engine) -> Result<Self, Status> {
        let nodes = engine.nodes().await.map_err(|error| unavailable(&error))?;
        Ok(Self { now: nodes.now, me: engine.node(), states: nodes.read })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &NodeState> {
        self.states.iter()
    }

    /// Those whose lease holds.
    pub(super) fn alive(&self) -> impl Iterator<Item = &NodeState> {
        self.states.iter().filter(|state| self.is_alive(state))
    }

    pub(super) const fn me(&self) -> NodeId {
        self.me
    }

    pub(super) fn name(&self, id: NodeId) -> Option<&str> {
        self.states.iter().find(|state| state.node.id == id).map(|state| state.node.name.as_str())
    }

    pub(super) fn proto(&self, state: &NodeState) -> proto::Node {
        proto::Node {
            id: state.node.id.to_string(),
            name: state.node.name.to_string(),
            address: state.node.address.as_ref().map(ToString::to_string),
            version: state.node.version.to_string(),
            alive: self.is_alive(state),
            leased_until: Some(timestamp(state.leased_until)),
            runs: state.load.runs,
            queued: state.load.queued,
            drain: state.drain.map(timestamp),
            drained: state.is_drained(),
            answering: state.node.id == self.me,
        }
    }

    /// Every incarnation that a name or an id stands for: one for an id, whether it is known or not.
    pub(super) fn incarnations(&self, node: &str) -> Result<Vec<NodeId>, Status> {
        let named: Vec<NodeId> =
            self.states.iter().filter(|state| state.node.name == node).map(|state| state.node.id).collect();
        match (named.is_empty(), id(node)) {
            (false, _) => Ok(named),
            (true, Some(id)) => Ok(vec![id]),
            (true, None) => Err(self.unknown(node)),
        }
    }

    /// The one node that lives by this name or id.
    pub(super) fn living(&self, node: &str) -> Result<&NodeState, Status> {
        if node.is_empty() {
            return Err(bad_field("node", "give a node's name or id"));
        }
        let known: Vec<&NodeState> =
            self.states.iter().filter(|state| state.node.name == node || Some(state.node.id) == id(node)).collect();
        let alive: Vec<&NodeState> = known.iter().copied().filter(|state| self.is_alive(state)).collect();
        match (alive.as_slice(), known.is_empty()) {
            ([one], _) => Ok(one),
            ([], true) => Err(self.unknown(node)),
            ([], false) => {
                Err(refuse(Reason::NodeNotAlive, format!("the node {node:?} is not alive any more: its lease ran out")))
            }
            (several, _) => {
                let ids = several.iter().map(|state| state.node.id.to_string()).collect::<Vec<_>>().join(", ");
                Err(refuse_with(
                    Reason::NodeAmbiguous,
                    format!("several nodes that live are named {node:?}: give the id of one ({ids})"),
                    [("ids", ids.clone())],
                ))
            }
        }
    }

    fn unknown(&self, node: &str) -> Status {
        let node: String = node.chars().take(64).collect();
        let mut known: Vec<&str> = self.states.iter().map(|state| state.node.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        refuse_with(
            Reason::NoSuchNode,
            format!("there is no node {node:?}; there are: {known}"),
            [("node", node.clone()), ("known", known.clone())],
        )
    }

    fn is_alive(&self, state: &NodeState) -> bool {
        self.now < state.leased_until
    }
}

/// Drains a node, or takes it back.
pub(super) async fn drain(engine: &Engine, node: &str, deadline_ms: Option<u64>) -> Result<proto::Node, Status> {
    let id = Nodes::read(engine).await?.living(node)?.node.id;
    let known = engine.drain(id, deadline_ms).await.map_err(|error| unavailable(&error))?;
    let nodes = Nodes::read(engine).await?;
    let state = nodes.all().find(|state| state.node.id == id).filter(|_| known);
    match state {
        Some(state) => {
            let drains = deadline_ms.is_some();
            tracing::info!(node = %state.node.name, drains, deadline_ms, "an operator changed whether a node drains");
            Ok(nodes.proto(state))
        }
        None => Err(refuse(Reason::NodeNotAlive, format!("the node {node:?} is not alive any more"))),
    }
}

/// An id as it is written: 16 hexadecimal digits.
fn id(text: &str) -> Option<NodeId> {
    (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok().map(NodeId)).flatten()
}

#[cfg(test)]
mod tests {
    use tokkuri_core::store::{Load, Node};
    use tonic::Code;

    use super::*;

    fn state(id: u64, name: &str, until: u64) -> NodeState {
        let node = Node { id: NodeId(id), name: name.into(), address: None, version: "1".into() };
        NodeState { node, leased_until: Millis(until), load: Load::default(), drain: None }
    }

    fn nodes() -> Nodes {
        let states =
            vec![state(1, "a", 50), state(2, "a", 200), state(3, "b", 200), state(4, "b", 200), state(5, "c", 99)];
        Nodes { now: Millis(100), me: NodeId(2), states }
    }

    #[test]
    fn a_name_means_the_incarnation_that_lives() {
        let nodes = nodes();
        assert_eq!(nodes.living("a").unwrap().node.id, NodeId(2));
        assert_eq!(nodes.living("0000000000000003").unwrap().node.id, NodeId(3));
        for (node, code, says) in [
            ("b", Code::FailedPrecondition, "0000000000000003, 0000000000000004"),
            ("c", Code::FailedPrecondition, "its lease ran out"),
            ("0000000000000001", Code::FailedPrecondition, "its lease ran out"),
            ("d", Code::NotFound, "there are: a, b, c"),
            ("", Code::InvalidArgument, "give a node's name or id"),
        ] {
            let status = nodes.living(node).unwrap_err();
            assert_eq!(status.code(), code, "{node}");
            assert!(status.message().contains(says), "{}", status.message());
        }
    }

    #[test]
    fn a_name_means_all_its_incarnations_in_a_filter() {
        let nodes = nodes();
        assert_eq!(nodes.incarnations("a").unwrap(), [NodeId(1), NodeId(2)]);
        assert_eq!(nodes.incarnations("00000000000000ff").unwrap(), [NodeId(255)], "an id may be forgotten by now");
        assert_eq!(nodes.incarnations("d").unwrap_err().code(), Code::NotFound);
    }
}
