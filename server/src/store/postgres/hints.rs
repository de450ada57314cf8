//! `LISTEN` and `NOTIFY`: who commits a change says so to the other nodes, which then look. A hint may be lost, and nothing is
//! assumed of what was not heard.
//!
//! A transaction that notifies takes a lock of the whole server's until it has committed: were it the change's own, all changes
//! of all owners and nodes would wait for each other's way to the disk: 16 clients of one server inserted 3,800 tasks a second
//! without, and 250 with a notification in the same transaction. So hints are sent after the commit, by one connection, many at a
//! time, in a transaction that writes nothing and so has nothing to wait for.

use std::fmt::Write as _;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokkuri_core::id::{Revision, TaskId};

use super::PostgresOptions;
use super::pool::ANSWER_WITHIN;

/// A task, and the revision that somebody gave it.
pub(super) type Hint = (TaskId, Revision);

const CHANNEL: &str = "tokkuri";

/// How many hints wait to be sent, and how many to be looked at, before more are dropped.
const WAITING: usize = 4_096;

/// How many hints go into one notification: a payload has less than 8,000 bytes, a hint up to 46.
const TOGETHER: usize = 150;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Starts sending what comes in and hearing what the others send, for as long as the first of the two is held.
pub(super) fn start(options: &PostgresOptions, tls: MakeRustlsConnect) -> (Sender<Hint>, Receiver<Hint>) {
    let (telling, told) = mpsc::channel(WAITING);
    let (hearing, heard) = mpsc::channel(WAITING);
    tokio::spawn(run(options.clone(), tls, told, hearing));
    (telling, heard)
}

async fn run(options: PostgresOptions, tls: MakeRustlsConnect, mut told: Receiver<Hint>, hearing: Sender<Hint>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match connected(&options, tls.clone(), &mut told, &hearing, &mut pause).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "no notifications for a while"),
        }
        // What was to be sent meanwhile is old when it can be.
        while told.try_recv().is_ok() {}
        if told.is_closed() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Why there are no notifications for a while.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("{}", super::error::words(.0))]
    Connection(#[from] tokio_postgres::Error),
    #[error("no answer within {ANSWER_WITHIN:?}")]
    Hangs(#[from] tokio::time::error::Elapsed),
}

/// One connection's life. It is `Ok` once there is nobody left who sends.
async fn connected(
    options: &PostgresOptions,
    tls: MakeRustlsConnect,
    told: &mut Receiver<Hint>,
    hearing: &Sender<Hint>,
    pause: &mut Duration,
) -> Result<(), Lost> {
    let (client, mut connection) = options.config.connect(tls).await?;
    // What this node sent, it knows.
    let own = Arc::new(AtomicI32::new(0));
    let (hears, hearing) = (Arc::clone(&own), hearing.clone());
    let listening = async move {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message? {
                AsyncMessage::Notification(said) if said.process_id() != hears.load(Ordering::Relaxed) => {
                    for hint in said.payload().split(' ').filter_map(read) {
                        let _ = hearing.try_send(hint);
                    }
                }
                _ => {}
            }
        }
        Ok::<_, Lost>(())
    };
    let telling = async {
        own.store(client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0), Ordering::Relaxed);
        client.batch_execute(&format!("LISTEN {CHANNEL}; SET statement_timeout = '4s'")).await?;
        *pause = FIRST_PAUSE;
        tell(&client, told).await
    };
    // The client's questions are answered only while the connection is driven.
    let (mut listening, mut telling) = (pin!(listening), pin!(telling));
    tokio::select! {
        ended = &mut listening => match ended {
            Err(error) => Err(error),
            // The server has closed it.
            Ok(()) => telling.await,
        },
        ended = &mut telling => ended,
    }
}

/// Sends what comes in until nothing can any more.
async fn tell(client: &Client, told: &mut Receiver<Hint>) -> Result<(), Lost> {
    let notify = client.prepare("SELECT pg_notify($1, $2)").await?;
    let mut hints = Vec::with_capacity(TOGETHER);
    loop {
        if told.recv_many(&mut hints, TOGETHER).await == 0 {
            return Ok(());
        }
        let mut payload = String::with_capacity(hints.len() * 32);
        for (id, revision) in hints.drain(..) {
            let _ = write!(payload, "{}{}:{:x}", if payload.is_empty() { "" } else { " " }, id, revision.0);
        }
        // A connection that hangs is as good as none: the next one is another.
        timeout(ANSWER_WITHIN, client.execute(&notify, &[&CHANNEL, &payload])).await??;
    }
}

fn read(text: &str) -> Option<Hint> {
    let (id, revision) = text.split_once(':')?;
    Some((id.parse().ok()?, Revision(u64::from_str_radix(revision, 16).ok()?)))
}
