//! How fast the store is, measured against `pgbench` with the same statements on the same server. It prints and judges nothing: a
//! test machine has other things to do.

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

const CLIENTS: u64 = 16;
const TIME: Duration = Duration::from_secs(6);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute and prints figures; run it with --release on a quiet machine"]
async fn creates_and_gets_beside_pgbench() {
    let postgres = Options::default().fsync().start();
    let url = postgres.url();
    let store: Arc<PostgresStore> = Arc::new(open(&url).await);
    let arguments = json(&format!("{{\"text\":\"{}\"}}", "x".repeat(300)));
    let make = move |n: u64, principal: u64| Draft {
        arguments: arguments.clone(),
        owner: owner(&principal.to_string()),
        ..draft(n)
    };
    for n in 0..ROWS {
        inserted(&store, Draft { id: nth(n), ..make(n, n % 1_000) }).await;
    }
    let size = postgres.psql(&url, "select length(task) from tokkuri_tasks limit 1").parse().unwrap();
    postgres.psql(&url, "analyze");
    for _ in 0..2 {
        let (creating, make) = (Arc::clone(&store), make.clone());
        let creates = rate(move |n| {
            let insert = Request::Insert {
                draft: Box::new(make(n.wrapping_add(std::process::id().into()) << 20 | n, n % 1_000)),
                limit: Some(1_000_000),
            };
            let store = Arc::clone(&creating);
            async move {
                let outcome = ask(&store, insert).await.outcome;
                assert!(matches!(outcome, Outcome::Inserted(_) | Outcome::Exists), "{outcome:?}");
            }
        })
        .await;
        let plain = pgbench(&postgres, &url, CREATE, size);
        println!("creates/s: {creates:.0}, pgbench {plain:.0}: {:.2}", creates / plain);
        let getting = Arc::clone(&store);
        let gets = rate(move |n| {
            let store = Arc::clone(&getting);
            async move {
                let outcome = ask(&store, Request::Load { id: nth(n * 7919 % ROWS) }).await.outcome;
                assert!(matches!(outcome, Outcome::Loaded(Some(_))), "{outcome:?}");
            }
        })
        .await;
        let plain = pgbench(&postgres, &url, LOAD, size);
        println!("gets/s: {gets:.0}, pgbench {plain:.0}: {:.2}", gets / plain);
    }
}
