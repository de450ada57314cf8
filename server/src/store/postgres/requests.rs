//! Each request as one statement, and its rows as the outcome.
//!
//! Every statement is a transaction of its own, a prepared one, and one round trip. Its first parameter is the latest time that
//! this store has shown: what a statement calls `now` is never earlier, and is what is answered.
//!
//! # Plans
//! What the statements cost on a table of 50,000 tasks, as the tests that look at it see it (`EXPLAIN`, generic plans, Postgres
//! 15): none reads more of the table than it answers.
//!
//! | request | plan |
//! |---|---|
//! | load | one probe of the primary key |
//! | commit | one probe of the primary key |
//! | remove | one probe of the primary key for each row |
//! | count, insert | the owner's part of `tokkuri_live_of_owner` that has not expired, up to the limit |
//! | due | the part of `tokkuri_due` that is due, up to the limit |
//! | orphans | one probe of `tokkuri_live_on_node` for each node that has live tasks, then the part of the lost ones |
//! | touched | the part of `tokkuri_touched_on_node` since then; before it, the locks that are held on the table |
//! | page | the primary key from where the last page ended, up to the limit; what a filter leaves out is walked over |

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use tokkuri_core::access::Owner;
use tokkuri_core::id::{Attempt, NodeId, Revision, TaskId};
use tokkuri_core::store::{self, Filter, Load, NodeState, Outcome, REMEMBERED_MS, Request};
use tokkuri_core::task::{Status, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use super::error::Failure;
use crate::store::codec::{self, duration, integer, moment};

const LOAD: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
    SELECT c.now, t.created, t.updated, t.task FROM c LEFT JOIN tokkuri_tasks t ON t.id = $2";

// A row that is over may be about to be raised by a transaction that began in time. Whoever is told that it is gone must not see
// it again: so what is under way is waited for, and only then the time is read.
const LOAD_AGAIN: &str = "
    WITH t AS MATERIALIZED (SELECT created, updated, task FROM tokkuri_tasks WHERE id = $2 FOR SHARE)
    SELECT greatest($1::bigint, tokkuri_ms()), t.created, t.updated, t.task FROM (SELECT) one LEFT JOIN t ON true";

const INSERT: &str = "SELECT * FROM tokkuri_insert($1, $2, $3, $4, $5, $6, $7, $8, $9)";

// The time is read when the row is: again, if a transaction that was under way had to be waited for.
const COMMIT: &str = "
    WITH t AS (
        UPDATE tokkuri_tasks
        SET revision = $4, status = $5, node = $6, attempt = $7, expires = $8, updated = $9, slot = $10, task = $11,
            touched = least(greatest($1::bigint, tokkuri_ms()), expires - 1)
        WHERE id = $2 AND revision = $3 AND expires > greatest($1::bigint, tokkuri_ms())
        RETURNING touched)
    SELECT coalesce((SELECT touched FROM t), greatest($1::bigint, tokkuri_ms())), EXISTS (SELECT FROM t)";

const COUNT: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
    SELECT c.now, (SELECT count(*) FROM tokkuri_tasks t WHERE t.owner = $2 AND t.status < 2 AND t.expires > c.now) FROM c";

const DUE: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
    SELECT c.now, t.id, t.revision, t.node, t.attempt, t.status, t.slot
    FROM c LEFT JOIN LATERAL (
        SELECT * FROM tokkuri_tasks WHERE expires <= c.now ORDER BY expires, id LIMIT $2::bigint
    ) t ON true
    ORDER BY t.expires, t.id";

// Locked in the order of their ids, so that two nodes that remove the same rows wait for each other one way only. Found by their
// ids, too, and not among all that is due: hence the difference.
const REMOVE: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now),
    due AS MATERIALIZED (
        SELECT t.id
        FROM c, unnest($2::bytea[], $3::bigint[]) AS r(id, revision)
        JOIN tokkuri_tasks t ON t.id = r.id AND t.revision = r.revision
        WHERE t.expires - c.now <= 0
        ORDER BY t.id
        FOR UPDATE OF t),
    gone AS (DELETE FROM tokkuri_tasks t USING due WHERE t.id = due.id RETURNING t.id)
    SELECT c.now, gone.id FROM c LEFT JOIN gone ON true";

// The nodes that have live tasks are found by leaps through the index, one a node.
const NODES_AT_WORK: &str = "
    WITH RECURSIVE c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now),
    node (id) AS (
        (SELECT node FROM tokkuri_tasks WHERE status < 2 ORDER BY node LIMIT 1)
        UNION ALL
        SELECT (SELECT t.node FROM tokkuri_tasks t WHERE t.status < 2 AND t.node > node.id ORDER BY t.node LIMIT 1)
        FROM node WHERE node.id IS NOT NULL),
    leaseless AS (
        SELECT node.id FROM node, c
        WHERE node.id IS NOT NULL
            AND NOT EXISTS (SELECT FROM tokkuri_nodes n WHERE n.id = node.id AND n.leased_until > c.now)),";

const LOST: &str = "
    lost AS (SELECT id FROM leaseless)";

// A lease that seems to have run out may be about to be extended by a transaction that read the time before it did. So it is
// waited for, and who extended it is not lost. Whoever comes later finds that it ran out, and does not extend it any more.
const LOST_FOR_SURE: &str = "
    ran_out AS MATERIALIZED (
        SELECT n.id FROM c, tokkuri_nodes n JOIN leaseless ON n.id = leaseless.id
        WHERE n.leased_until <= c.now
        FOR SHARE OF n),
    lost AS (
        SELECT id FROM ran_out
        UNION ALL
        SELECT id FROM leaseless WHERE NOT EXISTS (SELECT FROM tokkuri_nodes n WHERE n.id = leaseless.id))";

const TASKS_OF_THE_LOST: &str = "
    SELECT c.now, t.created, t.updated, t.task
    FROM c LEFT JOIN LATERAL (
        SELECT t.* FROM lost CROSS JOIN LATERAL (
            SELECT * FROM tokkuri_tasks o
            WHERE o.node = lost.id AND o.status < 2 AND o.expires > c.now
            ORDER BY o.id LIMIT $2::bigint
        ) t
        LIMIT $2::bigint
    ) t ON true";

const TOUCHED: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
    SELECT c.now, t.id, t.revision
    FROM c LEFT JOIN tokkuri_tasks t ON t.node = $2 AND t.touched >= $3 AND t.expires > c.now";

const JOIN: &str = "SELECT * FROM tokkuri_join($1, $2, $3, $4, $5)";

const RENEW: &str = "SELECT * FROM tokkuri_renew($1, $2, $3, $4, $5, $6)";

const DRAIN: &str = "SELECT * FROM tokkuri_drain($1, $2, $3)";

const NODES: &str = "
    WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
    SELECT c.now, n.node, n.leased_until, n.runs, n.queued, n.heeds, n.drain
    FROM c LEFT JOIN tokkuri_nodes n ON n.leased_until > c.now - $2::bigint";

const RESIGN: &str = "
    WITH gone AS (DELETE FROM tokkuri_nodes WHERE id = $2)
    SELECT greatest($1::bigint, tokkuri_ms())";

type Param = Box<dyn ToSql + Sync + Send>;

/// What is asked of the database.
pub(super) struct Asked {
    pub(super) sql: Cow<'static, str>,
    /// All parameters but the first, which is the time.
    pub(super) params: Vec<Param>,
    pub(super) changes: bool,
}

impl Asked {
    pub(super) fn look(sql: &'static str, params: Vec<Param>) -> Self {
        Self { sql: sql.into(), params, changes: false }
    }

    fn change(sql: &'static str, params: Vec<Param>) -> Self {
        Self { sql: sql.into(), params, changes: true }
    }
}

/// An owner as the database knows it: the parts with their lengths, so that no two owners are one text.
pub(super) fn digest(owner: &Owner) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in [&owner.principal, &owner.server, &owner.client, &owner.resource] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

/// The statement that carries out a request; an insert has [`insert`].
pub(super) fn ask(request: &Request<Json>) -> Result<Asked, Failure> {
    Ok(match request {
        Request::Load { id } => Asked::look(LOAD, vec![bytes(id)]),
        Request::Insert { draft, limit } => {
            insert(&digest(&draft.owner), &[Insertion::new(draft.as_ref().clone().created(Millis(0)), *limit)?])
        }
        Request::Commit { expected, task } => Asked::change(
            COMMIT,
            vec![
                bytes(&task.id),
                Box::new(expected.0.cast_signed()),
                Box::new(task.revision.0.cast_signed()),
                Box::new(number(task.status())),
                Box::new(task.node.0.cast_signed()),
                Box::new(i64::from(task.attempt.0)),
                Box::new(integer(task.expires())),
                Box::new(integer(task.updated)),
                Box::new(task.slot.as_ref().map(|slot| slot.as_str().as_bytes().to_vec())),
                Box::new(written(task)?),
            ],
        ),
        Request::Count { owner } => Asked::look(COUNT, vec![Box::new(digest(owner).to_vec())]),
        Request::Due { limit } => Asked::look(DUE, vec![Box::new(i64::from(*limit))]),
        Request::Remove { rows } => Asked::change(
            REMOVE,
            vec![
                Box::new(rows.iter().map(|(id, _)| id.to_bytes().to_vec()).collect::<Vec<_>>()),
                Box::new(rows.iter().map(|(_, revision)| revision.0.cast_signed()).collect::<Vec<_>>()),
            ],
        ),
        Request::Orphans { limit } => orphans(LOST, *limit),
        Request::TouchedSince { node, since } => {
            Asked::look(TOUCHED, vec![Box::new(node.0.cast_signed()), Box::new(integer(*since))])
        }
        Request::Page { filter, after, limit } => page(filter, *after, *limit),
        Request::Join { node, lease_ms } => {
            let about = serde_json::to_vec(node).map_err(|error| Failure::Unasked(error.to_string()))?;
            Asked::change(
                JOIN,
                vec![
                    Box::new(node.id.0.cast_signed()),
                    Box::new(about),
                    Box::new(duration(*lease_ms)),
                    Box::new(duration(REMEMBERED_MS)),
                ],
            )
        }
        Request::Renew { node, load, lease_ms } => Asked::change(
            RENEW,
            vec![
                Box::new(node.0.cast_signed()),
                Box::new(i64::from(load.runs)),
                Box::new(i64::from(load.queued)),
                Box::new(load.heeds.map(integer)),
                Box::new(duration(*lease_ms)),
            ],
        ),
        Request::Nodes => Asked::look(NODES, vec![Box::new(duration(REMEMBERED_MS))]),
        Request::Drain { node, drain } => {
            Asked::change(DRAIN, vec![Box::new(node.0.cast_signed()), Box::new(drain.map(duration))])
        }
        Request::Resign { node } => Asked::change(RESIGN, vec![Box::new(node.0.cast_signed())]),
    })
}

/// The statement that loads a row of which it was seen that it is over.
pub(super) fn load_again(id: TaskId) -> Asked {
    Asked::look(LOAD_AGAIN, vec![bytes(&id)])
}

/// The statement that names orphans of which it was seen that there are some.
pub(super) fn orphans_for_sure(limit: u32) -> Asked {
    orphans(LOST_FOR_SURE, limit)
}

fn orphans(lost: &str, limit: u32) -> Asked {
    let sql = [NODES_AT_WORK, lost, TASKS_OF_THE_LOST].concat();
    Asked { sql: sql.into(), params: vec![Box::new(i64::from(limit))], changes: false }
}

/// A task to be inserted.
pub(super) struct Insertion {
    id: Vec<u8>,
    limit: Option<i64>,
    node: i64,
    tool: Vec<u8>,
    ttl: i64,
    task: Vec<u8>,
}

impl Insertion {
    pub(super) fn new(task: Task<Json>, limit: Option<u32>) -> Result<Self, Failure> {
        Ok(Self {
            id: task.id.to_bytes().to_vec(),
            limit: limit.map(i64::from),
            node: task.node.0.cast_signed(),
            tool: task.origin.tool.as_bytes().to_vec(),
            ttl: duration(task.ttl_ms),
            task: written(&task)?,
        })
    }
}

/// The statement that inserts tasks of one owner.
pub(super) fn insert(owner: &[u8; 32], tasks: &[Insertion]) -> Asked {
    let [a, b, c, d, e, f, g, h, ..] = *owner;
    let of = |part: fn(&Insertion) -> &Vec<u8>| Box::new(tasks.iter().map(|it| part(it).clone()).collect::<Vec<_>>());
    Asked::change(
        INSERT,
        vec![
            Box::new(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
            Box::new(owner.to_vec()),
            of(|it| &it.id),
            Box::new(tasks.iter().map(|it| it.limit).collect::<Vec<_>>()),
            Box::new(tasks.iter().map(|it| it.node).collect::<Vec<_>>()),
            of(|it| &it.tool),
            Box::new(tasks.iter().map(|it| it.ttl).collect::<Vec<_>>()),
            of(|it| &it.task),
        ],
    )
}

/// One row more than the page has tells whether there is more.
fn page(filter: &Filter, after: Option<TaskId>, limit: u32) -> Asked {
    let mut params: Vec<Param> = vec![Box::new(i64::from(limit) + 1)];
    let mut rule = String::new();
    let mut also = |text: &str, param: Param| {
        params.push(param);
        let _ = write!(rule, " AND {text} ${}", params.len() + 1);
    };
    if let Some(after) = after {
        also("id >", bytes(&after));
    }
    if let Some(tool) = &filter.tool {
        also("tool =", Box::new(tool.as_bytes().to_vec()));
    }
    if let Some(owner) = &filter.owner {
        also("owner =", Box::new(digest(owner).to_vec()));
    }
    if let Some(node) = filter.node {
        also("node =", Box::new(node.0.cast_signed()));
    }
    if let Some(before) = filter.created_before {
        also("created <", Box::new(integer(before)));
    }
    if !filter.statuses.is_empty() {
        params.push(Box::new(filter.statuses.iter().map(|status| number(*status)).collect::<Vec<_>>()));
        let _ = write!(rule, " AND status = ANY (${})", params.len() + 1);
        if filter.statuses.iter().all(|status| !status.is_terminal()) {
            rule.push_str(" AND status < 2");
        }
    }
    let sql = format!(
        "WITH c AS MATERIALIZED (SELECT greatest($1::bigint, tokkuri_ms()) AS now)
        SELECT c.now, t.created, t.updated, t.task
        FROM c LEFT JOIN LATERAL (
            SELECT * FROM tokkuri_tasks WHERE expires > c.now{rule} ORDER BY id LIMIT $2::bigint
        ) t ON true
        ORDER BY t.id"
    );
    Asked { sql: sql.into(), params, changes: false }
}

/// What the rows say: the time, and the outcome.
pub(super) fn outcome(request: &Request<Json>, rows: &[Row]) -> Result<(Millis, Outcome<Json>), Failure> {
    let first = rows.first().ok_or_else(|| Failure::Unreadable("an answer without a row".into()))?;
    let now = moment(column(first, 0)?);
    let outcome = match request {
        Request::Load { .. } => Outcome::Loaded(task(first)?.filter(|task| task.is_visible(now))),
        Request::Insert { .. } => return Err(Failure::Unreadable("inserts are read by the insert".into())),
        Request::Commit { .. } => match column(first, 1)? {
            true => Outcome::Committed,
            false => Outcome::Conflict,
        },
        Request::Count { .. } => {
            let live: i64 = column(first, 1)?;
            Outcome::Live(u32::try_from(live).unwrap_or(u32::MAX))
        }
        Request::Due { .. } => Outcome::Due(each(rows, due)?),
        Request::Remove { .. } => Outcome::Removed(each(rows, |row| id(row, 1))?),
        Request::Orphans { .. } => Outcome::Orphans(each(rows, task)?),
        Request::TouchedSince { .. } => Outcome::Touched(each(rows, |row| {
            let Some(id) = id(row, 1)? else { return Ok(None) };
            Ok(Some((id, revision(row, 2)?)))
        })?),
        Request::Page { limit, .. } => {
            let mut page = each(rows, task)?;
            let more = page.len() > *limit as usize;
            page.truncate(*limit as usize);
            Outcome::Page(page, more)
        }
        Request::Join { .. } | Request::Renew { .. } => match column::<Option<i64>>(first, 1)? {
            Some(until) => {
                Outcome::Leased { until: moment(until), drain: column::<Option<i64>>(first, 2)?.map(moment) }
            }
            None => Outcome::LeaseLost,
        },
        Request::Resign { .. } => Outcome::Released,
        Request::Nodes => {
            let mut nodes = each(rows, node)?;
            // As numbers without a sign, which the database has none of.
            nodes.sort_unstable_by_key(|state| state.node.id);
            Outcome::Nodes(nodes)
        }
        Request::Drain { .. } => Outcome::Drained(column(first, 1)?),
    };
    Ok((now, outcome))
}

/// Whether an answer is of a row that is there and over.
pub(super) fn is_over(rows: &[Row], outcome: &Outcome<Json>) -> Result<bool, Failure> {
    let Some(row) = rows.first() else { return Ok(false) };
    Ok(*outcome == Outcome::Loaded(None) && column::<Option<i64>>(row, 1)?.is_some())
}

/// What came of each insert, and when.
pub(super) fn inserted(rows: &[Row]) -> Result<(Millis, Vec<i16>), Failure> {
    let row = rows.first().ok_or_else(|| Failure::Unreadable("an answer without a row".into()))?;
    Ok((moment(column(row, 0)?), column(row, 1)?))
}

/// Without the one row that only tells the time.
fn each<T>(rows: &[Row], read: impl Fn(&Row) -> Result<Option<T>, Failure>) -> Result<Vec<T>, Failure> {
    rows.iter().filter_map(|row| read(row).transpose()).collect()
}

fn task(row: &Row) -> Result<Option<Arc<Task<Json>>>, Failure> {
    let Some(text) = column::<Option<&[u8]>>(row, 3)? else { return Ok(None) };
    let mut task = codec::read(text).map_err(|error| Failure::Unreadable(format!("a task that is none: {error}")))?;
    // When it was inserted, only the database knew the time.
    Arc::make_mut(&mut task.origin).created = moment(column(row, 1)?);
    task.updated = moment(column(row, 2)?);
    Ok(Some(Arc::new(task)))
}

fn due(row: &Row) -> Result<Option<store::Row<Json>>, Failure> {
    let Some(id) = id(row, 1)? else { return Ok(None) };
    let slot = match column::<Option<&[u8]>>(row, 6)? {
        Some(text) => {
            let slot = std::str::from_utf8(text).ok().and_then(|text| Json::parse(text).ok());
            Some(slot.ok_or_else(|| Failure::Unreadable("a slot that is no JSON".into()))?)
        }
        None => None,
    };
    Ok(Some(store::Row {
        id,
        revision: revision(row, 2)?,
        node: NodeId(column::<i64>(row, 3)?.cast_unsigned()),
        attempt: Attempt(u32::try_from(column::<i64>(row, 4)?).unwrap_or(u32::MAX)),
        live: column::<i16>(row, 5)? < 2,
        slot,
    }))
}

fn node(row: &Row) -> Result<Option<NodeState>, Failure> {
    let Some(about) = column::<Option<&[u8]>>(row, 1)? else { return Ok(None) };
    let node =
        serde_json::from_slice(about).map_err(|error| Failure::Unreadable(format!("a node that is none: {error}")))?;
    let number = |index| column::<i64>(row, index).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    Ok(Some(NodeState {
        node,
        leased_until: moment(column(row, 2)?),
        load: Load { runs: number(3)?, queued: number(4)?, heeds: column::<Option<i64>>(row, 5)?.map(moment) },
        drain: column::<Option<i64>>(row, 6)?.map(moment),
    }))
}

fn id(row: &Row, index: usize) -> Result<Option<TaskId>, Failure> {
    let bytes: Option<&[u8]> = column(row, index)?;
    let id = bytes.map(|bytes| bytes.try_into().map(TaskId::from_bytes)).transpose();
    id.map_err(|_| Failure::Unreadable("an id that is none".into()))
}

fn revision(row: &Row, index: usize) -> Result<Revision, Failure> {
    Ok(Revision(column::<i64>(row, index)?.cast_unsigned()))
}

pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Failure> {
    row.try_get(index).map_err(|error| Failure::Unreadable(super::error::words(&error)))
}

fn bytes(id: &TaskId) -> Param {
    Box::new(id.to_bytes().to_vec())
}

fn written(task: &Task<Json>) -> Result<Vec<u8>, Failure> {
    let text = codec::written(task).map_err(|error| Failure::Unasked(error.to_string()))?;
    Ok(text.into_bytes())
}

/// As the partial indexes have it: what is below 2 is live.
const fn number(status: Status) -> i16 {
    match status {
        Status::Working => 0,
        Status::InputRequired => 1,
        Status::Completed => 2,
        Status::Failed => 3,
        Status::Cancelled => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_other_parts_are_other_owners() {
        let owner = |principal: &str, server: &str| Owner {
            principal: principal.into(),
            server: server.into(),
            client: "".into(),
            resource: "".into(),
        };
        assert_ne!(digest(&owner("ab", "c")), digest(&owner("a", "bc")));
        assert_ne!(digest(&owner("a", "")), digest(&owner("", "a")));
        assert_eq!(digest(&owner("a", "b")), digest(&owner("a", "b")));
    }

    #[test]
    fn the_live_are_told_by_their_number() {
        for status in [Status::Working, Status::InputRequired, Status::Completed, Status::Failed, Status::Cancelled] {
            assert_eq!(number(status) < 2, !status.is_terminal());
        }
    }
}
