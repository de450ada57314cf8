//! Turns: of those who want something with one thing, one is under way, and the others wait here and not in the database, where
//! each would hold a connection meanwhile.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What waits, by what it is about. A key that is there is being seen to.
#[derive(Debug)]
pub(super) struct Turns<K, W>(Mutex<HashMap<K, Vec<W>>>);

impl<K, W> Default for Turns<K, W> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Hash + Eq, W> Turns<K, W> {
    /// Hands something in. True if nobody sees to the key yet: then whoever handed it in has to.
    pub(super) fn push(&self, key: K, waiting: W) -> bool {
        let mut turns = self.lock();
        match turns.get_mut(&key) {
            Some(queue) => {
                queue.push(waiting);
                false
            }
            None => {
                turns.insert(key, vec![waiting]);
                true
            }
        }
    }

    /// Sees to a key, on behalf of whoever was told to.
    pub(super) fn see_to(&self, key: K) -> Seer<'_, K, W> {
        Seer { turns: self, key, is_done: false }
    }

    /// No code under this lock panics, so a poisoned lock guards whole state.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Vec<W>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who sees to a key. Should it be dropped before it is done, what still waits is dropped with it, rather than left to wait for
/// ever.
#[derive(Debug)]
pub(super) struct Seer<'a, K: Hash + Eq, W> {
    turns: &'a Turns<K, W>,
    key: K,
    is_done: bool,
}

impl<K: Hash + Eq, W> Seer<'_, K, W> {
    /// What is next; `None` once nothing is left, and then nobody sees to the key any more.
    pub(super) fn next(&mut self, at_most: usize) -> Option<Vec<W>> {
        let mut turns = self.turns.lock();
        let queue = turns.get_mut(&self.key).filter(|queue| !self.is_done && !queue.is_empty());
        let Some(queue) = queue else {
            if !std::mem::replace(&mut self.is_done, true) {
                turns.remove(&self.key);
            }
            return None;
        };
        let rest = queue.split_off(queue.len().min(at_most));
        Some(std::mem::replace(queue, rest))
    }
}

impl<K: Hash + Eq, W> Drop for Seer<'_, K, W> {
    fn drop(&mut self) {
        if !self.is_done {
            self.turns.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_first_sees_to_all_that_come_meanwhile() {
        let turns = Turns::default();
        assert!(turns.push('a', 1));
        assert!(!turns.push('a', 2));
        assert!(turns.push('b', 9), "another one's turn");
        let mut seer = turns.see_to('a');
        assert_eq!(seer.next(1), Some(vec![1]));
        assert!(!turns.push('a', 3));
        assert_eq!(seer.next(9), Some(vec![2, 3]));
        assert!(!turns.push('a', 4), "still seen to");
        assert_eq!(seer.next(9), Some(vec![4]));
        assert_eq!(seer.next(9), None);
        assert!(turns.push('a', 5), "nobody sees to it any more");
        drop(seer);
        assert!(!turns.push('a', 6), "what came after it is not its own");
        drop(turns.see_to('a'));
        assert!(turns.push('a', 7), "who gave up leaves nothing waiting");
    }
}
