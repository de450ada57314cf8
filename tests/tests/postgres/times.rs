//! The database's time: what happens when its clock is set back, and at the very end of a task.

use std::time::{Duration, Instant};

use tokkuri_server::tokkuri_core::host::{OVERLAP_MS, Watch};
use tokkuri_server::tokkuri_core::id::NodeId;
use tokkuri_server::tokkuri_core::store::{Node, Outcome, Request};
use tokkuri_server::tokkuri_core::task::Draft;
use tokkuri_tests::harness::{DEADLINE, LOOK_AGAIN, Postgres};

use super::{ask, draft, inserted, load, open};

fn node(n: u64) -> Node {
    Node { id: NodeId(n), name: "n".into(), address: None, version: "1".into() }
}

const SET_BACK: &str = "create or replace function tokkuri_ms() returns bigint language sql volatile as \
    $$ select floor(extract(epoch from clock_timestamp()) * 1000)::bigint - 3600000 $$";

#[tokio::test]
async fn time_stands_still_while_the_databases_clock_is_behind() {
    let url = Postgres::shared().url();
    let (store, other) = (open(&url).await, open(&url).await);
    let before = inserted(&store, draft(1)).await.origin.created;
    let join = |n: u64| Request::Join { node: Box::new(node(n)), lease_ms: 10_000 };
    let leased = ask(&store, join(7)).await.now;
    Postgres::shared().psql(&url, SET_BACK);
    for n in 2..5 {
        let now = ask(&store, Request::Load { id: draft(1).id }).await.now;
        assert!(now >= leased && now.since(leased) < 60_000, "{now:?} after {leased:?}");
        assert!(inserted(&store, draft(n)).await.origin.created >= leased);
    }
    // Who has heard nothing for a while learns of it with the next lease, and a newcomer when it opens the database.
    let now = ask(&other, join(8)).await.now;
    assert!(now >= leased, "{now:?} after {leased:?}");
    let newcomer = open(&url).await;
    let now = ask(&newcomer, Request::Load { id: draft(1).id }).await.now;
    assert!(now >= leased && leased >= before, "{now:?} after {leased:?}");
}

/// A transaction that raises a task's end may have begun in time and be committed after it: whoever asks meanwhile is not told
/// that the task is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_called_gone_only_after_the_changes_under_way() {
    let url = Postgres::shared().url();
    let store = open(&url).await;
    let task = inserted(&store, Draft { ttl_ms: 400, ..draft(1) }).await;
    let raise = "begin; update tokkuri_tasks set revision = 2, expires = expires + 3600000, \
        task = convert_to(replace(replace(convert_from(task, 'UTF8'), '\"ttl_ms\":400', '\"ttl_ms\":3600400'), \
            '\"revision\":1', '\"revision\":2'), 'UTF8'); \
        select pg_sleep(1.5); commit";
    let held = url.clone();
    let raising = std::thread::spawn(move || Postgres::shared().psql(&held, raise));
    let sleeping = "select count(*) from pg_stat_activity where query like '%pg_sleep%' and wait_event = 'PgSleep' \
        and datname = current_database()";
    let start = Instant::now();
    while Postgres::shared().psql(&url, sleeping) != "1" {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    // What never was is no question, and tells the time.
    while ask(&store, Request::Load { id: draft(2).id }).await.now < task.expires() {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    assert!(!raising.is_finished(), "its end came in time");
    let loaded = load(&store, task.id).await.expect("it is raised, and so it is there");
    assert_eq!((loaded.revision, loaded.ttl_ms), (task.revision.next(), 3_600_400));
    assert!(start.elapsed() >= Duration::from_millis(400));
    raising.join().unwrap();
}

#[tokio::test]
async fn a_change_carries_the_time_of_its_commit() {
    let store = open(&Postgres::shared().url()).await;
    let task = inserted(&store, draft(1)).await;
    let next = super::committed(&store, &task, tokkuri_server::tokkuri_core::task::Command::Cancel).await;
    let Outcome::Touched(touched) =
        ask(&store, Request::TouchedSince { node: task.node, since: task.origin.created }).await.outcome
    else {
        panic!("what was touched");
    };
    assert_eq!(touched, [(task.id, next.revision)]);
}

/// A commit may take longer than anything else: looks go on meanwhile, and the first one after it names the change all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_misses_no_change_however_long_its_commit_took() {
    let url = Postgres::shared().url();
    let store = open(&url).await;
    let task = inserted(&store, draft(1)).await;
    Postgres::shared().psql(&url, "create table enough ()");
    let change = "begin; update tokkuri_tasks set revision = 2, touched = tokkuri_ms(); \
        do $$ begin for n in 1 .. 2000 loop exit when exists (select from enough); perform pg_sleep(0.02); end loop; end $$; \
        commit";
    let held = url.clone();
    let changing = std::thread::spawn(move || Postgres::shared().psql(&held, change));
    let open = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
    let start = Instant::now();
    while Postgres::shared().psql(&url, open) != "1" {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let mut watch = Watch::new(task.node);
    let mut look = async || {
        let answer = ask(&store, watch.request()).await;
        let Outcome::Touched(touched) = answer.outcome else { panic!("what was touched: {answer:?}") };
        watch.answered(answer.now);
        (answer.now, touched)
    };
    let (began, touched) = look().await;
    assert_eq!(touched, [(task.id, task.revision)]);
    // By itself, the last of these looks is followed by one that begins after the change.
    while look().await.0.since(began) <= OVERLAP_MS {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    assert!(!changing.is_finished(), "its commit takes longer");
    Postgres::shared().psql(&url, "insert into enough default values");
    changing.join().unwrap();
    assert_eq!(look().await.1, [(task.id, task.revision.next())]);
}

/// As with tasks, so with leases: one that is being extended in time has not run out for whoever looks meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_called_lost_only_after_the_renewals_under_way() {
    let url = Postgres::shared().url();
    let store = open(&url).await;
    let Outcome::Leased { until, .. } =
        ask(&store, Request::Join { node: Box::new(node(7)), lease_ms: 500 }).await.outcome
    else {
        panic!("it joins");
    };
    let task = inserted(&store, Draft { node: NodeId(7), ..draft(1) }).await;
    let renew = "begin; select tokkuri_renew(0, 7, 0, 0, 600000); select pg_sleep(1.5); commit";
    let held = url.clone();
    let renewing = std::thread::spawn(move || Postgres::shared().psql(&held, renew));
    let start = Instant::now();
    while ask(&store, Request::Load { id: draft(2).id }).await.now < until {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    assert!(!renewing.is_finished(), "its lease ran out in time");
    assert_eq!(ask(&store, Request::Orphans { limit: 10 }).await.outcome, Outcome::Orphans(Vec::new()));
    renewing.join().unwrap();
    ask(&store, Request::Resign { node: NodeId(7) }).await;
    assert_eq!(ask(&store, Request::Orphans { limit: 10 }).await.outcome, Outcome::Orphans(vec![task]));
}
