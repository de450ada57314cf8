//! What this process takes for the time of day: for the stores that live in it, and for the ends of access tokens.
//!
//! Nothing that several nodes see may depend on it. A shared store has a time of its own, a node counts its lease by the monotonic
//! clock; so a test bed may [`shift`] one node's, and nobody else notices.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

static OFFSET_MS: AtomicI64 = AtomicI64::new(0);

/// From now on this process takes the time of day to be so many milliseconds later, or earlier, than the machine does. A switch of
/// test beds (`TOKKURI_TEST_CLOCK_OFFSET_MS`).
pub fn shift(offset_ms: i64) {
    OFFSET_MS.store(offset_ms, Ordering::Relaxed);
}

/// The time of day.
pub(crate) fn now() -> SystemTime {
    shifted(SystemTime::now(), OFFSET_MS.load(Ordering::Relaxed))
}

fn shifted(now: SystemTime, offset_ms: i64) -> SystemTime {
    let offset = Duration::from_millis(offset_ms.unsigned_abs());
    let shifted = if offset_ms < 0 { now.checked_sub(offset) } else { now.checked_add(offset) };
    shifted.unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shifted_both_ways_and_never_out_of_bounds() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(shifted(now, 1_500), now + Duration::from_millis(1_500));
        assert_eq!(shifted(now, -1_500), now - Duration::from_millis(1_500));
        assert_eq!(shifted(now, 0), now);
        for offset in [i64::MIN, i64::MAX] {
            let _ = shifted(now, offset);
        }
    }
}
