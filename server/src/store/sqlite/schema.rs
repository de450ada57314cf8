//! The file's tables, and how an older file becomes a newer one.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::OpenError;

/// Says that a SQLite file is a store of tasks ("tkkr").
const APPLICATION_ID: i64 = 0x746b_6b72;

/// `MIGRATIONS[n]` makes a file of schema `n` one of schema `n + 1`. What was released is never changed: a change is one more.
const MIGRATIONS: &[&str] = &[
    // The columns are what changes are decided by; `task` is the whole of it as JSON. Everything else is asked of the mirror,
    // so an insert writes to no more indexes than these. Times beyond the largest integer are kept as that.
    "CREATE TABLE tasks (
        id        BLOB    NOT NULL UNIQUE,
        revision  INTEGER NOT NULL,
        live      INTEGER NOT NULL,
        principal TEXT    NOT NULL,
        server    TEXT    NOT NULL,
        client    TEXT    NOT NULL,
        resource  TEXT    NOT NULL,
        node      INTEGER NOT NULL,
        attempt   INTEGER NOT NULL,
        expires   INTEGER NOT NULL,
        updated   INTEGER NOT NULL,
        touched   INTEGER NOT NULL,
        task      TEXT    NOT NULL
     ) STRICT;
     CREATE INDEX live_tasks ON tasks (principal, server, client, resource, expires) WHERE live = 1;
     CREATE TABLE kept (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;",
];

/// The newest schema that this version knows.
pub(super) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Makes the file one of the newest schema, whatever it was, or refuses it untouched.
pub(super) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::of_sqlite(path, &error);
    let transaction = connection.transaction().map_err(failed)?;
    let number = |pragma: &str| transaction.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, found) = (number("application_id").map_err(failed)?, number("user_version").map_err(failed)?);
    let is_empty = |transaction: &Transaction<'_>| {
        transaction.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get::<_, bool>(0))
    };
    let is_new = application == 0 && found == 0 && is_empty(&transaction).map_err(failed)?;
    if application != APPLICATION_ID && !is_new {
        return Err(OpenError::Foreign { path: path.into() });
    }
    let pending = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found..));
    let Some(pending) = pending else {
        return Err(OpenError::Newer { path: path.into(), found, known: NEWEST });
    };
    if pending.is_empty() {
        return Ok(());
    }
    for migration in pending {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    transaction.pragma_update(None, "user_version", NEWEST).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// The file's secret, which is drawn when it is first asked for.
pub(super) fn secret(connection: &Connection, path: &Path) -> Result<[u8; 32], OpenError> {
    let failed = |error: rusqlite::Error| OpenError::of_sqlite(path, &error);
    let kept = "SELECT value FROM kept WHERE name = 'state_secret'";
    if let Some(secret) = connection.query_row(kept, [], |row| row.get(0)).optional().map_err(failed)? {
        return Ok(secret);
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| OpenError::Io { path: path.into(), source: error.into() })?;
    connection.execute("INSERT INTO kept VALUES ('state_secret', ?)", [secret]).map_err(failed)?;
    Ok(secret)
}
