//! The store in a Postgres database: for several nodes, which share it and nothing else.
//!
//! # The client
//! `tokio-postgres` with `deadpool-postgres`. Each request is one prepared statement, a function where it takes several, and
//! needs no more of a client than to send it and to tell what became of it: whether the answer was the server's word or its
//! silence. Both have no macros, no query builder and no second runtime; what they do on the wire is what stands in `requests`.
//!
//! # How it works
//! * Every request is one statement, which is a transaction of its own. The database decides nothing but what
//!   [`tokkuri_core::store`] says; the nodes decide nothing at all.
//! * The time is the database's (`clock_timestamp()`), read within the statement, where it matters: after the locks that it has
//!   to wait for. No node's clock is ever looked at.
//! * Should the database's clock be set back, time stands still until it has caught up: each store object tells the latest
//!   time that it has shown with every statement, and raises what the database keeps of it with every lease. A node that heard nothing
//!   for a while is behind by no more than that, which is less than what every look at the store reaches back.
//! * An insert counts its owner's tasks under a lock of the owner's, which ends with the transaction. Other owners have other
//!   locks.
//! * A change is visible once it is committed; its own time is read before that. Timeouts bound the time between the two:
//!   see [`Store::visible_after_ms`]. What they do not bound is the server's own way to its disk at the commit: a look reaches back to
//!   what is on that way (`late`).
//! * What is asked of one task, or inserted for one owner, takes turns within a store before it takes a connection.
//! * A task that is loaded while somebody still holds the same state of it is that one: the memory is taken once.
//! * Other nodes are told of each change by `NOTIFY`: a hint, as everything that makes it fast.
//!
//! # How fast
//! Two nodes' stores with 16 clients between them, and `pgbench` with as many and the same statements, prepared, on the same server
//! with `fsync`, in turn (medians of three turns, on two cores that had other work): 2,765 creates a second, 0.97 of `pgbench`'s; 15,711
//! gets a second, 0.49 of its 32,023. The goal is 0.7, so gets are too slow: what they cost beside their statement is still to be
//! found. The ignored test `speed` measures it.

mod error;
mod held;
mod hints;
mod inserts;
mod late;
mod one_task;
mod options;
mod pool;
mod requests;
mod schema;
mod tls;
mod turns;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use error::OpenError;
pub use options::PostgresOptions;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tokkuri_core::id::{NodeId, Revision, TaskId};
use tokkuri_core::store::{Answer, Outcome, Request, Unavailable};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use self::error::Failure;
use self::held::Held;
use self::hints::Hint;
use self::inserts::Waiting;
use self::late::Late;
use self::one_task::{Answering, Commit};
use self::pool::Pool;
use self::requests::Asked;
use self::turns::Turns;
use super::codec::integer;
use super::{Reply, Store};

/// Tasks in a Postgres database.
///
/// # Contract
/// * What was answered is durable, as far as the server is: a server with `fsync = off` is not.
/// * Any number of stores, on any number of machines, may use one database at once.
/// * It never hangs on a database that does: what is not answered in a few seconds is answered with [`Outcome::Unavailable`], which
///   says whether it may have been done all the same. It works again as soon as the database does.
///
/// It needs `LISTEN` and prepared statements: a pooler in between has to keep sessions.
pub struct PostgresStore {
    shared: Arc<Shared>,
    runtime: Handle,
    secret: [u8; 32],
    heard: Mutex<Option<mpsc::Receiver<Hint>>>,
}

/// What the requests under way need of their store.
struct Shared {
    pool: Pool,
    clock: Latest,
    held: Held,
    inserts: Turns<[u8; 32], Waiting>,
    loads: Turns<TaskId, Answering>,
    commits: Turns<TaskId, Commit>,
    telling: Option<mpsc::Sender<Hint>>,
    late: Late,
}

impl PostgresStore {
    /// Connects, and brings the database's tables up to date. Needs a tokio runtime, which carries out the requests, too.
    ///
    /// # Errors
    /// [`OpenError`], in words for whoever started the server.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let tls = tls::connector(&options.verify)?;
        let pool = Pool::new(&options, tls.clone());
        let failed = |failure: &Failure| OpenError::of(&options, failure);
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| OpenError::Postgres { database: options.database(), why: error.to_string() })?;
        let mut connection = pool.connection().await.map_err(|failure| failed(&failure))?;
        let found =
            schema::bring_up_to_date(&mut connection, secret).await.map_err(|error| failed(&Failure::Asked(error)))?;
        drop(connection);
        if let Some(found) = found.newer {
            return Err(OpenError::Newer { database: options.database(), found, known: schema::NEWEST });
        }
        let (telling, heard) = match options.notify {
            true => {
                let (telling, heard) = hints::start(&options, tls);
                (Some(telling), Some(heard))
            }
            false => (None, None),
        };
        let clock = Latest::default();
        clock.at_least(super::codec::moment(found.latest));
        Ok(Self {
            shared: Arc::new(Shared {
                pool,
                clock,
                held: Held::default(),
                inserts: Turns::default(),
                loads: Turns::default(),
                commits: Turns::default(),
                telling,
                late: Late::default(),
            }),
            runtime: Handle::current(),
            secret: found.secret,
            heard: Mutex::new(heard),
        })
    }

    /// How the database would carry out a request, in the words of `EXPLAIN`. An insert's plan says little: it is a function,
    /// which counts as [`Request::Count`] does.
    ///
    /// # Errors
    /// If the database is not available.
    pub async fn plan(&self, request: &Request<Json>) -> Result<String, Unavailable> {
        self.shared.plan(request).await.map_err(|failure| failure.unavailable(false))
    }
}

impl Store for PostgresStore {
    fn carry_out(&self, request: Request<Json>) -> Reply {
        let shared = Arc::clone(&self.shared);
        // On a task of its own: it is carried out whether or not anybody waits for the answer.
        let answered = match request {
            Request::Insert { draft, limit: limit @ Some(_) } => {
                let owner = requests::digest(&draft.owner);
                let (waiting, answered) = Waiting::new(draft, limit);
                if shared.inserts.push(owner, waiting) {
                    self.runtime.spawn(inserts::see_to(Arc::clone(&shared), owner));
                }
                answered
            }
            Request::Load { id } => {
                let (answering, answered) = oneshot::channel();
                if shared.loads.push(id, answering) {
                    self.runtime.spawn(one_task::load(Arc::clone(&shared), id));
                }
                answered
            }
            Request::Commit { expected, task } => {
                let (answering, answered) = oneshot::channel();
                let id = task.id;
                if shared.commits.push(id, Commit { expected, task, answering }) {
                    self.runtime.spawn(one_task::commit(Arc::clone(&shared), id));
                }
                answered
            }
            request => {
                let (answering, answered) = oneshot::channel();
                let asked = Arc::clone(&shared);
                self.runtime.spawn(async move { answering.send(asked.answer(request).await) });
                answered
            }
        };
        Reply::Later(Box::pin(async move { answered.await.unwrap_or_else(|_| shared.ended()) }))
    }

    fn state_secret(&self) -> Option<[u8; 32]> {
        Some(self.secret)
    }

    fn hints(&self) -> Option<mpsc::Receiver<Hint>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shared {
    async fn answer(&self, request: Request<Json>) -> Answer<Json> {
        let changes = !reads(&request);
        match self.outcome(&request).await {
            Ok((now, outcome)) => Answer { now, outcome },
            Err(failure) => self.failed(&failure, changes),
        }
    }

    /// The answer to what could not be done.
    fn failed(&self, failure: &Failure, changes: bool) -> Answer<Json> {
        Answer { now: self.clock.latest(), outcome: Outcome::Unavailable(failure.unavailable(changes)) }
    }

    async fn outcome(&self, request: &Request<Json>) -> Result<(Millis, Outcome<Json>), Failure> {
        if let Request::TouchedSince { node, since } = request {
            return self.look(*node, *since).await;
        }
        let rows = self.rows(&requests::ask(request)?).await?;
        let (now, outcome) = match request {
            Request::Insert { draft, .. } => {
                let (now, came) = requests::inserted(&rows)?;
                let outcome = match came.first() {
                    Some(0) => Outcome::Inserted(Arc::new(draft.as_ref().clone().created(now))),
                    _ => Outcome::Exists,
                };
                (now, outcome)
            }
            _ => requests::outcome(request, &rows)?,
        };
        let outcome = self.held.in_place_of(outcome);
        self.clock.at_least(now);
        match (request, &outcome) {
            (Request::Load { id }, Outcome::Loaded(None)) if requests::is_over(&rows, &outcome)? => {
                return self.look_again(request, &requests::load_again(*id)).await;
            }
            (Request::Orphans { limit }, Outcome::Orphans(orphans)) if !orphans.is_empty() => {
                return self.look_again(request, &requests::orphans_for_sure(*limit)).await;
            }
            (Request::Commit { task, .. }, Outcome::Committed) => self.tell(task.id, task.revision),
            (_, Outcome::Inserted(task)) => self.tell(task.id, task.revision),
            _ => {}
        }
        Ok((now, outcome))
    }

    /// What was touched, with what became visible since the last look although it was touched long before.
    async fn look(&self, node: NodeId, since: Millis) -> Result<(Millis, Outcome<Json>), Failure> {
        let open_since = late::told(&self.rows(&late::open_since()).await?)?;
        let request = Request::TouchedSince { node, since: self.late.reach(since) };
        let (now, outcome) = requests::outcome(&request, &self.rows(&requests::ask(&request)?).await?)?;
        self.clock.at_least(now);
        self.late.looked(now, open_since);
        Ok((now, outcome))
    }

    /// What seemed to be over is asked again in a way that waits for the changes under way.
    async fn look_again(&self, request: &Request<Json>, asked: &Asked) -> Result<(Millis, Outcome<Json>), Failure> {
        let rows = self.rows(asked).await?;
        let (now, outcome) = requests::outcome(request, &rows)?;
        self.clock.at_least(now);
        Ok((now, outcome))
    }

    async fn rows(&self, asked: &Asked) -> Result<Vec<Row>, Failure> {
        let latest = integer(self.clock.latest());
        let first: &(dyn ToSql + Sync) = &latest;
        let params: Vec<_> = std::iter::once(first).chain(asked.params.iter().map(|it| it.as_ref() as _)).collect();
        self.pool.rows(&asked.sql, &params, asked.changes).await
    }

    async fn plan(&self, request: &Request<Json>) -> Result<String, Failure> {
        let asked = requests::ask(request)?;
        let nulls = vec!["NULL"; asked.params.len() + 1].join(", ");
        let connection = self.pool.connection().await?;
        let explain = format!("PREPARE tokkuri_plan AS {}; EXPLAIN EXECUTE tokkuri_plan ({nulls})", asked.sql);
        let said = connection.simple_query(&explain).await.map_err(Failure::Before)?;
        connection.batch_execute("DEALLOCATE tokkuri_plan").await.map_err(Failure::Before)?;
        let lines = said.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Tells the other nodes, unless too much waits to be told already.
    fn tell(&self, id: TaskId, revision: Revision) {
        if let Some(telling) = &self.telling {
            let _ = telling.try_send((id, revision));
        }
    }

    /// Only a panic or the end of the runtime leaves a request without an answer.
    fn ended(&self) -> Answer<Json> {
        let why = "the runtime of the Postgres store has ended".into();
        Answer { now: self.clock.latest(), outcome: Outcome::Unavailable(Unavailable { why, maybe_done: true }) }
    }
}

/// Whether a request changes nothing, so that nothing can have been done of one that failed.
fn reads(request: &Request<Json>) -> bool {
    match request {
        Request::Load { .. }
        | Request::Count { .. }
        | Request::Due { .. }
        | Request::Orphans { .. }
        | Request::TouchedSince { .. }
        | Request::Page { .. }
        | Request::Nodes => true,
        Request::Insert { .. }
        | Request::Commit { .. }
        | Request::Remove { .. }
        | Request::Join { .. }
        | Request::Renew { .. }
        | Request::Resign { .. }
        | Request::Drain { .. } => false,
    }
}

/// The latest time that this store has shown.
#[derive(Debug, Default)]
struct Latest(AtomicU64);

impl Latest {
    fn latest(&self) -> Millis {
        Millis(self.0.load(Ordering::Acquire))
    }

    fn at_least(&self, moment: Millis) {
        self.0.fetch_max(moment.0, Ordering::AcqRel);
    }
}

impl fmt::Debug for PostgresStore {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("pool", &self.shared.pool)
            .field("latest", &self.shared.clock)
            .finish_non_exhaustive()
    }
}
