//! What stores on one database tell each other.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tokkuri_server::store::{PostgresStore, Store};
use tokkuri_server::tokkuri_core::id::{Revision, TaskId};
use tokkuri_server::tokkuri_core::task::Command;
use tokkuri_tests::harness::{DEADLINE, Postgres};

use super::{committed, draft, inserted, open};

type Hints = Receiver<(TaskId, Revision)>;

/// Inserts until one is heard, and returns what else was: the first ones may be lost, since nobody waits for the listening to
/// have begun.
async fn heard(store: &PostgresStore, hints: &mut Hints, from: u64) -> Vec<TaskId> {
    let start = Instant::now();
    let mut others = Vec::new();
    for n in from.. {
        let task = inserted(store, draft(n)).await;
        while let Ok(hint) = timeout(Duration::from_millis(200), hints.recv()).await {
            match hint.expect("hints without end") {
                (id, revision) if (id, revision) == (task.id, task.revision) => return others,
                (id, _) => others.push(id),
            }
        }
        assert!(start.elapsed() < DEADLINE, "nothing is heard");
    }
    unreachable!("there are always more numbers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_heard_by_the_others_and_not_by_who_made_it() {
    let url = Postgres::shared().url();
    let (here, there) = (open(&url).await, open(&url).await);
    let mut own = here.hints().expect("it hears");
    let mut hints = there.hints().expect("it hears");
    assert!(there.hints().is_none(), "handed out once");
    heard(&here, &mut hints, 0).await;
    while hints.try_recv().is_ok() {}
    let task = inserted(&here, draft(1_000_000)).await;
    let ended = committed(&here, &task, Command::Cancel).await;
    for hint in [(task.id, task.revision), (task.id, ended.revision)] {
        assert_eq!(timeout(DEADLINE, hints.recv()).await.unwrap(), Some(hint));
    }
    // What the other one says comes after all of that.
    assert!(!heard(&there, &mut own, 2_000_000).await.contains(&task.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_come_again_after_the_server_was_away() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let (here, there) = (open(&url).await, open(&url).await);
    let mut hints = there.hints().expect("it hears");
    heard(&here, &mut hints, 0).await;
    postgres.restart();
    heard(&here, &mut hints, 1_000_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_notifications_neither_sends_nor_hears() {
    let url = Postgres::shared().url();
    let (quiet, loud) = (open(&format!("{url}?notify=off")).await, open(&url).await);
    assert!(quiet.hints().is_none());
    let other = open(&url).await;
    let mut hints = loud.hints().expect("it hears");
    heard(&other, &mut hints, 0).await;
    let task = inserted(&quiet, draft(1_000_000)).await;
    // What comes later has overtaken nothing.
    assert!(!heard(&other, &mut hints, 2_000_000).await.contains(&task.id));
}
