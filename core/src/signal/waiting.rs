//! The wakers of those who wait at the runs of one shard. A waiter has one place, so what it leaves behind is bounded.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::Waker;

use crate::id::TaskId;

/// Where a waiter's waker is; no other waiter of the shard ever gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

/// Wakers by task and place.
///
/// # Contract
/// Everything that it hands back is to be woken or dropped after the shard's lock is released: both run an executor's code.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    last: u64,
    wakers: BTreeMap<TaskId, Vec<(Place, Waker)>>,
}

impl Waiting {
    /// Leaves a waker at the waiter's place, which it gets with its first one. Returns the waker that it replaces.
    pub(super) fn leave(&mut self, id: TaskId, place: &mut Option<Place>, waker: &Waker) -> Option<Waker> {
        let place = *place.get_or_insert_with(|| {
            self.last += 1;
            Place(self.last)
        });
        let wakers = self.wakers.entry(id).or_default();
        match wakers.iter_mut().find(|(it, _)| *it == place) {
            Some((_, old)) if old.will_wake(waker) => None,
            // The waiter has moved to another async task: only that one may poll it now, so only that one is woken.
            Some((_, old)) => Some(core::mem::replace(old, waker.clone())),
            None => {
                wakers.push((place, waker.clone()));
                None
            }
        }
    }

    /// The waiter at this place waits no more. Returns the waker that is still there.
    pub(super) fn forget(&mut self, id: TaskId, place: Place) -> Option<Waker> {
        let wakers = self.wakers.get_mut(&id)?;
        let at = wakers.iter().position(|(it, _)| *it == place)?;
        let (_, waker) = wakers.swap_remove(at);
        if wakers.is_empty() {
            self.wakers.remove(&id);
        }
        Some(waker)
    }

    /// The task has changed: all who wait at it, to be woken. Who then waits on leaves its waker again.
    pub(super) fn take(&mut self, id: TaskId) -> impl Iterator<Item = Waker> + use<> {
        self.wakers.remove(&id).into_iter().flatten().map(|(_, waker)| waker)
    }
}
