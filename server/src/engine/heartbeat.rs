//! Keeps the node's lease. What is decided, core's [`Lease`](tokkuri_core::lease::Lease) decides; here it is driven: asked when it
//! wants to be, told what the store answers, and obeyed when it says that everything has to stop.
//!
//! It goes on beside the node's other duties, so that a long sweep, or a look at a store that does not answer, cannot keep the node
//! from its renewal or from its deadline.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokkuri_core::Text;
use tokkuri_core::id::NodeId;
use tokkuri_core::lease::{Draining, Due, Lease, Sent};
use tokkuri_core::run::Stop;
use tokkuri_core::store::{Answer, Load, Request};
use tokkuri_core::wire::Json;

use crate::engine::Engine;

/// How many renewals may be under way: a store that answers none of them is asked no more until the oldest is over.
const UNDER_WAY: usize = 4;

/// How long to wait for random bits that the operating system did not give.
const NO_BITS: Duration = Duration::from_millis(500);

/// Why a node takes no new tasks now. Another node may, and so may this one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// It drains, or shuts down.
    #[error("This server takes no new tasks at the moment: it is about to stop. Try again.")]
    Draining,
    /// It holds no lease: it has just started, or cannot reach the store.
    #[error("This server takes no new tasks at the moment: it has no part in its cluster. Try again.")]
    NoLease,
}

impl Engine {
    /// What operators call the node, and where other nodes reach it (gRPC, `host:port`). To be said before the node begins.
    pub fn identify(&self, name: impl Into<Text>, address: Option<Text>) {
        self.lease().identify(name.into(), address);
    }

    /// Whether the node may trust its lease: whether the others think it alive.
    pub fn lease_held(&self) -> bool {
        self.lease().holds(self.uptime())
    }

    /// Whether the node was told to drain, or shuts down. It takes no new tasks then, and none over.
    pub fn is_draining(&self) -> bool {
        self.stopping.is_cancelled() || self.lease().draining(self.uptime()) != Draining::No
    }

    /// Why the node takes no new tasks now, if it does not. Calls that run in the request are taken all the same: they end with
    /// their requests, which whoever drains a node waits for, while a task would outlive it.
    pub fn closed(&self) -> Option<Closed> {
        if self.is_draining() {
            return Some(Closed::Draining);
        }
        (!self.lease_held()).then_some(Closed::NoLease)
    }

    /// Whether the node may take tasks over now.
    pub(super) fn sweeps(&self) -> bool {
        !self.stopping.is_cancelled() && self.lease().takes_up(self.uptime())
    }

    pub(super) fn lease(&self) -> std::sync::MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lease, until dropped.
    pub(super) async fn keep_lease(self: Arc<Self>) {
        let mut asked = FuturesUnordered::new();
        let mut told = Draining::No;
        loop {
            let (now, load) = (self.uptime(), self.load());
            let due = self.lease().due(now, load);
            match due {
                Due::Ask(request, sent) if asked.len() < UNDER_WAY => asked.push(self.send(*request, sent)),
                Due::Ask(..) => {}
                Due::Lost if self.begin_again() => told = Draining::No,
                Due::Lost => tokio::time::sleep(NO_BITS).await,
                Due::At(moment) => {
                    let next = Duration::from_millis(moment.since(now).clamp(1, 3_600_000));
                    tokio::select! {
                        Some((sent, answer)) = asked.next() => self.lease().answered(self.uptime(), sent, &answer),
                        () = tokio::time::sleep(next) => {}
                    }
                }
            }
            let draining = self.lease().draining(self.uptime());
            if draining != told {
                told = draining;
                self.heed(draining);
            }
            self.beaten.notify_waiters();
        }
    }

    /// Over once the node holds its lease, or `patience` is over.
    pub(super) async fn joined(&self, patience: Duration) {
        let joined = async {
            loop {
                let mut beaten = std::pin::pin!(self.beaten.notified());
                // From here on no beat is missed.
                beaten.as_mut().enable();
                if self.lease_held() {
                    break;
                }
                beaten.await;
            }
        };
        if tokio::time::timeout(patience, joined).await.is_err() {
            tracing::warn!("the node could not join: the store does not answer; it takes no tasks until it does");
        }
    }

    fn send(
        self: &Arc<Self>,
        request: Request<Json>,
        sent: Sent,
    ) -> impl Future<Output = (Sent, Answer<Json>)> + Send + use<> {
        let engine = Arc::clone(self);
        async move { (sent, engine.ask(request).await) }
    }

    fn load(&self) -> Load {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        // A task that is just being stored is in the table, and nothing of it is alive yet.
        let queued = self.queued();
        let runs = self.alive().max(self.registry.len().saturating_sub(queued));
        Load { runs: count(runs), queued: count(queued), heeds: None }
    }

    /// The lease is lost: every run stops, and the node goes on as another. False if there are no random bits to name it.
    fn begin_again(&self) -> bool {
        let Ok(bits) = getrandom::u64() else {
            self.registry.halt(Stop::LeaseLost);
            return false;
        };
        let id = NodeId::drawn(bits);
        // Everything stops under the old name before anything begins under the new one.
        let stopped = self.registry.rejoin(id);
        self.lease().begin_again(id);
        self.meters.lease_losses.increment(1);
        tracing::warn!(stopped, node = %id, "the node's lease is lost: its runs are stopped, others take its tasks over");
        true
    }

    fn heed(&self, draining: Draining) {
        let stopped = self.registry.drain(draining);
        match draining {
            Draining::No => tracing::info!("the node takes tasks again"),
            Draining::Waits => {
                tracing::info!(stopped, "the node drains: it takes no tasks, and those that wait go elsewhere")
            }
            Draining::HandsOver => {
                tracing::info!(stopped, "the time to drain is over: what can run elsewhere is handed over")
            }
        }
    }

    /// The node's lease is given up: its tasks are anybody's.
    pub(super) async fn resign(&self) {
        let resign = self.lease().resign();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.ask(resign)).await;
    }
}

/// The lease of a node that nobody has named yet.
pub(super) fn unnamed(id: NodeId, lease_ms: u64) -> Lease {
    let version = Text::new_static(env!("CARGO_PKG_VERSION"));
    let node = tokkuri_core::store::Node { id, name: Text::new_static("node"), address: None, version };
    Lease::new(node, lease_ms)
}

/// For how long a lease is asked for. Where no other process can reach the store, nobody takes anything over: a process that
/// slept goes on where it was.
pub(super) const fn lease_ms(is_exclusive: bool, wanted: u64) -> u64 {
    if is_exclusive { u64::MAX } else { wanted }
}

#[cfg(test)]
mod tests;
