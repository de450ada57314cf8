//! The mutex of this module: std's, or loom's under `cfg(tokkuri_loom)`. Not `cfg(loom)`: that one breaks hyper, and so
//! everything that is built together with it.

#[cfg(tokkuri_loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(tokkuri_loom))]
pub(super) use std::sync::{Mutex, MutexGuard};

/// Locks. A thread that panicked under the lock left the table as it was before or after its change, since the changes
/// themselves do not panic half-way: the table is good to use.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
