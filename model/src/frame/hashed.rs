//! Parts of a state that know their own hash.
//!
//! One step changes one or two parts of a world. The others are shared with the state before it, and their hashes with them:
//! that is most of what makes a world fast.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A shared value and its hash.
pub struct Hashed<T>(Arc<(u64, T)>);

impl<T: Hash> Hashed<T> {
    /// The value, hashed.
    pub fn new(value: T) -> Self {
        Self(Arc::new((hash_of(&value), value)))
    }

    /// Its hash.
    pub fn hash_code(&self) -> u64 {
        self.0.0
    }

    /// Changes the value for this holder alone.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: Clone,
    {
        if Arc::get_mut(&mut self.0).is_none() {
            self.0 = Arc::new((0, self.0.1.clone()));
        }
        let (hash, value) = Arc::get_mut(&mut self.0).expect("it was just made");
        let outcome = change(value);
        *hash = hash_of(value);
        outcome
    }
}

impl<T> Clone for Hashed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.1
    }
}

impl<T: PartialEq> PartialEq for Hashed<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.0 == other.0.0 && self.0.1 == other.0.1)
    }
}

impl<T: Eq> Eq for Hashed<T> {}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.0);
    }
}

impl<T: fmt::Debug> fmt::Debug for Hashed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.1.fmt(f)
    }
}

/// What a state carries for whoever reads it, and what makes no difference between states.
#[derive(Clone, Debug, Default)]
pub struct Aside<T>(pub T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The hash of a value, the same in every build.
pub fn hash_of(value: &impl Hash) -> u64 {
    let mut folds = Folds(0x243f_6a88_85a3_08d3);
    value.hash(&mut folds);
    folds.finish()
}

/// Folded multiplication, a word at a time.
struct Folds(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Folds {
    const fn word(&mut self, word: u64) {
        let product = (self.0 ^ word) as u128 * 0xa076_1d64_78bd_642f_u128;
        self.0 = ((product as u64) ^ ((product >> 64) as u64)).rotate_left(23) ^ word;
    }
}

impl Hasher for Folds {
    fn finish(&self) -> u64 {
        fold(self.0 ^ FACTOR, 0xe703_7ed1_a0b4_28db)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.word(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        }
        let mut last = [0; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        if !rest.is_empty() {
            self.word(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, i: u8) {
        self.word(u64::from(i));
    }

    fn write_u32(&mut self, i: u32) {
        self.word(u64::from(i));
    }

    fn write_u64(&mut self, i: u64) {
        self.word(i);
    }

    fn write_usize(&mut self, i: usize) {
        self.word(i as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn small_differences_make_different_hashes() {
        let hashes: HashSet<u64> = (0..100_000_u64).map(|i| hash_of(&(i % 100, i / 100, "text"))).collect();
        assert_eq!(hashes.len(), 100_000);
    }

    #[test]
    fn a_change_is_not_seen_by_other_holders() {
        let old = Hashed::new(1_u32);
        let mut new = old.clone();
        new.change(|value| *value = 2);
        assert_eq!((*old, *new), (1, 2));
        assert_eq!(new, Hashed::new(2));
        assert_ne!(old.hash_code(), new.hash_code());
    }
}
