//! The partitions of entities, and the largest of them.

use std::collections::HashMap;

use super::count::Count;

/// The number of entities in each partition. A partition is remembered by a hash, and the largest
/// by its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Partitions {
    counts: HashMap<u64, u64>,
    has_more: bool,
    largest: Option<(String, u64)>,
}

impl Partitions {
    pub(super) fn note(&mut self, key: &str, hash: u64) {
        let is_room = self.counts.len() < PARTITIONS_MAX;
        if !is_room && !self.counts.contains_key(&hash) {
            self.has_more = true;
            return;
        }
        let count = self.counts.entry(hash).or_default();
        *count += 1;
        match &mut self.largest {
            Some((largest, of_largest)) if *count > *of_largest => {
                *of_largest = *count;
                if largest != key {
                    key.clone_into(largest);
                }
            }
            Some(_) => {}
            None => self.largest = Some((key.to_owned(), *count)),
        }
    }

    pub(super) fn count(&self) -> Count {
        if self.has_more {
            Count::MoreThan(self.counts.len())
        } else {
            Count::Exactly(self.counts.len())
        }
    }

    /// The partition with most entities, and their number.
    pub(super) fn largest(&self) -> Option<(&str, u64)> {
        let (key, count) = self.largest.as_ref()?;
        Some((key, *count))
    }
}

/// The partitions that are told apart: those of the largest sample that a struct is inferred from.
const PARTITIONS_MAX: usize = 100_000;
