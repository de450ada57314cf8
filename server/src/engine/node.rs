//! What a node does by itself: it looks at the store for its runs, removes what has expired, and takes over what was lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokkuri_core::Text;
use tokkuri_core::host::Watch;
use tokkuri_core::procedure::{Expire, Seen, TakeOver, Taken};
use tokkuri_core::store::{Answer, Outcome, Request};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use crate::engine::Engine;

/// How many rows one sweep takes at a time.
const SWEEP: u32 = 500;

/// How many tasks are taken over at once.
const SHARES: usize = 64;

/// How often what was counted is put in order.
const UPKEEP: Duration = Duration::from_secs(5);

/// What the tasks of a node that is gone say.
const LOST: &str = "The server that ran the task stopped before the task ended.";

/// The node's own loop. It runs until the engine is stopping and its runs are over.
#[derive(Debug)]
pub struct NodeLoop {
    engine: Arc<Engine>,
    watch: Watch,
}

impl NodeLoop {
    /// The loop of this node.
    pub fn new(engine: Arc<Engine>) -> Self {
        let watch = Watch::of_store(engine.node(), engine.store.visible_after_ms());
        Self { engine, watch }
    }

    /// Takes the node's lease, and whatever earlier processes left behind, so that nothing of theirs is `working` for ever; what
    /// runs on a node that lives is left alone. To be called before the node serves. A store that does not answer holds it up for
    /// as long as a lease.
    pub async fn begin(&mut self) {
        let patience = Duration::from_millis(self.engine.settings.lease_ms);
        tokio::select! {
            () = Arc::clone(&self.engine).keep_lease() => {}
            () = async {
                self.engine.joined(patience).await;
                self.take_over().await;
            } => {}
        }
    }

    /// Keeps the lease, looks and sweeps, and takes the store's hints meanwhile, until dropped. Each goes on while the others wait:
    /// neither a long sweep nor a look that is not answered keeps the node from its renewal.
    pub async fn run(self) {
        let (lease, hints) = (Arc::clone(&self.engine).keep_lease(), Arc::clone(&self.engine).take_hints());
        tokio::select! {
            () = lease => {}
            () = self.look_and_sweep() => {}
            () = hints => {}
        }
    }

    async fn look_and_sweep(mut self) {
        let mut tick =
            tokio::time::interval(Duration::from_millis(self.engine.settings.poll_interval_ms.clamp(10, 60_000)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Expiry is looked at more often than the store is: it is known here, and costs nothing while nothing is due.
        let mut expiry = tokio::time::interval(Duration::from_millis(100));
        expiry.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut upkeep = tokio::time::interval(UPKEEP);
        upkeep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = upkeep.tick() => self.engine.metrics().upkeep(),
                _ = tick.tick() => {
                    let now = self.look().await;
                    self.engine.look_for_followers(now).await;
                    self.take_over().await;
                }
                _ = expiry.tick() => self.expire().await,
            }
        }
    }

    /// One question, however many runs there are; then one load for each run that is behind. Returns the store's time.
    async fn look(&mut self) -> Millis {
        let node = self.engine.node();
        if self.watch.node() != node {
            self.watch = Watch::of_store(node, self.engine.store.visible_after_ms());
        }
        let Answer { now, outcome } = self.engine.ask(self.watch.request()).await;
        // The watch moves on only once everything that it showed was read.
        if self.read(outcome).await {
            self.watch.answered(now);
        }
        // Not before: an end may have raised the time to live.
        self.engine.registry.clock(now);
        now
    }

    /// Whether the store told everything.
    async fn read(&self, outcome: Outcome<Json>) -> bool {
        let Outcome::Touched(touched) = outcome else { return false };
        for (id, revision) in touched {
            if self.engine.is_behind(id, revision) {
                let loaded = self.engine.ask(Request::Load { id }).await;
                let Outcome::Loaded(task) = loaded.outcome else { return false };
                let seen = task.map_or(Seen::Gone, Seen::Task);
                self.engine.observe(id, &seen);
            }
        }
        true
    }

    async fn expire(&self) {
        while let Ok((removed, more)) = self.engine.drive(Expire::new(SWEEP)).await {
            if removed > 0 {
                tracing::debug!(removed, "tasks whose time to live was over are removed");
            }
            if !more {
                break;
            }
        }
    }

    /// One sweep at a time; and none by a node that drains or holds no lease: what it took would be an orphan again.
    async fn take_over(&self) {
        while self.engine.sweeps() {
            let orphans = Request::Orphans { limit: SWEEP };
            let Outcome::Orphans(orphans) = self.engine.ask(orphans).await.outcome else { break };
            let more = orphans.len() >= SWEEP as usize;
            // Shares that are driven at once: the store makes their changes durable together.
            let shares = orphans.chunks(orphans.len().div_ceil(SHARES).max(1)).map(|share| {
                self.engine.drive(TakeOver::among(share.to_vec(), Some(self.engine.node()), Text::from(LOST)))
            });
            let shares = join_all(shares).await;
            let taken = |count: fn(&Taken) -> u32| shares.iter().flatten().map(count).sum::<u32>();
            let (failed, restarted) = (taken(|it| it.failed), taken(|it| it.restarted));
            if failed + restarted > 0 {
                tracing::info!(failed, restarted, "tasks of lost runs are taken over");
            }
            // A store that takes nothing now is asked again with the next sweep.
            if !more || failed + restarted == 0 {
                break;
            }
        }
    }
}
