//! What nodes do by themselves: take in messages, look at the store, keep their lease, and die.

use tokkuri_core::host::{Host, Watch};
use tokkuri_core::id::{NodeId, TaskId};
use tokkuri_core::procedure::Seen;
use tokkuri_core::run::Stop;
use tokkuri_core::store::{self, Outcome, Request};
use tokkuri_core::time::Millis;

use super::moves::How;
use super::{LEASE_MS, Mail, Node, Tool, World};

impl World {
    pub(super) fn deliver(&mut self, at: usize, how: How) {
        let mail = self.mail[at].clone();
        // A procedure's own starts are no messages: the node carries them out, once.
        let is_start = matches!(mail, Mail::Start { .. });
        if is_start || how != How::Twice {
            self.mail.swap_remove(at);
        }
        match mail {
            Mail::Start { node, incarnation, task } => {
                if self.nodes[node].id == incarnation && self.nodes[node].host.start(&task) {
                    let tool = Tool { node, incarnation, id: task.id, attempt: task.attempt };
                    self.spawn(tool);
                }
            }
            _ if how == How::Never => {}
            Mail::Seen { node, id, seen } => {
                self.nodes[node].host.observe(id, &seen);
            }
            Mail::Signal { node, id, revision } => {
                if revision.is_none_or(|revision| self.nodes[node].host.is_behind(id, revision)) {
                    self.load(node, id);
                }
            }
        }
    }

    /// The node reads the task; what it read arrives some time later.
    fn load(&mut self, node: usize, id: TaskId) {
        if let Outcome::Loaded(task) = self.carry_out(None, Request::Load { id }).outcome {
            self.mail.push(Mail::Seen { node, id, seen: task.map_or(Seen::Gone, Seen::Task) });
        }
    }

    pub(super) fn look(&mut self, node: usize) {
        let request = self.nodes[node].watch.request();
        let Outcome::Touched(touched) = self.carry_out(None, request).outcome else { panic!("it was asked for that") };
        for (id, revision) in touched {
            if self.nodes[node].host.is_behind(id, revision)
                && let Outcome::Loaded(task) = self.carry_out(None, Request::Load { id }).outcome
            {
                self.reach("a look brought news");
                self.nodes[node].host.observe(id, &task.map_or(Seen::Gone, Seen::Task));
            }
        }
        let now = self.now;
        self.nodes[node].watch.answered(now);
        self.nodes[node].host.clock(now);
    }

    /// A node whose lease ran out stops everything and starts again as another: its tasks may be somebody else's by now.
    pub(super) fn renew(&mut self, node: usize) {
        if self.now < self.nodes[node].leased {
            self.lease(node);
        } else {
            self.reach("a lease was lost");
            self.nodes[node].host.halt(Stop::LeaseLost);
            self.reincarnate(node);
        }
    }

    pub(super) fn wait(&mut self, ms: u64, asleep: Option<usize>) {
        let until = self.now.after(ms);
        while self.now < until {
            self.now = until.min(self.now.after(LEASE_MS / 2));
            for node in 0..2 {
                if Some(node) != asleep && self.now < self.nodes[node].leased {
                    self.lease(node);
                }
            }
        }
    }

    pub(super) fn lease(&mut self, node: usize) {
        let request = Request::Join { node: Box::new(joining(self.nodes[node].id)), lease_ms: LEASE_MS };
        let Outcome::Leased { until, .. } = self.carry_out(None, request).outcome else {
            panic!("it was asked for in time")
        };
        self.nodes[node].leased = until;
    }

    /// Everything in the node's memory is gone.
    pub(super) fn crash(&mut self, node: usize) {
        self.reach("a node crashed");
        self.flights.retain(|flight| flight.node != node);
        self.runs.retain(|tool| tool.node != node);
        self.mail.retain(|mail| match mail {
            Mail::Start { node: to, .. } | Mail::Seen { node: to, .. } | Mail::Signal { node: to, .. } => *to != node,
        });
        self.reincarnate(node);
    }

    fn reincarnate(&mut self, node: usize) {
        self.incarnations += 1;
        let id = NodeId(self.incarnations);
        self.nodes[node] = Node { id, host: Host::new(id), watch: Watch::new(id), leased: Millis(0) };
        self.lease(node);
    }

    fn spawn(&mut self, tool: Tool) {
        assert!(self.spawned.insert((tool.id, tool.attempt)), "one_live_attempt: {tool:?} is run a second time");
        self.runs.push(tool);
    }

    /// The tool has returned.
    pub(super) fn leave(&mut self, tool: Tool) {
        self.runs.retain(|it| *it != tool);
        if self.nodes[tool.node].id == tool.incarnation {
            self.nodes[tool.node].host.release(tool.id, tool.attempt);
        }
    }

    /// What the tool is told if it asks whether to stop.
    pub(crate) fn stop_of(&mut self, tool: Tool) -> Option<Stop> {
        let node = &mut self.nodes[tool.node];
        if node.id != tool.incarnation {
            return Some(Stop::LeaseLost);
        }
        node.host.run_of(tool.id, tool.attempt).map_or(Some(Stop::Lost), |run| run.stop())
    }

    /// Tools that are told to stop do so.
    pub(crate) fn stop_what_has_to_stop(&mut self) {
        for tool in self.runs.clone() {
            if self.stop_of(tool).is_some() {
                self.leave(tool);
            }
        }
    }
}

/// What the store is told of a node.
fn joining(id: NodeId) -> store::Node {
    store::Node { id, name: "node".into(), address: None, version: "1".into() }
}
