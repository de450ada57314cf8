//! A server that goes away, hangs, or comes back: every request is answered in time, and nothing that was answered is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokkuri_server::store::PostgresStore;
use tokkuri_server::tokkuri_core::id::{Attempt, Revision, TaskId};
use tokkuri_server::tokkuri_core::store::{Outcome, Request};
use tokkuri_server::tokkuri_core::task::{Command, Draft};
use tokkuri_tests::harness::{DEADLINE, LOOK_AGAIN, Postgres};

use super::{applied, ask, committed, draft, inserted, load, open, owner};

/// Longer than any request may take: its turn, a connection and its answer.
const IN_TIME: Duration = Duration::from_secs(12);

/// What clients were told.
#[derive(Default)]
struct Told {
    /// The newest revision that was acknowledged of each task.
    revisions: Mutex<BTreeMap<TaskId, Revision>>,
    unavailable: AtomicU64,
    longest_ms: AtomicU64,
}

impl Told {
    async fn ask(&self, store: &PostgresStore, request: Request<super::Json>) -> Outcome<super::Json> {
        let start = Instant::now();
        let outcome = ask(store, request).await.outcome;
        self.longest_ms.fetch_max(start.elapsed().as_millis() as u64, Ordering::SeqCst);
        if let Outcome::Unavailable(_) = outcome {
            self.unavailable.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        outcome
    }
}

/// Creates and changes tasks until it is over.
async fn work(store: Arc<PostgresStore>, told: Arc<Told>, lane: u64, over: Arc<AtomicBool>) {
    let mut n = lane << 32;
    while !over.load(Ordering::SeqCst) {
        n += 1;
        let draft = Draft { owner: owner(&format!("{}", lane % 3)), ..draft(n) };
        let limit = (lane.is_multiple_of(2)).then_some(1_000_000);
        let Outcome::Inserted(task) = told.ask(&store, Request::Insert { draft: Box::new(draft), limit }).await else {
            continue;
        };
        told.revisions.lock().unwrap().insert(task.id, task.revision);
        let next = applied(&task, task.updated, Command::Progress { by: Attempt::FIRST, message: "on".into() });
        match told.ask(&store, Request::Commit { expected: task.revision, task: Arc::clone(&next) }).await {
            Outcome::Committed => drop(told.revisions.lock().unwrap().insert(next.id, next.revision)),
            Outcome::Unavailable(_) => {}
            outcome => panic!("nobody else writes this task: {outcome:?}"),
        }
        match told.ask(&store, Request::Load { id: task.id }).await {
            Outcome::Loaded(Some(read)) => assert!(read.revision >= told.revisions.lock().unwrap()[&task.id]),
            Outcome::Unavailable(_) => {}
            outcome => panic!("it is there: {outcome:?}"),
        }
    }
}

/// Load while the server is away for a moment, several times; then all that was acknowledged is there.
async fn under_load(postgres: &Postgres, fault: impl Fn(&Postgres)) {
    let url = postgres.url();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await)];
    let told = Arc::new(Told::default());
    let over = Arc::new(AtomicBool::new(false));
    let mut lanes = JoinSet::new();
    for lane in 0..12 {
        let store = Arc::clone(&stores[lane as usize % 2]);
        lanes.spawn(work(store, Arc::clone(&told), lane, Arc::clone(&over)));
    }
    for _ in 0..3 {
        let known = told.revisions.lock().unwrap().len();
        let start = Instant::now();
        while told.revisions.lock().unwrap().len() < known + 100 {
            assert!(start.elapsed() < DEADLINE, "it does not go on");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        tokio::task::block_in_place(|| fault(postgres));
    }
    let known = told.revisions.lock().unwrap().len();
    let start = Instant::now();
    while told.revisions.lock().unwrap().len() < known + 100 {
        assert!(start.elapsed() < DEADLINE, "it does not go on");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    over.store(true, Ordering::SeqCst);
    lanes.join_all().await;
    let longest = Duration::from_millis(told.longest_ms.load(Ordering::SeqCst));
    assert!(longest < IN_TIME, "a request took {longest:?}");
    assert!(told.unavailable.load(Ordering::SeqCst) > 0, "somebody must have noticed");
    let revisions = told.revisions.lock().unwrap().clone();
    println!("{} tasks, {:?} unavailable, longest {longest:?}", revisions.len(), told.unavailable);
    for (id, revision) in revisions {
        let read = load(&stores[0], id).await.expect("an acknowledged create is there");
        assert!(read.revision >= revision, "{id}: {:?} after {revision:?}", read.revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_is_restarted_under_load() {
    under_load(&Postgres::start(), Postgres::restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_the_server_crashes_under_load() {
    let crash = |postgres: &Postgres| {
        postgres.kill();
        postgres.resume_service();
    };
    under_load(&Postgres::start(), crash).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_hangs_is_told_in_time_and_used_again() {
    let postgres = Postgres::start();
    let store = Arc::new(open(&postgres.url()).await);
    let task = inserted(&store, draft(1)).await;
    // Connections are there, and have been asked all of this before.
    let mut before = JoinSet::new();
    for n in 0..16 {
        let store = Arc::clone(&store);
        before.spawn(async move {
            let task = inserted(&store, draft(10 + n)).await;
            committed(&store, &task, Command::Cancel).await;
        });
    }
    before.join_all().await;
    postgres.pause();
    let start = Instant::now();
    let mut requests = JoinSet::new();
    for n in 0..40_u64 {
        let (store, task) = (Arc::clone(&store), Arc::clone(&task));
        requests.spawn(async move {
            let insert = |limit| Request::Insert { draft: Box::new(draft(100 + n)), limit };
            let next = applied(&task, task.updated, Command::Cancel);
            let request = match n % 4 {
                0 => Request::Load { id: task.id },
                1 => insert(None),
                2 => insert(Some(1_000)),
                _ => Request::Commit { expected: task.revision, task: next },
            };
            let reads = matches!(request, Request::Load { .. });
            match ask(&store, request).await.outcome {
                Outcome::Unavailable(unavailable) => (reads, unavailable.maybe_done),
                outcome => panic!("nobody can have answered {outcome:?}"),
            }
        });
    }
    let told = requests.join_all().await;
    assert!(start.elapsed() < IN_TIME, "told after {:?}", start.elapsed());
    assert!(told.iter().all(|(reads, maybe_done)| !(*reads && *maybe_done)), "a read does nothing");
    assert!(told.iter().any(|(_, maybe_done)| *maybe_done), "what was sent may be done");
    assert!(told.iter().any(|(reads, maybe_done)| !*reads && !*maybe_done), "what was not sent is not");
    postgres.resume();
    let start = Instant::now();
    while let Outcome::Unavailable(_) = ask(&store, Request::Load { id: task.id }).await.outcome {
        assert!(start.elapsed() < DEADLINE, "it heals by itself");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    inserted(&store, draft(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_hangs_is_replaced() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let store = open(&format!("{url}?connections=1&notify=off")).await;
    let task = inserted(&store, draft(1)).await;
    // With its statement prepared, a commit is one message: either it is sent or not.
    let task = committed(&store, &task, Command::Progress { by: Attempt::FIRST, message: "on".into() }).await;
    let backend: i32 = postgres
        .psql(
            &url,
            "select pid from pg_stat_activity where application_name = 'tokkuri' and datname = current_database()",
        )
        .parse()
        .unwrap();
    // SAFETY: a bare system call on a process of the cluster that this test has started.
    assert_eq!(unsafe { libc::kill(backend, libc::SIGSTOP) }, 0);
    let start = Instant::now();
    let next = applied(&task, task.updated, Command::Cancel);
    match ask(&store, Request::Commit { expected: task.revision, task: next }).await.outcome {
        Outcome::Unavailable(unavailable) => assert!(unavailable.maybe_done, "it was sent"),
        outcome => panic!("nobody can have answered {outcome:?}"),
    }
    assert!(start.elapsed() < IN_TIME);
    let start = Instant::now();
    assert_eq!(load(&store, task.id).await.map(|it| it.revision), Some(task.revision));
    assert!(start.elapsed() < Duration::from_secs(3), "by another connection, at once");
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(backend, libc::SIGCONT) }, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_is_told_at_once() {
    let postgres = Postgres::start();
    let store = open(&postgres.url()).await;
    postgres.stop();
    for limit in [None, Some(9)] {
        let start = Instant::now();
        match ask(&store, Request::Insert { draft: Box::new(draft(1)), limit }).await.outcome {
            Outcome::Unavailable(_) => {}
            outcome => panic!("nobody can have answered {outcome:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(3), "told after {:?}", start.elapsed());
    }
    match ask(&store, Request::Insert { draft: Box::new(draft(1)), limit: None }).await.outcome {
        Outcome::Unavailable(unavailable) => {
            assert!(!unavailable.maybe_done, "there is nobody who could have: {unavailable}")
        }
        outcome => panic!("nobody can have answered {outcome:?}"),
    }
    postgres.resume_service();
    inserted(&store, draft(1)).await;
}
