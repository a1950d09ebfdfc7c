//! How many different things were seen, with a bound on what is remembered of them.

use std::collections::HashSet;
use std::fmt;

/// A number, or the least that it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a count is known or not")]
pub enum Count {
    /// This number.
    Exactly(usize),
    /// More than this number: what was seen beyond it was not told apart.
    MoreThan(usize),
}

impl Count {
    /// The number, or the one that there are more of.
    pub const fn at_least(self) -> usize {
        match self {
            Self::Exactly(count) | Self::MoreThan(count) => count,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

/// The different values of a property, each by a hash of 64 bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Distinct {
    seen: HashSet<u64>,
    more_than: Option<usize>,
}

impl Distinct {
    /// Notes a value. All properties share the room, which is the number of hashes that can still
    /// be kept.
    pub(super) fn note(&mut self, hash: u64, room: &mut usize) {
        if self.more_than.is_some() || self.seen.contains(&hash) {
            return;
        }
        if self.seen.len() == DISTINCT_MAX || *room == 0 {
            self.more_than = Some(self.seen.len());
            *room += self.seen.len();
            self.seen = HashSet::new();
            return;
        }
        *room -= 1;
        self.seen.insert(hash);
    }

    pub(super) fn count(&self) -> Count {
        let seen = Count::Exactly(self.seen.len());
        self.more_than.map_or(seen, Count::MoreThan)
    }
}

/// The values of one property that are told apart.
const DISTINCT_MAX: usize = 10_000;
/// The values of all properties that are told apart: about 20 MiB.
pub(super) const ROOM: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_exactly_up_to_a_bound() {
        let (mut distinct, mut room) = (Distinct::default(), ROOM);
        for round in 0..2 {
            for hash in 0..DISTINCT_MAX as u64 {
                distinct.note(hash, &mut room);
            }
            assert_eq!(distinct.count(), Count::Exactly(DISTINCT_MAX), "{round}");
        }
        distinct.note(u64::MAX, &mut room);
        assert_eq!(distinct.count(), Count::MoreThan(DISTINCT_MAX));
        assert_eq!(room, ROOM, "nothing of it is kept");
    }

    #[test]
    fn all_properties_share_one_bound() {
        let (mut one, mut other, mut room) = (Distinct::default(), Distinct::default(), 3);
        for hash in 0..3 {
            one.note(hash, &mut room);
        }
        other.note(0, &mut room);
        assert_eq!(other.count(), Count::MoreThan(0));
        one.note(2, &mut room);
        assert_eq!(one.count(), Count::Exactly(3));
        one.note(3, &mut room);
        assert_eq!((one.count(), room), (Count::MoreThan(3), 3));
    }
}
