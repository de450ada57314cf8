//! How the stores that outlive the process write tasks down: the whole of a task as one JSON text, and beside it, in columns,
//! what is asked for.

use tokkuri_core::task::Task;
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

/// A task as one text. What it carries is in there byte for byte.
pub(super) fn written(task: &Task<Json>) -> serde_json::Result<String> {
    serde_json::to_string(task)
}

/// The task that a text says.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Task<Json>> {
    serde_json::from_slice(text)
}

/// A moment as the signed integer that databases have: what is beyond the largest is that.
pub(super) fn integer(moment: Millis) -> i64 {
    duration(moment.0)
}

/// The same for a length of time.
pub(super) fn duration(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// And back.
pub(super) fn moment(integer: i64) -> Millis {
    Millis(integer.max(0).cast_unsigned())
}
