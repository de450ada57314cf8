//! A file that fails while it is used: nothing that was answered is lost, nobody waits for ever, and it goes on when it can.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

use tokkuri_core::store::Unavailable;

use super::*;

fn unavailable(answer: Answer<Json>) -> Unavailable {
    match answer.outcome {
        Outcome::Unavailable(unavailable) => unavailable,
        outcome => panic!("{outcome:?}"),
    }
}

/// No more pages than there are now, and a few.
fn fill_the_disk(store: &SqliteStore) {
    with(store, |connection| {
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection.query_row(&format!("PRAGMA max_page_count = {}", pages + 12), [], |_| Ok(())).unwrap();
    });
}

fn make_room(store: &SqliteStore) {
    with(store, |connection| {
        connection.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(())).unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_answered_and_passes() {
    let place = Place::new();
    let clock = HandClock::new();
    let store = SqliteStore::open_with_clock(&place.path(), clock.source()).unwrap();
    for n in 0..20 {
        inserted(&store, n).await;
    }
    fill_the_disk(&store);
    let mut there: Vec<u32> = (0..20).collect();
    let mut refused = Vec::new();
    for n in 20..400 {
        match ask(&store, insert(n)).await.outcome {
            Outcome::Inserted(_) => there.push(n),
            Outcome::Unavailable(Unavailable { why, maybe_done }) => {
                assert!(why.contains("full") && !maybe_done, "{why}");
                refused.push(n);
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    assert!(!refused.is_empty());
    for n in &there {
        assert!(load(&store, *n).await.is_some(), "{n} was answered");
    }
    for n in &refused {
        assert!(load(&store, *n).await.is_none(), "{n} was refused");
    }

    // What has expired makes room.
    clock.advance(60_000);
    let Outcome::Due(due) = ask(&store, Request::Due { limit: 10 }).await.outcome else { panic!() };
    let rows = due.iter().map(|row| (row.id, row.revision)).collect();
    let Outcome::Removed(removed) = ask(&store, Request::Remove { rows }).await.outcome else { panic!() };
    assert_eq!(removed.len(), 10);
    inserted(&store, 1_000).await;
    make_room(&store);
    for n in refused {
        inserted(&store, n).await;
    }
    drop(store);
    let connection = Connection::open(place.path()).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 400 - 10 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_fit_does_not_take_the_others_with_it() {
    let place = Place::new();
    let store = place.open();
    inserted(&store, 0).await;
    fill_the_disk(&store);
    let release = hold(&store);
    let large = json(&format!("\"{}\"", "x".repeat(1 << 20)));
    let small: Vec<_> = (1..4).map(|n| store.carry_out(insert(n))).collect();
    let draft = Box::new(Draft { arguments: large, ..draft(9) });
    let too_large = store.carry_out(Request::Insert { draft, limit: None });
    let also: Vec<_> = (4..7).map(|n| store.carry_out(insert(n))).collect();
    drop(release);
    assert!(!unavailable(too_large.answer().await).maybe_done);
    for reply in small.into_iter().chain(also) {
        let answer = reply.answer().await;
        assert!(matches!(answer.outcome, Outcome::Inserted(_)), "{answer:?}");
    }
    assert!(load(&store, 9).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_turned_read_only_is_still_read() {
    let place = Place::new();
    let store = place.open();
    let task = inserted(&store, 1).await;
    with(&store, |connection| connection.execute_batch("PRAGMA query_only = ON").unwrap());
    for request in
        [insert(2), Request::Commit { expected: task.revision, task: applied(&task, task.updated, Command::Cancel) }]
    {
        let Unavailable { why, maybe_done } = unavailable(ask(&store, request).await);
        assert!(why.contains("read-only") && !maybe_done, "{why}");
    }
    assert_eq!(load(&store, 1).await, Some(task));
    assert_eq!(load(&store, 2).await, None);
    with(&store, |connection| connection.execute_batch("PRAGMA query_only = OFF").unwrap());
    inserted(&store, 2).await;
}

/// A deferred constraint is a commit that fails: what the disk would do in the middle of it cannot be told from outside.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_may_have_been_done_and_is_not_read() {
    let place = Place::new();
    let store = place.open();
    inserted(&store, 1).await;
    with(&store, |connection| {
        let deferred = "PRAGMA foreign_keys = ON;
            CREATE TABLE nobody (id INTEGER PRIMARY KEY);
            CREATE TABLE somebody (id REFERENCES nobody DEFERRABLE INITIALLY DEFERRED);
            CREATE TRIGGER late AFTER INSERT ON tasks BEGIN INSERT INTO somebody VALUES (1); END;";
        connection.execute_batch(deferred).unwrap();
    });
    let release = hold(&store);
    let replies: Vec<_> = (2..5).map(|n| store.carry_out(insert(n))).collect();
    drop(release);
    for reply in replies {
        assert!(unavailable(reply.answer().await).maybe_done);
    }
    for n in 2..5 {
        assert_eq!(load(&store, n).await, None);
    }
    with(&store, |connection| connection.execute_batch("DROP TRIGGER late").unwrap());
    inserted(&store, 2).await;
    drop(store);
    let store = place.open();
    assert_eq!(ask(&store, Request::Count { owner: owner() }).await.outcome, Outcome::Live(2));
}

/// Overwrites the root page of a table or an index of a file that nobody has open.
fn damage(path: &Path, name: &str) {
    let connection = Connection::open(path).unwrap();
    let root = "SELECT (rootpage - 1) * (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?";
    let offset: i64 = connection.query_row(root, [name], |row| row.get(0)).unwrap();
    drop(connection);
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset.try_into().unwrap())).unwrap();
    file.write_all(&[0xa5; 4096]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_fails_the_changes_that_need_it_and_no_read() {
    let place = Place::new();
    let task = inserted(&place.open(), 1).await;
    damage(&place.path(), "live_tasks");
    let store = place.open();
    for n in 2..5 {
        let Unavailable { why, maybe_done } = unavailable(ask(&store, insert(n)).await);
        assert!(why.contains("damaged") && !maybe_done, "{why}");
        assert_eq!(load(&store, n).await, None);
    }
    assert_eq!(load(&store, 1).await, Some(task));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_rows_are_damaged_is_refused() {
    let place = Place::new();
    inserted(&place.open(), 1).await;
    damage(&place.path(), "tasks");
    let error = SqliteStore::open(&place.path()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_has_ended_is_told_at_once() {
    let place = Place::new();
    let store = place.open();
    let task = inserted(&store, 1).await;
    let release = hold(&store);
    assert!(store.writer.send(Order::With(Box::new(|_| panic!("on purpose")))));
    let waiting = store.carry_out(insert(2));
    drop(release);
    assert!(unavailable(waiting.answer().await).maybe_done);
    assert!(!unavailable(ask(&store, insert(3)).await).maybe_done);
    assert_eq!(load(&store, 1).await, Some(task));
}
