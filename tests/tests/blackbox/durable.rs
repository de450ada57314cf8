//! The file is the truth: what was answered is in it, and it is one process's at a time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use tokkuri_tests::harness::{Bed, Client, Store, is_terminal};
use tokkuri_tests::one_process;

use super::{durable_bed, file_bed};

/// A kill is one of several processes where there are several nodes, and takes longer.
fn kills() -> u64 {
    if Store::from_env() == Store::Cluster { 3 } else { 10 }
}

const CREATES: u64 = 1000;
const AT_ONCE: u64 = 16;

/// Created is durable: killed in the middle of a thousand creates, ten times on one file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_no_task_whose_reply_was_read() {
    let bed = durable_bed().setting("tasks.max_per_principal", "unlimited");
    let mut known = Vec::new();
    for kill in 0..kills() {
        let mut server = bed.clone().start();
        let client = server.client();
        let read = Arc::new(AtomicU64::new(0));
        let mut lanes = JoinSet::new();
        for lane in 0..AT_ONCE {
            lanes.spawn(create_until_killed(client.on_a_new_connection(), lane, Arc::clone(&read)));
        }
        // At another point each time, in the middle of whatever it does.
        let enough = 40 + kill * (CREATES - 100) / kills();
        let start = Instant::now();
        while read.load(Ordering::SeqCst) < enough {
            assert!(start.elapsed() < Duration::from_secs(30), "{} creates", read.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        server.kill().await;
        let created: Vec<_> = lanes.join_all().await.into_iter().flatten().collect();
        assert!(created.len() as u64 >= enough && (created.len() as u64) < CREATES, "{} creates", created.len());
        known.extend(created);
    }
    let server = bed.start();
    let mut lanes = JoinSet::new();
    for ids in known.chunks(known.len().div_ceil(8)) {
        let (client, ids) = (server.client(), ids.to_vec());
        // On a shared store, the lease of the one that was killed runs out first.
        let at_once = !matches!(server.store(), Store::Postgres | Store::Cluster);
        lanes.spawn(async move {
            for id in ids {
                let read = if at_once { client.task_get(&id).await } else { client.wait_end(&id).await };
                assert!(is_terminal(read.task_status()), "nothing works for ever: {}", read.body);
            }
        });
    }
    lanes.join_all().await;
    println!("{} creates were answered, {} kills", known.len(), kills());
}

/// What a killed server leaves behind is dealt with before the next one answers, and that is soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lost_runs_do_not_keep_the_next_server() {
    one_process!("a file is one process's at a time");
    let server = file_bed().setting("tasks.max_per_principal", "unlimited").start();
    let mut lanes = JoinSet::new();
    for _ in 0..AT_ONCE {
        let client = server.client();
        lanes.spawn(async move {
            let mut last = String::new();
            for _ in 0..CREATES / AT_ONCE {
                last = client.create("slow", json!({"ms": 60_000})).await;
            }
            last
        });
    }
    let last = lanes.join_all().await;
    let start = Instant::now();
    let server = server.restart().await;
    for id in last {
        assert_eq!(server.client().task_get(&id).await.task_status(), "failed");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "answers after {:?}", start.elapsed());
}

/// The ids of the replies that were read to their end.
async fn create_until_killed(client: Client, lane: u64, read: Arc<AtomicU64>) -> Vec<String> {
    let mut ids = Vec::new();
    for n in (lane..CREATES).step_by(AT_ONCE as usize) {
        let ms = if n % 2 == 0 { 1 } else { 60_000 };
        match client.tool("slow", json!({"ms": ms})).try_send_amid_faults().await {
            Ok(reply) if reply.status == 200 => ids.push(reply.task_id()),
            // Cut off, or told so by a balancer.
            _ => break,
        }
        read.fetch_add(1, Ordering::SeqCst);
    }
    ids
}

/// Asserts that the server does not start, with one line that says all of `words`.
fn refused(bed: Bed, words: &[&str]) {
    let (code, said) = bed.refused();
    assert_eq!(code, Some(2), "{said}");
    // The log may have had something to say before.
    let line = said.trim_end().lines().last().unwrap_or_default();
    let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
    assert!(line.starts_with("error: ") && errors == 1, "one clear line at the end: {said}");
    for word in words {
        assert!(line.contains(word), "{word} in: {line}");
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    one_process!("a file is one process's at a time");
    let bed = file_bed();
    let server = bed.clone().start();
    let id = server.client().create("slow", json!({"ms": 60_000})).await;
    refused(bed.clone(), &["tokkuri.db", "in use", "tasks.store"]);
    // The first one does not even notice.
    assert_eq!(server.client().task_get(&id).await.task_status(), "working");
    server.client().create("slow", json!({"ms": 1})).await;
    // A dead one has nothing in use.
    drop(server);
    let server = bed.start();
    assert_eq!(server.client().task_get(&id).await.task_status(), "failed");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    one_process!("a file is one process's at a time");
    let bed = file_bed();
    bed.clone().start().terminate(Duration::from_secs(10)).await;
    let file = rusqlite::Connection::open(bed.database()).unwrap();
    file.pragma_update(None, "user_version", 9999).unwrap();
    file.close().unwrap();
    let before = fs::read(bed.database()).unwrap();
    refused(bed.clone(), &["tokkuri.db", "newer version", "9999"]);
    assert!(fs::read(bed.database()).unwrap() == before, "the file is as it was");
}

#[tokio::test]
async fn what_is_no_store_is_refused() {
    one_process!("a file is one process's at a time");
    let bed = file_bed();
    fs::write(bed.database(), "a letter to a friend\n".repeat(1000)).unwrap();
    refused(bed.clone(), &["tokkuri.db", "not a SQLite database"]);
    assert!(fs::read(bed.database()).unwrap().starts_with(b"a letter to a friend"));
    fs::remove_file(bed.database()).unwrap();
    fs::create_dir(bed.database()).unwrap();
    refused(bed, &["tokkuri.db"]);
}
