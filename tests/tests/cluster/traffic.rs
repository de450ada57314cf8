//! Many clients at all nodes while something happens to them; what every client saw is held against the claims.

use std::time::Duration;

use tokkuri_tests::harness::{Cluster, Issuer, Postgres};
use tokkuri_tests::history::{History, Rules, What};
use tokkuri_tests::traffic::faults::Fault;
use tokkuri_tests::traffic::random::Random;
use tokkuri_tests::traffic::{Options, Traffic, judge};

use super::cluster;

const LEASE: Duration = Duration::from_secs(2);
const RULES: Rules = Rules { limit: 8, orphans_end_within: 15_000_000 };

fn busy(seed: u64) -> Options {
    Options { owners: 2, clients: 4, seed, rules: RULES }
}

fn start(postgres: &Postgres, issuer: &Issuer) -> Cluster {
    let config = issuer.config("");
    let options = cluster().bed(|bed| bed.config(config)).on(postgres.url()).lease_ms(2000).proxied();
    let options = options.setting("tasks.max_per_principal", RULES.limit).setting("tasks.ttl_ms", 40_000);
    options.setting("server.shutdown_ms", 1000).start(3)
}

/// What the checker says when there is nothing to find: one node that nothing happens to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_node_in_peace_breaks_no_claim() {
    let issuer = Issuer::new();
    let config = issuer.config("");
    let options = cluster().bed(|bed| bed.config(config)).on("memory".to_owned());
    let cluster = options.setting("tasks.max_per_principal", RULES.limit).start(1);
    let traffic = Traffic::start(&cluster, &issuer, busy(3));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let history = judged(traffic).await;
    let counts = history.counts();
    for kind in ["created", "read", "answered", "cancelled", "told", "notfound", "streams over: Whole"] {
        assert!(counts.contains_key(kind), "{kind}: {counts:?}");
    }
    assert!(!counts.contains_key("unheard") && !counts.contains_key("later"), "{counts:?}");
}

/// What every client saw, once all are done; no claim is broken.
async fn judged(traffic: Traffic) -> History {
    let history = traffic.finish().await;
    println!("{:?}", history.counts());
    judge(&history);
    history
}

/// Whoever asked was answered, or found nobody there to ask: nothing was cut off.
fn heard(history: &History) {
    let cut = history.entries.iter().filter(|entry| match &entry.what {
        What::Unheard { why, .. } => !why.contains("ConnectError"),
        _ => false,
    });
    let cut: Vec<_> = cut.collect();
    assert!(cut.is_empty(), "{} requests were cut off: {:?}", cut.len(), cut.first());
}

/// One after the other, as an update does it. Who is asked answers, or says to try again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_load_fails_no_request() {
    let postgres = Postgres::start();
    let issuer = Issuer::new();
    let mut cluster = start(&postgres, &issuer);
    let traffic = Traffic::start(&cluster, &issuer, busy(1));
    for round in 0..2 {
        for node in 0..3 {
            tokio::time::sleep(Duration::from_millis(1000 + 200 * round)).await;
            let recorder = traffic.recorder().clone();
            Fault::Terminate(node).strike(&mut cluster, &postgres, LEASE, &recorder).await;
        }
    }
    let history = judged(traffic).await;
    heard(&history);
}

/// As one does it who wants to lose nothing: each is drained first, and told to go once nothing runs there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_drained_nodes_fails_no_task() {
    let postgres = Postgres::start();
    let issuer = Issuer::new();
    let mut cluster = start(&postgres, &issuer);
    let traffic = Traffic::start(&cluster, &issuer, busy(4));
    for (node, name) in ["a", "b", "c"].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        cluster.admin((node + 1) % 3, &["drain", name, "--deadline", "500ms", "--wait"]);
        cluster.unlist(node);
        let recorder = traffic.recorder().clone();
        Fault::Terminate(node).strike(&mut cluster, &postgres, LEASE, &recorder).await;
    }
    let history = judged(traffic).await;
    heard(&history);
    let states = history.entries.iter().filter_map(|entry| match &entry.what {
        What::Read { task, state } | What::Told { task, state, .. } => Some((task, state)),
        _ => None,
    });
    let failed: Vec<_> = states.filter(|(_, state)| state.status == "failed").collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// The soak in small: a fixed seed, half a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_is_broken_while_things_go_wrong() {
    let postgres = Postgres::start();
    let issuer = Issuer::new();
    let mut cluster = start(&postgres, &issuer);
    let traffic = Traffic::start(&cluster, &issuer, busy(2));
    let recorder = traffic.recorder().clone();
    let mut random = Random::new(2);
    for _ in 0..8 {
        tokio::time::sleep(random.ms(200, 1500)).await;
        Fault::any(&mut random, 3, LEASE).strike(&mut cluster, &postgres, LEASE, &recorder).await;
    }
    judged(traffic).await;
}
