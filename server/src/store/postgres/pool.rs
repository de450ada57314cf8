//! Connections: opened when they are needed, replaced when they end, and never waited for without end.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Connect, HookError, Manager, ManagerConfig, Object, PoolError, RecyclingMethod};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresOptions;
use super::error::Failure;

/// How long one address is tried.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// How long a request waits for a connection: its turn and, if need be, a new one.
const CONNECTION_WITHIN: Duration = Duration::from_secs(5);

/// How long a request waits for its answer. The server gives up on a statement before that, and then says so.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How often a statement that stumbled over another one is asked again.
const COLLISIONS: u32 = 4;

/// What holds of every connection.
///
/// * The timeouts bound how long after its own time a change may become visible: far less than core's
///   [`OVERLAP_MS`](tokkuri_core::host::OVERLAP_MS). Nothing of ours stays in a transaction between two statements.
/// * Statements rely on each seeing what was committed before it began (`READ COMMITTED`).
/// * Whatever the statistics say, a plan that reads the whole table is never right, and a plan is made once. Estimates of what is
///   due, of which there is mostly nothing, would make it another one each time.
/// * A commit that is answered is durable, whatever the server's default is; what it asks of standbys stays as it is.
const SESSION: &str = "
    SET statement_timeout = '4s'; SET lock_timeout = '3s'; SET idle_in_transaction_session_timeout = '4s';
    SET default_transaction_isolation = 'read committed';
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The connections of one store.
pub(super) struct Pool {
    inner: deadpool_postgres::Pool,
    place: String,
    is_failing: AtomicBool,
}

impl Pool {
    pub(super) fn new(options: &PostgresOptions, tls: MakeRustlsConnect) -> Self {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(options.config.clone(), Session { tls }, config);
        let inner = deadpool_postgres::Pool::builder(manager).max_size(options.connections).build();
        let inner = inner.expect("a pool without timeouts of its own needs no runtime to be built");
        Self { inner, place: options.place(), is_failing: AtomicBool::new(false) }
    }

    /// Asks one statement, which is a transaction of its own. What `changes` nothing is asked again should the connection
    /// turn out to have ended.
    pub(super) async fn rows(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        changes: bool,
    ) -> Result<Vec<Row>, Failure> {
        let mut collisions = 0;
        let mut disconnects = 0;
        loop {
            match self.ask(sql, params).await {
                Ok(rows) => {
                    self.succeeded();
                    return Ok(rows);
                }
                Err(failure) if failure.is_collision() && collisions < COLLISIONS => {
                    collisions += 1;
                    tokio::time::sleep(Duration::from_millis(u64::from(getrandom::u32().unwrap_or(0) % 20))).await;
                }
                Err(failure) if failure.is_disconnect() && disconnects == 0 && !(changes && failure.maybe_done()) => {
                    disconnects += 1;
                }
                Err(failure) => {
                    self.failed(&failure);
                    return Err(failure);
                }
            }
        }
    }

    /// A connection for work of several statements, at the store's start.
    pub(super) async fn connection(&self) -> Result<Object, Failure> {
        match timeout(CONNECTION_WITHIN, self.inner.get()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)))) => {
                Err(Failure::NoConnection(error))
            }
            Ok(Err(other)) => Err(Failure::Unasked(other.to_string())),
            Err(_elapsed) => Err(Failure::NoConnectionWithin(CONNECTION_WITHIN)),
        }
    }

    async fn ask(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let connection = self.connection().await?;
        let asked = async {
            let statement = match timeout(ANSWER_WITHIN, connection.prepare_cached(sql)).await {
                Ok(prepared) => prepared.map_err(Failure::Before)?,
                Err(_elapsed) => return Err(Failure::NoConnectionWithin(ANSWER_WITHIN)),
            };
            match timeout(ANSWER_WITHIN, connection.query(&statement, params)).await {
                Ok(rows) => rows.map_err(Failure::Asked),
                Err(_elapsed) => Err(Failure::NoAnswerWithin(ANSWER_WITHIN)),
            }
        }
        .await;
        if asked.as_ref().is_err_and(Failure::spoils_the_connection) {
            // Nobody is to be handed a connection that still owes an answer.
            drop(Object::take(connection));
        }
        asked
    }

    fn failed(&self, failure: &Failure) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(why = failure.why(), "{} does not do what it is asked", self.place);
        }
    }

    fn succeeded(&self) {
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("{} does again what it is asked", self.place);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("place", &self.place).field("status", &self.inner.status()).finish_non_exhaustive()
    }
}

/// Opens connections that are set up.
struct Session {
    tls: MakeRustlsConnect,
}

type Opening<'a> = Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connect for Session {
    fn connect(&self, config: &Config) -> Opening<'_> {
        let (config, tls) = (config.clone(), self.tls.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            // That it ends is told to whoever asks next.
            let driving = tokio::spawn(async move { drop(connection.await) });
            let driving = AbortOnDrop(Some(driving));
            client.batch_execute(SESSION).await?;
            Ok((client, driving.keep()))
        })
    }
}

/// Ends the task of a connection that is given up before it was ready.
struct AbortOnDrop(Option<JoinHandle<()>>);

impl AbortOnDrop {
    fn keep(mut self) -> JoinHandle<()> {
        self.0.take().expect("it is kept once")
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
