//! The soak: many clients and random faults for ten minutes, then a checker over everything that every client saw.
//!
//! `SOAK_SECONDS` says for how long (600), `SOAK_SEED` with which chance: the one that a run has printed. What faults strike
//! whom follows from the seed; what the clients meet does not, for it depends on the machine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokkuri_tests::harness::{Cluster, Issuer, Postgres};
use tokkuri_tests::history::Rules;
use tokkuri_tests::traffic::faults::Fault;
use tokkuri_tests::traffic::random::Random;
use tokkuri_tests::traffic::{Options, Traffic, judge};

const LEASE: Duration = Duration::from_secs(3);
const RULES: Rules = Rules { limit: 12, orphans_end_within: 20_000_000 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes: tests/run long runs it"]
async fn nothing_breaks_a_claim_whatever_goes_wrong() {
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let seed = number("SOAK_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs()
    });
    println!("{seconds} s with SOAK_SEED={seed}");
    let postgres = Postgres::start();
    let issuer = Issuer::new();
    let config = issuer.config("");
    let options = Cluster::of(env!("CARGO_BIN_EXE_tokkuri-testbed")).bed(|bed| bed.config(config)).on(postgres.url());
    let options = options.poll_interval_ms(250).lease_ms(3000).setting("tasks.max_per_principal", RULES.limit);
    let mut cluster = options.setting("tasks.ttl_ms", 60_000).setting("server.shutdown_ms", 2000).proxied().start(3);

    let traffic = Traffic::start(&cluster, &issuer, Options { owners: 3, clients: 6, seed, rules: RULES });
    let recorder = traffic.recorder().clone();
    let mut random = Random::new(seed);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(random.ms(500, 5000)).await;
        Fault::any(&mut random, 3, LEASE).strike(&mut cluster, &postgres, LEASE, &recorder).await;
    }
    let history = traffic.finish().await;
    println!("{} s, and {} things were recorded:", start.elapsed().as_secs(), history.entries.len());
    for (what, count) in history.counts() {
        println!("  {count:>7} {what}");
    }
    judge(&history);
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
}
