//! Load: many connections, a quarter of them dripping a byte a second, and honest clients that are served as ever; many streams on
//! one task that never rests, some of which nobody reads, and no terminal state that is lost. Memory stays within what is stated.
//!
//! Times of honest clients are printed, not judged: a test machine has other things to do. They are comparable all the same, since
//! quiet and dripping phases take turns within one run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Bed, Server};

/// How long one phase takes.
const PHASE: Duration = Duration::from_secs(3);
/// Quiet and dripping, so many times each.
const TURNS: usize = 3;
/// How often each honest client polls.
const EVERY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_clients_are_served_while_50_of_200_connections_drip() {
    load(200, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "opens 2,000 connections: tests/run long runs it"]
async fn honest_clients_are_served_while_500_of_2000_connections_drip() {
    load(2_000, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_200_listeners_that_read_hear_the_end_of_a_task_that_never_rests() {
    listeners(200, 10, 150).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a thousand streams of a hundred changes a second: tests/run long runs it"]
async fn all_of_1000_listeners_that_read_hear_the_end_of_a_task_that_never_rests() {
    listeners(1_000, 50, 500).await;
}

/// How often the task changes.
const CHANGE_EVERY: Duration = Duration::from_millis(10);
/// How long after its end the last of those who read may hear of it.
const HEARD_WITHIN: Duration = Duration::from_secs(20);
/// What one open stream may cost the server, in KiB: a connection with its buffers, and the state that it is owed.
const KIB_FOR_EACH: u64 = 64;

/// `listeners` streams on one task, `silent` of which are not read before the end, while it changes a hundred times a second: by
/// questions, and by their answers, so that what is told of it stays small.
async fn listeners(listeners: usize, silent: usize, changes: usize) {
    raise_the_limit_of_open_files();
    let server = Bed::new(env!("CARGO_BIN_EXE_tokkuri-testbed"))
        .setting("server.max_streams_per_principal", listeners)
        .setting("tasks.max_questions", changes)
        .start();
    let client = server.client();
    client.discover().await;
    let before = memory(&server);
    let every = CHANGE_EVERY.as_millis();
    let id = client.create("restless", json!({"changes": changes, "every_ms": every})).await;

    let request: Arc<[u8]> = client.listening(json!({"taskIds": [id]})).to_http().into();
    let mut unread = Vec::new();
    for _ in 0..silent {
        let mut connection = Connection::open_narrow(server.http()).await;
        connection.write(&request).await;
        unread.push(connection);
    }
    let mut reading = JoinSet::new();
    for _ in silent..listeners {
        let mut connection = Connection::open(server.http()).await;
        connection.write(&request).await;
        reading.spawn(async move { (read_to_the_end(&mut connection).await, Instant::now()) });
    }
    // Answers to all questions that are outstanding by now; what is not asked yet is ignored.
    let answers: Value = (1..=changes)
        .map(|n| (format!("q{n}"), accept(json!({"name": "x"}))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let (mut most, started) = (memory(&server), Instant::now());
    loop {
        client.task_update(&id, answers.clone()).await.acknowledged();
        most = most.max(memory(&server));
        if client.task_get(&id).await.task_status() == "completed" {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "it never ends");
        tokio::time::sleep(CHANGE_EVERY * 10).await;
    }
    let (took, ended) = (started.elapsed(), Instant::now());
    let (mut told, mut last) = (0, Duration::ZERO);
    while let Some(heard) = reading.join_next().await {
        let (messages, at) = heard.expect("everybody who reads hears the end");
        told += messages;
        last = last.max(at.saturating_duration_since(ended));
        most = most.max(memory(&server));
    }
    assert!(last < HEARD_WITHIN, "the last heard of it {last:?} after the end");
    for connection in &mut unread {
        // What lay in sockets, and then the latest.
        let messages = read_to_the_end(connection).await;
        assert!(messages < changes, "{messages} states for {changes} changes were kept for who did not read");
    }
    let grown = most.saturating_sub(before);
    println!("{listeners} listeners, {silent} of them silent, {changes} questions and their answers within {took:?}");
    println!(
        "  {} states told to each on average, the last heard the end {last:?} after it",
        told / (listeners - silent)
    );
    println!("  memory: {before} KiB before, {grown} KiB more at most");
    assert!(grown < KIB_FOR_EACH * listeners as u64 + (16 << 10), "{grown} KiB");
}

/// Reads a stream up to the terminal state; how many states came.
async fn read_to_the_end(connection: &mut Connection) -> usize {
    connection.read_head(200).await;
    let (mut event, mut states) = (Vec::new(), 0);
    loop {
        let chunk = connection.read_chunk().await;
        assert!(!chunk.is_empty(), "the stream has ended before the task did");
        event.extend(chunk);
        if event.ends_with(b"\n\n") {
            states += usize::from(event.starts_with(b"event:"));
            let text = String::from_utf8(std::mem::take(&mut event)).unwrap();
            if text.contains(r#""status":"completed""#) {
                return states;
            }
        }
    }
}

/// Latencies of one kind of phase.
#[derive(Default)]
struct Latencies(Vec<Duration>);

impl Latencies {
    fn at(&mut self, share: f64) -> Duration {
        self.0.sort();
        self.0[((self.0.len() - 1) as f64 * share) as usize]
    }
}

async fn load(connections: usize, dripping: usize) {
    raise_the_limit_of_open_files();
    let server = Bed::new(env!("CARGO_BIN_EXE_tokkuri-testbed")).start();
    let client = server.client();
    let task = client.create("slow", json!({"ms": 600_000})).await;
    let request: Arc<[u8]> = client.prepare("tasks/get", json!({"taskId": task})).to_http().into();

    // The honest ones: each on a connection of its own, kept, polling now and then; the first poll is not counted.
    let drips = Arc::new(AtomicBool::new(false));
    let over = Arc::new(AtomicBool::new(false));
    let mut honest = JoinSet::new();
    for n in 0..connections - dripping {
        let (request, address) = (Arc::clone(&request), server.http());
        let (drips, over) = (Arc::clone(&drips), Arc::clone(&over));
        honest.spawn(async move {
            let (mut quiet, mut dripping) = (Vec::new(), Vec::new());
            tokio::time::sleep(EVERY.mul_f64((n % 100) as f64 / 100.0)).await;
            let mut connection = Connection::open(address).await;
            assert_eq!(connection.exchange(&request).await.status, 200);
            while !over.load(Ordering::Relaxed) {
                tokio::time::sleep(EVERY).await;
                let (before, start) = (drips.load(Ordering::Relaxed), Instant::now());
                let reply = connection.exchange(&request).await;
                assert_eq!(reply.status, 200, "{}", reply.text());
                if before == drips.load(Ordering::Relaxed) {
                    (if before { &mut dripping } else { &mut quiet }).push(start.elapsed());
                }
            }
            (quiet, dripping)
        });
    }
    tokio::time::sleep(EVERY * 2).await;

    let settled = memory(&server);
    let dripped = Arc::new(AtomicU64::new(0));
    let mut most = settled;
    for _ in 0..TURNS {
        drips.store(false, Ordering::Relaxed);
        tokio::time::sleep(PHASE).await;
        drips.store(true, Ordering::Relaxed);
        let mut drippers = JoinSet::new();
        for n in 0..dripping {
            drippers.spawn(drip(server.http(), Arc::clone(&request), n, Arc::clone(&dripped)));
        }
        tokio::time::sleep(PHASE).await;
        most = most.max(memory(&server));
    }
    over.store(true, Ordering::Relaxed);
    let (mut quiet, mut dripping_ones) = (Latencies::default(), Latencies::default());
    while let Some(one) = honest.join_next().await {
        let (q, d) = one.expect("every honest request is answered");
        quiet.0.extend(q);
        dripping_ones.0.extend(d);
    }
    let ratio = |share: f64, quiet: &mut Latencies, dripping: &mut Latencies| {
        let (q, d) = (quiet.at(share), dripping.at(share));
        format!("{q:?} quiet, {d:?} dripping, ratio {:.2}", d.as_secs_f64() / q.as_secs_f64())
    };
    println!(
        "{connections} connections, {dripping} of them dripping; {} bytes dripped",
        dripped.load(Ordering::Relaxed)
    );
    println!("  median: {}", ratio(0.5, &mut quiet, &mut dripping_ones));
    println!("  99 %:   {}", ratio(0.99, &mut quiet, &mut dripping_ones));
    println!("  memory: {settled} KiB with the honest ones, {most} KiB at most");
    assert!(dripped.load(Ordering::Relaxed) >= (dripping * TURNS) as u64, "they did drip");
    // A dripping connection holds its buffers; that is all there may be.
    let allowed = settled + 32 * 1024 + 64 * dripping as u64;
    assert!(most <= allowed, "{most} KiB are more than {allowed} KiB");
    assert_eq!(client.task_get(&task).await.task_status(), "working");
}

/// Sends a request a byte a second, for ever: half of them stop short of the body, the others drip the head.
async fn drip(address: std::net::SocketAddr, request: Arc<[u8]>, n: usize, dripped: Arc<AtomicU64>) {
    let head = request.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    loop {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let mut rest = &request[..];
        if n.is_multiple_of(2) && stream.write_all(&request[..head]).await.is_ok() {
            rest = &request[head..];
        }
        for byte in rest {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            dripped.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Resident memory of the server, in KiB.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The server inherits it.
fn raise_the_limit_of_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: bare system calls on a struct of ours.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}
