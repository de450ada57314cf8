//! Time, as the store tells it. No machine here reads a clock; see [`crate::store`] for whose time it is.

use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z by the clock of the store (or, where a machine says so, of the process).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub u64);

impl Millis {
    /// This long after `self`; the end of time if it would be past it.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This long before `self`; the beginning of time if it would be before it.
    #[must_use]
    pub const fn before(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to `self`, 0 if it was later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// As ISO 8601 in UTC, the form of `createdAt` and `lastUpdatedAt` (tasks extension, § Task).
    pub fn iso8601(self) -> String {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_in_utc() {
        assert_eq!(Millis(0).iso8601(), "1970-01-01T00:00:00Z");
        assert_eq!(Millis(1_788_249_600_123).iso8601(), "2026-09-01T08:00:00.123Z");
        assert!(Millis(u64::MAX).iso8601().starts_with("9999-"));
    }
}
