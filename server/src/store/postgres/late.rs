//! Changes that become visible late: how far back a look has to reach so that it misses none of them.
//!
//! A change carries the time at which its statement ran, and is visible once its transaction has ended. Timeouts bound the time
//! between the two, but for the commit's own: a disk or a standby that does not answer, or a server that is stopped and goes on, holds it
//! up for as long as it likes. Meanwhile looks go on, and each reaches back to [`OVERLAP_MS`] before the last one.
//!
//! So a look asks first since when a transaction is open that may be changing tasks: one that holds the lock which every change of a
//! row takes on its table, and gives back only after it is visible. If that is longer ago than what the next look will reach
//! back to, it is remembered for that one.
//!
//! Nothing is missed: what the look does not see is visible later than that question was asked, so its transaction was open then; and it is no
//! older than its transaction. If it is older than what the next look reaches back to, so is its transaction, and that is what was
//! remembered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::Row;
use tokkuri_core::host::OVERLAP_MS;
use tokkuri_core::time::Millis;

use super::error::Failure;
use super::requests::{Asked, column};
use crate::store::codec::moment;

// Who changes a row holds this lock on the table until the change is visible. The age of the transaction counts, and not when it
// began: it is for a time that may stand still.
const OPEN_SINCE: &str = "
    SELECT greatest($1::bigint, tokkuri_ms()) - (
        SELECT ceil(extract(epoch FROM clock_timestamp() - min(a.xact_start)) * 1000)::bigint
        FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.relation = 'tokkuri_tasks'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
            AND a.datname = current_database())";

/// Who has not looked for so long has no lease any more, and begins anew.
const REMEMBERED_MS: u64 = 3_600_000;

/// How far back the looks to come have to reach: by the time since which a transaction was open, the latest beginning of a look that
/// this is for.
#[derive(Debug, Default)]
pub(super) struct Late(Mutex<BTreeMap<Millis, Millis>>);

impl Late {
    /// A look was carried out at `now`, and before it a transaction was open since then. The next one will begin at `now` less
    /// the overlap.
    pub(super) fn looked(&self, now: Millis, open_since: Option<Millis>) {
        let next = now.before(OVERLAP_MS);
        let mut late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        late.retain(|_, begins| now.since(*begins) < REMEMBERED_MS);
        if let Some(since) = open_since.filter(|since| *since < next) {
            let begins = late.entry(since).or_default();
            *begins = next.max(*begins);
        }
    }

    /// From when on a look has to name changes which is to begin at `since`.
    pub(super) fn reach(&self, since: Millis) -> Millis {
        let late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = late.iter().find(|(_, begins)| **begins >= since);
        oldest.map_or(since, |(open_since, _)| since.min(*open_since))
    }
}

/// The statement that tells since when a transaction is open that may be changing tasks.
pub(super) fn open_since() -> Asked {
    Asked::look(OPEN_SINCE, Vec::new())
}

/// What it told; `None` if there is no such transaction.
pub(super) fn told(rows: &[Row]) -> Result<Option<Millis>, Failure> {
    let row = rows.first().ok_or_else(|| Failure::Unreadable("an answer without a row".into()))?;
    Ok(column::<Option<i64>>(row, 0)?.map(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_700_000_000_000);

    #[test]
    fn a_look_reaches_back_to_what_was_open_at_the_last_one() {
        let late = Late::default();
        let next = |now: Millis| now.before(OVERLAP_MS);
        late.looked(NOW, Some(NOW.before(OVERLAP_MS - 1)));
        late.looked(NOW, None);
        assert_eq!(late.reach(next(NOW)), next(NOW), "it does so by itself");
        let (old, later) = (NOW.before(20_000), NOW.after(1_000));
        late.looked(NOW, Some(old));
        late.looked(later, Some(old));
        for since in [next(NOW), next(later)] {
            assert_eq!(late.reach(since), old);
        }
        // It has ended: who looked after that has seen it.
        late.looked(NOW.after(2_000), None);
        assert_eq!(late.reach(next(NOW.after(2_000))), next(NOW.after(2_000)));
        // Another one, that looks rarely, has not.
        assert_eq!(late.reach(next(NOW)), old);
        assert_eq!(late.reach(Millis(0)), Millis(0), "and who begins has seen nothing");
    }

    #[test]
    fn what_nobody_needs_any_more_is_forgotten() {
        let late = Late::default();
        late.looked(NOW, Some(NOW.before(20_000)));
        late.looked(NOW.after(2 * REMEMBERED_MS), None);
        assert_eq!(late.0.lock().unwrap().len(), 0);
    }
}
