//! Several stores on one database: as many nodes as there are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokkuri_server::store::{PostgresStore, Store};
use tokkuri_server::tokkuri_core::id::Attempt;
use tokkuri_server::tokkuri_core::store::{Outcome, Request};
use tokkuri_server::tokkuri_core::task::{Command, Draft};
use tokkuri_tests::harness::{DEADLINE, LOOK_AGAIN, Postgres};

use super::{applied, ask, committed, draft, inserted, load, open, owner};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_that_insert_at_once_admit_exactly_the_limit() {
    const STORES: u64 = 4;
    const EACH: u64 = 8;
    const LIMIT: u32 = 5;
    let url = Postgres::shared().url();
    let mut stores = Vec::new();
    for _ in 0..STORES {
        stores.push(Arc::new(open(&url).await));
    }
    for round in 0..20 {
        let who = owner(&format!("round {round}"));
        let barrier = Arc::new(Barrier::new((STORES * EACH) as usize));
        let mut inserters = JoinSet::new();
        for n in 0..STORES * EACH {
            let draft = Draft { owner: who.clone(), ..draft(round * STORES * EACH + n) };
            let (store, barrier) = (Arc::clone(&stores[(n % STORES) as usize]), Arc::clone(&barrier));
            inserters.spawn(async move {
                barrier.wait().await;
                ask(&store, Request::Insert { draft: Box::new(draft), limit: Some(LIMIT) }).await.outcome
            });
        }
        let outcomes = inserters.join_all().await;
        let admitted = outcomes.iter().filter(|it| matches!(it, Outcome::Inserted(_))).count();
        let refused = outcomes.iter().filter(|it| **it == Outcome::AtTheLimit).count();
        assert_eq!((admitted, refused), (LIMIT as usize, outcomes.len() - LIMIT as usize), "{outcomes:?}");
        for store in &stores {
            assert_eq!(ask(store, Request::Count { owner: who.clone() }).await.outcome, Outcome::Live(LIMIT));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_whose_inserts_wait_holds_nobody_else_up() {
    let url = Postgres::shared().url();
    let store = Arc::new(open(&format!("{url}?connections=4")).await);
    inserted(&store, draft(0)).await;
    // The lock of the owner of that task, as somebody else's long transaction would hold it.
    let key = "(select ('x' || encode(substr(owner, 1, 8), 'hex'))::bit(64)::bigint from tokkuri_tasks limit 1)";
    let hold = format!("select pg_advisory_lock({key}), pg_sleep(1.5)");
    let held = url.clone();
    let holder = std::thread::spawn(move || Postgres::shared().psql(&held, &hold));
    let start = Instant::now();
    while Postgres::shared().psql(&url, "select count(*) from pg_locks where locktype = 'advisory'") != "1" {
        assert!(start.elapsed() < DEADLINE);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let insert = |principal: &str, n: u64| {
        let draft = Draft { owner: owner(principal), ..draft(n) };
        let store = Arc::clone(&store);
        async move { ask(&store, Request::Insert { draft: Box::new(draft), limit: Some(1_000) }).await.outcome }
    };
    let mut waiting = JoinSet::new();
    for n in 1..=100 {
        waiting.spawn(insert("a", n));
    }
    for n in 101..=120 {
        assert!(matches!(insert("b", n).await, Outcome::Inserted(_)));
    }
    assert!(!holder.is_finished(), "the others were done while the lock was held");
    assert!(waiting.try_join_next().is_none(), "who has to wait waits");
    let outcomes = waiting.join_all().await;
    assert!(outcomes.iter().all(|it| matches!(it, Outcome::Inserted(_))), "{outcomes:?}");
    holder.join().unwrap();
    assert_eq!(ask(&store, Request::Count { owner: owner("a") }).await.outcome, Outcome::Live(101));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_stores_that_commit_on_one_revision_one_wins() {
    let url = Postgres::shared().url();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let mut row = inserted(&stores[0], draft(1)).await;
    for round in 0..50 {
        let barrier = Arc::new(Barrier::new(stores.len()));
        let mut writers = JoinSet::new();
        for (n, store) in stores.iter().cloned().enumerate() {
            let message = format!("{round}/{n}").into();
            let next = applied(&row, row.updated, Command::Progress { by: Attempt::FIRST, message });
            let (expected, barrier) = (row.revision, Arc::clone(&barrier));
            writers.spawn(async move {
                barrier.wait().await;
                let outcome = ask(&store, Request::Commit { expected, task: Arc::clone(&next) }).await.outcome;
                (outcome, next)
            });
        }
        let written = writers.join_all().await;
        let mut winners = written.iter().filter(|(outcome, _)| *outcome == Outcome::Committed);
        let (_, winner) = winners.next().expect("one wins");
        assert!(winners.next().is_none(), "one alone");
        assert!(written.iter().filter(|(it, _)| *it == Outcome::Conflict).count() == stores.len() - 1, "{written:?}");
        for store in &stores {
            assert_eq!(load(store, row.id).await.as_ref(), Some(winner));
        }
        row = Arc::clone(winner);
    }
}

/// Sweeps of several nodes meet at the same rows, each in an order of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_that_remove_the_same_rows_remove_each_once() {
    const ROWS: u64 = 60;
    let url = Postgres::shared().url();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let mut rows = Vec::new();
    for n in 0..ROWS {
        let task = inserted(&stores[0], Draft { ttl_ms: 1, ..draft(n) }).await;
        rows.push((task.id, task.revision));
    }
    let mut sweeps = JoinSet::new();
    for (n, store) in stores.iter().cloned().enumerate() {
        let mut rows = rows.clone();
        rows.rotate_left(n * 20);
        if n == 1 {
            rows.reverse();
        }
        sweeps.spawn(async move {
            match ask(&store, Request::Remove { rows }).await.outcome {
                Outcome::Removed(ids) => ids,
                outcome => panic!("{outcome:?}"),
            }
        });
    }
    let mut removed: Vec<_> = sweeps.join_all().await.into_iter().flatten().collect();
    removed.sort_unstable();
    let mut wanted: Vec<_> = rows.into_iter().map(|(id, _)| id).collect();
    wanted.sort_unstable();
    assert_eq!(removed, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_nobody_wants_is_made_all_the_same() {
    let store: PostgresStore = open(&Postgres::shared().url()).await;
    drop(store.carry_out(Request::Insert { draft: Box::new(draft(1)), limit: None }));
    drop(store.carry_out(Request::Insert { draft: Box::new(draft(2)), limit: Some(9) }));
    let start = Instant::now();
    while load(&store, draft(1).id).await.is_none() || load(&store, draft(2).id).await.is_none() {
        assert!(start.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let task = load(&store, draft(1).id).await.unwrap();
    committed(&store, &task, Command::Cancel).await;
}
