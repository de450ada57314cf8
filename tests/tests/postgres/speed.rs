//! How fast the stores of two nodes are, measured against `pgbench` with the same statements on the same server, in turn. It prints
//! and judges nothing: a test machine has other things to do.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokkuri_server::store::PostgresStore;
use tokkuri_server::tokkuri_core::id::TaskId;
use tokkuri_server::tokkuri_core::store::{Outcome, Request};
use tokkuri_server::tokkuri_core::task::Draft;
use tokkuri_tests::harness::Postgres;
use tokkuri_tests::harness::postgres::Options;

use super::{ask, draft, inserted, json, open, owner};

const NODES: u64 = 2;
const CLIENTS: u64 = 16;
const ROUNDS: u64 = 3;
const TIME: Duration = Duration::from_secs(4);
const ROWS: u64 = 10_000;

/// What `pgbench` sends for a create: the one statement of the store, with a body of the same size.
const CREATE: &str = "\\set owner random(1, 1000)
\\set a random(1, 9223372036854775806)
\\set b random(1, 9223372036854775806)
select * from tokkuri_insert(0, :owner, int8send(:owner), array[int8send(:a) || int8send(:b) || '\\x0000'], array[1000000::bigint],
    array[1::bigint], array['tool'::bytea], array[3600000::bigint], array[convert_to(repeat('x', :size), 'UTF8')]);";

/// And for a load.
const LOAD: &str = "\\set n random(0, 9999)
with c as materialized (select greatest(0::bigint, tokkuri_ms()) as now)
select c.now, t.created, t.updated, t.task from c left join tokkuri_tasks t on t.id = int8send(:n) || '\\x00000000000000000000';";

fn nth(n: u64) -> TaskId {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    TaskId::from_bytes(bytes)
}

/// How often a second it is done by so many at once.
async fn rate<F: Future<Output = ()> + Send>(act: impl Fn(u64) -> F + Send + Sync + 'static) -> f64 {
    let (act, n) = (Arc::new(act), Arc::new(AtomicU64::new(0)));
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (act, n) = (Arc::clone(&act), Arc::clone(&n));
        clients.spawn(async move {
            while start.elapsed() < TIME {
                act(n.fetch_add(1, Ordering::Relaxed)).await;
            }
        });
    }
    clients.join_all().await;
    n.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

fn pgbench(postgres: &Postgres, url: &str, script: &str, size: usize) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("script.sql");
    std::fs::write(&file, script).unwrap();
    let said = Command::new("pgbench")
        .args(["-h", "127.0.0.1", "-U", "tokkuri", "-M", "prepared", "-n", "-j", "2"])
        .args(["-p", &postgres.port().to_string(), "-c", &CLIENTS.to_string(), "-T", &TIME.as_secs().to_string()])
        .args(["-D", &format!("size={size}"), "-f"])
        .arg(file)
        .arg(url.rsplit('/').next().unwrap())
        .output()
        .expect("pgbench");
    let text = String::from_utf8_lossy(&said.stdout);
    let rate = text.split("tps = ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    rate.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&said.stderr)))
}

/// How fast something is, beside `pgbench`, each time they took turns.
#[derive(Default)]
struct Rates(Vec<(f64, f64)>);

impl Rates {
    fn report(&self, what: &str) {
        let median = |of: fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = self.0.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (ours, plain, share) = (median(|it| it.0), median(|it| it.1), median(|it| it.0 / it.1));
        println!(
            "{what}/s by {NODES} nodes: {ours:.0}, by pgbench: {plain:.0}, share {share:.2} (goal: 0.7), of {:.0?}",
            self.0
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute and prints figures; run it with --release on a quiet machine"]
async fn creates_and_gets_beside_pgbench() {
    let postgres = Options::default().fsync().start();
    let url = postgres.url();
    let mut nodes: Vec<Arc<PostgresStore>> = Vec::new();
    for _ in 0..NODES {
        nodes.push(Arc::new(open(&url).await));
    }
    let store = move |n: u64| Arc::clone(&nodes[(n % NODES) as usize]);
    let arguments = json(&format!("{{\"text\":\"{}\"}}", "x".repeat(300)));
    let make = move |n: u64, principal: u64| Draft {
        arguments: arguments.clone(),
        owner: owner(&principal.to_string()),
        ..draft(n)
    };
    for n in 0..ROWS {
        inserted(&store(n), Draft { id: nth(n), ..make(n, n % 1_000) }).await;
    }
    let size = postgres.psql(&url, "select length(task) from tokkuri_tasks limit 1").parse().unwrap();
    postgres.psql(&url, "analyze");
    let (mut creates, mut gets) = (Rates::default(), Rates::default());
    for round in 0..ROUNDS {
        let (on, make) = (store.clone(), make.clone());
        let ours = rate(move |n| {
            let draft = make((round + 1) << 40 | n, n % 1_000);
            let (store, insert) = (on(n), Request::Insert { draft: Box::new(draft), limit: Some(1_000_000) });
            async move {
                let outcome = ask(&store, insert).await.outcome;
                assert!(matches!(outcome, Outcome::Inserted(_)), "{outcome:?}");
            }
        })
        .await;
        creates.0.push((ours, pgbench(&postgres, &url, CREATE, size)));
        let on = store.clone();
        let ours = rate(move |n| {
            let store = on(n);
            async move {
                let outcome = ask(&store, Request::Load { id: nth(n * 7919 % ROWS) }).await.outcome;
                assert!(matches!(outcome, Outcome::Loaded(Some(_))), "{outcome:?}");
            }
        })
        .await;
        gets.0.push((ours, pgbench(&postgres, &url, LOAD, size)));
    }
    creates.report("creates");
    gets.report("gets");
}
