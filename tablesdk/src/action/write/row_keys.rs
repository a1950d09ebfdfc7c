//! The row keys of a batch, to find one that comes twice.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use tablesdk_protocol::RowKey;

/// Hashes of row keys. Two keys may have the same one.
#[derive(Default)]
pub(crate) struct RowKeys {
    hashes: HashSet<u64, BuildHasherDefault<AsItIs>>,
    hasher: RandomState,
}

impl RowKeys {
    /// Adds a key. False if it may be there already.
    pub(crate) fn insert(&mut self, key: &RowKey) -> bool {
        self.hashes.insert(self.hasher.hash_one(key))
    }
}

/// A hash is random already, and is not hashed again.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        // Not reached: only whole numbers are hashed.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_comes_twice_is_found() {
        let key = |number: u32| RowKey::new(number.to_string()).unwrap();
        let mut keys = RowKeys::default();
        assert!((0..1000).all(|number| keys.insert(&key(number))));
        assert!((0..1000).all(|number| !keys.insert(&key(number))));
    }
}
