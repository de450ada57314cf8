//! The database's tables, and how an older database becomes a newer one while nodes start at once.

use deadpool_postgres::Object;
use tokio_postgres::Error;

/// Whoever changes the schema holds this lock until it has committed ("tokkuri" in ASCII).
const LOCK: i64 = 0x0074_6f6b_6b75_7269;

/// `MIGRATIONS[n]` makes a database of schema `n` one of schema `n + 1`. What was released is never changed: a change is one more,
/// and one that the nodes of the version before, which still run, can live with.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The newest schema that this version knows.
pub(super) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// What a store learns of its database when it opens it.
pub(super) struct Found {
    /// The schema that was found, if it is newer than any that this version knows; nothing else is to be believed then.
    pub(super) newer: Option<i64>,
    /// The secret, drawn by whoever came first.
    pub(super) secret: [u8; 32],
    /// The database's time has been this late.
    pub(super) latest: i64,
}

/// Makes the database one of the newest schema, whatever it was, or leaves it untouched. Of several at once, one does it and the
/// others find it done.
pub(super) async fn bring_up_to_date(connection: &mut Object, drawn: [u8; 32]) -> Result<Found, Error> {
    let transaction = connection.transaction().await?;
    // The lock comes in a statement of its own: the next one then sees what its last holder did.
    transaction.batch_execute("SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '60s'").await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let is_there: bool = transaction
        .query_one("SELECT to_regclass(quote_ident(current_schema()) || '.tokkuri_schema') IS NOT NULL", &[])
        .await?
        .get(0);
    let found: i64 = match is_there {
        true => transaction.query_one("SELECT version FROM tokkuri_schema", &[]).await?.get(0),
        false => 0,
    };
    let pending = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found..));
    let Some(pending) = pending else {
        return Ok(Found { newer: Some(found), secret: drawn, latest: 0 });
    };
    for migration in pending {
        transaction.batch_execute(migration).await?;
    }
    if !pending.is_empty() {
        transaction.execute("UPDATE tokkuri_schema SET version = $1", &[&NEWEST]).await?;
    }
    transaction
        .execute("INSERT INTO tokkuri_kept VALUES ('state_secret', $1) ON CONFLICT DO NOTHING", &[&drawn.as_slice()])
        .await?;
    let row = transaction
        .query_one("SELECT value, (SELECT at FROM tokkuri_clock) FROM tokkuri_kept WHERE name = 'state_secret'", &[])
        .await?;
    let kept: &[u8] = row.get(0);
    let secret = kept.try_into().unwrap_or(drawn);
    let latest = row.get(1);
    transaction.commit().await?;
    Ok(Found { newer: None, secret, latest })
}
