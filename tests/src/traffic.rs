//! Many clients at once, each living task after task against all nodes of a [`Cluster`], and recording what it sees; and what
//! happens to a cluster meanwhile.
//!
//! * [`clients`] are the clients; [`calls`] is one request of theirs and what it may come back as;
//! * [`faults`] are the things that go wrong;
//! * [`random`] is chance, from a seed.

pub mod calls;
pub mod clients;
pub mod faults;
pub mod random;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{Cluster, Issuer};
use crate::history::{History, Recorder, Rules, What};
use calls::Caller;
use clients::Shared;
use random::Random;

/// How long a client waits for an answer before it gives up: less than a frozen node stays so.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last tasks may take to end once all faults are over: their time to live, and what a loaded machine adds.
const SETTLED_WITHIN: Duration = Duration::from_secs(90);

/// How much traffic.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Principals.
    pub owners: usize,
    /// Clients of each.
    pub clients: usize,
    /// What chance begins with.
    pub seed: u64,
    /// The servers' settings that matter to the checker.
    pub rules: Rules,
}

/// Clients at work.
#[derive(Debug)]
pub struct Traffic {
    options: Options,
    shared: Arc<Shared>,
    stop: CancellationToken,
    clients: JoinSet<()>,
    callers: Vec<Caller>,
}

impl Traffic {
    /// Starts them. The cluster has to believe `issuer`.
    ///
    /// # Panics
    /// If a client later meets what breaks the schemas; then [`Traffic::finish`] does.
    pub fn start(cluster: &Cluster, issuer: &Issuer, options: Options) -> Self {
        let recorder = Recorder::default();
        let shared = Arc::new(Shared::default());
        let stop = CancellationToken::new();
        let mut random = Random::new(options.seed);
        let (mut clients, mut callers) = (JoinSet::new(), Vec::new());
        for owner in 0..options.owners {
            let name = format!("owner{owner}");
            let token = issuer.token(&name).text();
            let client = cluster.balanced().with_token(&token).with_patience(PATIENCE);
            let caller = Caller::new(&name, client, cluster.addresses(), recorder.clone());
            for number in 0..options.clients {
                let caller = caller.on_connections_of_its_own(PATIENCE);
                let life = clients::live(caller, number, Arc::clone(&shared), random.fork(), stop.clone());
                clients.spawn(life);
            }
            callers.push(caller);
        }
        Self { options, shared, stop, clients, callers }
    }

    /// The record.
    pub fn recorder(&self) -> &Recorder {
        self.callers[0].recorder()
    }

    /// Ends the traffic after all faults are over: waits until every task has ended, reads all of them once more, and takes and
    /// gives back every place of every owner.
    ///
    /// # Panics
    /// If a client failed, or places stay taken.
    pub async fn finish(mut self) -> History {
        self.stop.cancel();
        while let Some(client) = self.clients.join_next().await {
            client.expect("no client fails");
        }
        let start = Instant::now();
        for caller in &self.callers {
            let mut left = self.shared.all_of(caller.name());
            while !left.is_empty() && start.elapsed() < SETTLED_WITHIN {
                let mut live = Vec::new();
                for (n, task) in left.into_iter().enumerate() {
                    // Whatever the answer, it is recorded.
                    if caller.read(n % caller.nodes(), &task).await.is_none_or(|state| !state.is_terminal())
                        && !caller.is_gone(&task)
                    {
                        live.push(task);
                    }
                }
                left = live;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        for caller in &self.callers {
            self.every_place_is_free(caller, start).await;
        }
        self.recorder().history(self.options.rules)
    }

    /// Creates as many tasks as the owner may have, at all nodes; some ghost of a lost create may have to expire first.
    async fn every_place_is_free(&self, caller: &Caller, start: Instant) {
        let limit = self.options.rules.limit;
        loop {
            let mut created = Vec::new();
            for n in 0..limit {
                created.extend(
                    caller.create(n % caller.nodes(), clients::PLACE, json!({"ms": 60_000}), &clients::place()).await,
                );
            }
            let all = created.len() == limit;
            for (n, task) in created.iter().enumerate() {
                let node = n % caller.nodes();
                assert!(caller.cancel(node, task).await, "a cancel is acknowledged when nothing goes wrong");
                caller.read(node, task).await;
            }
            if all {
                return;
            }
            assert!(
                start.elapsed() < 2 * SETTLED_WITHIN,
                "{}: {} of {limit} places are free",
                caller.name(),
                created.len()
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Records what was done to the cluster since `sent`.
pub fn record_fault(recorder: &Recorder, sent: u64, what: &str, nodes: Vec<usize>, loses: bool) {
    recorder.record("fault", 0, sent, What::Fault { what: what.into(), nodes, loses });
}

/// Fails if the history breaks a claim: with the claims, the story of a task or two, and the file that has everything.
///
/// # Panics
/// If it does.
pub fn judge(history: &History) {
    let violations = history.violations();
    if violations.is_empty() {
        return;
    }
    let file = std::env::temp_dir().join(format!("tokkuri-history-{}.jsonl", std::process::id()));
    let saved = history.save(&file).map_or_else(|e| format!("not saved: {e}"), |()| format!("{}", file.display()));
    let stories = violations.iter().filter_map(|why| why.split("task ").nth(1)?.split(':').next()).take(2);
    let stories: String = stories.map(|task| format!("--- {task}\n{}", history.story(task))).collect();
    let first = violations.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    panic!("{} claims are broken (history: {saved}):\n{first}\n{stories}", violations.len());
}
