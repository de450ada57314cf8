//! The time of the stores that live in this process: a clock that never goes back, whatever the machine's own does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use tokkuri_core::time::Millis;

use crate::wall_clock;

/// A clock that never goes back: when its source does, it stands still until the source has caught up.
pub struct Clock {
    source: Arc<dyn Fn() -> Millis + Send + Sync>,
    latest: AtomicU64,
}

impl Clock {
    /// The wall clock of this machine.
    pub fn wall() -> Self {
        Self::new(Arc::new(|| {
            let since = wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        }))
    }

    /// A clock that follows `source`.
    pub fn new(source: Arc<dyn Fn() -> Millis + Send + Sync>) -> Self {
        Self { source, latest: AtomicU64::new(0) }
    }

    /// The time: never earlier than what any thread was told before.
    pub fn now(&self) -> Millis {
        self.at_least((self.source)())
    }

    /// Whatever the source says, it is this late. Returns what the clock shows then.
    pub fn at_least(&self, moment: Millis) -> Millis {
        // Most readings fall into the same millisecond: they need no write to a cache line that all threads share.
        let latest = self.latest.load(Ordering::Acquire);
        if moment.0 <= latest {
            return Millis(latest);
        }
        Millis(self.latest.fetch_max(moment.0, Ordering::AcqRel).max(moment.0))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("latest", &self.latest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_whose_source_goes_back_stands_still() {
        let source = Arc::new(AtomicU64::new(7));
        let read = Arc::clone(&source);
        let clock = Clock::new(Arc::new(move || Millis(read.load(Ordering::Relaxed))));
        assert_eq!(clock.now(), Millis(7));
        source.store(3, Ordering::Relaxed);
        assert_eq!(clock.now(), Millis(7));
        source.store(8, Ordering::Relaxed);
        assert_eq!(clock.now(), Millis(8));
    }
}
