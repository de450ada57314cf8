//! What this node tells the others: a table of them, and for each a queue and a connection.
//!
//! A signal that finds the node idle goes out at once; those that come while a call is under way go together with the next one.
//! So a batch costs no waiting, and a busy node makes fewer calls. A signal for a task's run goes to one node. A change goes to
//! every live node, since nobody knows who follows what: with `n` nodes each change costs `n - 1` entries in queues here, and a
//! look into a table there. Both carry a name and a number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokkuri_core::id::{NodeId, Revision, TaskId};
use tokkuri_core::store::NodeState;
use tokkuri_core::time::Millis;
use tonic::Code;

use super::changes::Changes;
use super::connect::{Credentials, Shown};
use super::outbox::{For, Outbox, Waiting};
use super::peer::MAX_BATCH;
use super::proto::peer_client::PeerClient;
use super::proto::{Signal, SignalRequest, signal::Kind};
use crate::engine::{Engine, Peers};
use crate::telemetry::Meters;

/// How long a node may take to take a batch.
const DEADLINE: Duration = Duration::from_secs(1);

/// How many tasks of each kind wait for one node.
const WAITING: usize = 4096;

/// How many signals wait for nodes that are not known yet.
const UNKNOWN: usize = 1024;

/// The least time between two looks at who is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long a node that does not answer is left alone: at first, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The other nodes, as this one tells them of changes.
#[derive(Debug)]
pub(super) struct Signals {
    credentials: Credentials,
    /// Whether anything is told to anybody.
    sends: bool,
    /// Those that live and can be reached, but this one.
    neighbours: RwLock<Arc<Neighbours>>,
    /// Signals for nodes that were not in the table.
    unknown: Mutex<Vec<(NodeId, Waiting)>>,
    look: Notify,
    changes: Arc<Changes>,
    meters: Arc<Meters>,
}

type Neighbours = BTreeMap<NodeId, Arc<Neighbour>>;

/// One other node. Dropping it ends the delivery.
#[derive(Debug)]
struct Neighbour {
    address: String,
    queue: Arc<Queue>,
    delivery: JoinHandle<()>,
    meters: Arc<Meters>,
}

/// What waits for one node.
#[derive(Debug)]
struct Queue {
    outbox: Mutex<Outbox>,
    wake: Notify,
}

impl Signals {
    pub(super) fn new(credentials: Credentials, sends: bool, meters: Arc<Meters>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            sends,
            neighbours: RwLock::default(),
            unknown: Mutex::default(),
            look: Notify::new(),
            changes: Arc::default(),
            meters,
        })
    }

    /// Who watches all tasks.
    pub(super) const fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Looks now and then who is there, and at once when a signal is for somebody new. Until dropped.
    pub(super) async fn look(&self, engine: &Arc<Engine>) {
        if !self.sends {
            return std::future::pending().await;
        }
        let every = Duration::from_millis(engine.settings().poll_interval_ms.clamp(100, 5_000));
        loop {
            match engine.nodes().await {
                Ok(nodes) => {
                    self.know(nodes.now, engine.node(), nodes.read);
                    self.place_unknown();
                }
                Err(error) => tracing::debug!(%error, "the store does not say which nodes there are"),
            }
            // A signal for a node that is gone for good must not become a question to the store each time.
            tokio::time::sleep(LOOK_AGAIN).await;
            let _ = tokio::time::timeout(every, self.look.notified()).await;
        }
    }

    /// Takes over who is there.
    fn know(&self, now: Millis, me: NodeId, nodes: Vec<NodeState>) {
        let old = self.neighbours();
        let mut new = Neighbours::new();
        for state in nodes.into_iter().filter(|state| state.node.id != me && now < state.leased_until) {
            let Some(address) = state.node.address else { continue };
            let known = old.get(&state.node.id).filter(|known| known.address == *address);
            let neighbour = match known {
                Some(known) => Arc::clone(known),
                None => match self.credentials.channel(&address) {
                    Ok(channel) => Neighbour::new(&address, channel, &self.credentials, &self.meters),
                    Err(error) => {
                        tracing::warn!(node = %state.node.name, %error, "the node cannot be told of changes");
                        continue;
                    }
                },
            };
            new.insert(state.node.id, neighbour);
        }
        *self.neighbours.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
    }

    /// Signals for nodes that were unknown go out, or are lost.
    fn place_unknown(&self) {
        let waiting = std::mem::take(&mut *lock(&self.unknown));
        let neighbours = self.neighbours();
        for (node, signal) in waiting {
            match neighbours.get(&node) {
                Some(neighbour) => neighbour.push(signal),
                None => lost(&self.meters, 1),
            }
        }
    }

    fn neighbours(&self) -> Arc<Neighbours> {
        Arc::clone(&self.neighbours.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Peers for Signals {
    fn signal(&self, node: NodeId, id: TaskId, revision: Revision) {
        // Nobody is nowhere: its tasks are found by whoever sweeps next.
        if !self.sends || node == NodeId::NOBODY {
            return;
        }
        let signal = Waiting { id, revision, to: For::Run };
        if let Some(neighbour) = self.neighbours().get(&node) {
            return neighbour.push(signal);
        }
        let mut unknown = lock(&self.unknown);
        if unknown.len() >= UNKNOWN {
            return lost(&self.meters, 1);
        }
        unknown.push((node, signal));
        drop(unknown);
        self.look.notify_one();
    }

    fn publish(&self, id: TaskId, revision: Revision) {
        self.changes.offer(id, Some(revision));
        for neighbour in self.neighbours().values() {
            neighbour.push(Waiting { id, revision, to: For::Followers });
        }
    }

    fn heard(&self, id: TaskId, revision: Option<Revision>) {
        self.changes.offer(id, revision);
    }
}

impl Neighbour {
    fn new(address: &str, channel: Shown, credentials: &Credentials, meters: &Arc<Meters>) -> Arc<Self> {
        let queue = Arc::new(Queue { outbox: Mutex::new(Outbox::new(WAITING)), wake: Notify::new() });
        let delivery = Delivery {
            address: address.to_owned(),
            credentials: credentials.clone(),
            client: PeerClient::new(channel),
            queue: Arc::clone(&queue),
            meters: Arc::clone(meters),
        };
        Arc::new(Self {
            address: address.to_owned(),
            queue,
            delivery: tokio::spawn(delivery.run()),
            meters: Arc::clone(meters),
        })
    }

    fn push(&self, signal: Waiting) {
        match lock(&self.queue.outbox).push(signal) {
            true => self.queue.wake.notify_one(),
            false => lost(&self.meters, 1),
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.delivery.abort();
        lost(&self.meters, lock(&self.queue.outbox).clear());
    }
}

/// Sends what waits, one batch after the other, for as long as the node is there.
struct Delivery {
    address: String,
    credentials: Credentials,
    client: PeerClient<Shown>,
    queue: Arc<Queue>,
    meters: Arc<Meters>,
}

impl Delivery {
    async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let batch = lock(&self.queue.outbox).take(MAX_BATCH);
            if batch.is_empty() {
                self.queue.wake.notified().await;
                continue;
            }
            match self.send(&batch).await {
                Ok(()) => {
                    failures = 0;
                    self.meters.signals.sent.increment(batch.len() as u64);
                }
                Err(why) => {
                    lost(&self.meters, batch.len());
                    if failures == 0 {
                        let node = &self.address;
                        tracing::info!(node, %why, "a node does not take signals; it finds out by itself");
                    }
                    tokio::time::sleep((BACK_OFF.0 * 2_u32.saturating_pow(failures)).min(BACK_OFF.1)).await;
                    failures = failures.saturating_add(1).min(16);
                }
            }
        }
    }

    async fn send(&mut self, batch: &[Waiting]) -> Result<(), String> {
        let signals: Vec<Signal> = batch.iter().map(signal).collect();
        let mut again = true;
        loop {
            let call = self.client.signal(SignalRequest { signals: signals.clone() });
            match tokio::time::timeout(DEADLINE, call).await {
                Ok(Ok(_)) => return Ok(()),
                // A connection that ended while it was idle is noticed by the first call on it.
                Ok(Err(status)) if again && status.code() == Code::Unavailable => again = false,
                Ok(Err(status)) => return Err(format!("{}: {}", status.code(), status.message())),
                Err(_) => {
                    // The connection may lead nowhere without knowing it. A new one finds the way back first.
                    if let Ok(channel) = self.credentials.channel(&self.address) {
                        self.client = PeerClient::new(channel);
                    }
                    return Err(format!("no answer within {} ms", DEADLINE.as_millis()));
                }
            }
        }
    }
}

fn signal(waiting: &Waiting) -> Signal {
    let kind = match waiting.to {
        For::Run => Kind::Run,
        For::Followers => Kind::Change,
    };
    Signal { task_id: waiting.id.to_string(), revision: waiting.revision.0, kind: kind.into() }
}

/// Signals are given up: no room, no such node, no answer in time.
fn lost(meters: &Meters, signals: usize) {
    meters.signals.lost.increment(signals as u64);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
