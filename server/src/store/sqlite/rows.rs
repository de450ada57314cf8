//! Tasks as rows, and each change as statements that decide for themselves whether it may be.

use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Connection, Error, Result, named_params};
use tokkuri_core::store::Outcome;
use tokkuri_core::task::Task;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use crate::store::codec::{self, integer};
use crate::store::memory::Change;

// The count looks at no more rows than the limit needs.
const INSERT: &str = "
    INSERT INTO tasks
    SELECT :id, :revision, :live, :principal, :server, :client, :resource, :node, :attempt, :expires, :updated, :touched, :task
    WHERE :limit IS NULL OR :limit > (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks
            WHERE live = 1 AND principal = :principal AND server = :server AND client = :client AND resource = :resource
                AND expires > :touched
            LIMIT ifnull(:limit, 0)))
    ON CONFLICT (id) DO NOTHING";

const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?)";

const COMMIT: &str = "
    UPDATE tasks
    SET revision = :revision, live = :live, node = :node, attempt = :attempt, expires = :expires, updated = :updated,
        touched = :touched, task = :task
    WHERE id = :id AND revision = :expected AND expires > :touched";

const REMOVE: &str = "DELETE FROM tasks WHERE id = :id AND revision = :revision AND expires <= :now";

/// Carries out a change within the open transaction.
pub(super) fn change(connection: &Connection, now: Millis, change: &Change) -> Result<Outcome<Json>> {
    match change {
        Change::Insert { draft, limit } => {
            let task = draft.as_ref().clone().created(now);
            let owner = &task.origin.owner;
            let inserted = connection.prepare_cached(INSERT)?.execute(named_params! {
                ":id": task.id.to_bytes(),
                ":revision": task.revision.0.cast_signed(),
                ":live": task.live().is_some(),
                ":principal": owner.principal.as_str(),
                ":server": owner.server.as_str(),
                ":client": owner.client.as_str(),
                ":resource": owner.resource.as_str(),
                ":node": task.node.0.cast_signed(),
                ":attempt": task.attempt.0,
                ":expires": integer(task.expires()),
                ":updated": integer(task.updated),
                ":touched": integer(now),
                ":task": written(&task)?,
                ":limit": limit,
            })?;
            if inserted == 1 {
                return Ok(Outcome::Inserted(Arc::new(task)));
            }
            let mut exists = connection.prepare_cached(EXISTS)?;
            match exists.query_row([task.id.to_bytes()], |row| row.get(0))? {
                true => Ok(Outcome::Exists),
                false => Ok(Outcome::AtTheLimit),
            }
        }
        Change::Commit { expected, task } => {
            let committed = connection.prepare_cached(COMMIT)?.execute(named_params! {
                ":id": task.id.to_bytes(),
                ":expected": expected.0.cast_signed(),
                ":revision": task.revision.0.cast_signed(),
                ":live": task.live().is_some(),
                ":node": task.node.0.cast_signed(),
                ":attempt": task.attempt.0,
                ":expires": integer(task.expires()),
                ":updated": integer(task.updated),
                ":touched": integer(now),
                ":task": written(task)?,
            })?;
            Ok(if committed == 1 { Outcome::Committed } else { Outcome::Conflict })
        }
        Change::Remove { rows } => {
            let mut remove = connection.prepare_cached(REMOVE)?;
            let mut removed = Vec::with_capacity(rows.len());
            for (id, revision) in rows {
                let row = named_params! {
                    ":id": id.to_bytes(),
                    ":revision": revision.0.cast_signed(),
                    ":now": integer(now),
                };
                if remove.execute(row)? == 1 {
                    removed.push(*id);
                }
            }
            Ok(Outcome::Removed(removed))
        }
    }
}

/// Hands on every task, with the moment when it was stored.
pub(super) fn all(connection: &Connection, mut each: impl FnMut(Arc<Task<Json>>, Millis)) -> Result<()> {
    let mut select = connection.prepare("SELECT touched, task FROM tasks")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let touched: i64 = row.get(0)?;
        let task = codec::read(row.get_ref(1)?.as_str()?.as_bytes())
            .map_err(|error| Error::FromSqlConversionFailure(1, Type::Text, error.into()))?;
        each(Arc::new(task), codec::moment(touched));
    }
    Ok(())
}

fn written(task: &Task<Json>) -> Result<String> {
    codec::written(task).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}
