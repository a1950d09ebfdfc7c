//! Reproducible random numbers: each is a function of the seed and of what it is drawn for, and of
//! nothing else.
//!
//! So a number does not depend on which of two simultaneous requests comes first.

use std::hash::{Hash, Hasher};

/// A number for a seed and anything that can be hashed.
pub(super) fn number(seed: u64, of: impl Hash) -> u64 {
    let mut hasher = Mixer(seed);
    of.hash(&mut hasher);
    hasher.finish()
}

/// A number from 0 to 1, exclusive, for a seed and anything that can be hashed.
pub(super) fn fraction(seed: u64, of: impl Hash) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits, which is what a fraction can hold"
    )]
    let fraction = (number(seed, of) >> 11) as f64 / (1_u64 << 53) as f64;
    fraction
}

/// The finalizer of `SplitMix64`, over one byte or number after another. The standard hasher is not
/// promised to stay as it is.
struct Mixer(u64);

impl Mixer {
    fn add(&mut self, number: u64) {
        let mut mixed = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn finish(&self) -> u64 {
        let mut end = Self(self.0);
        end.add(0);
        end.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_reproducible_and_spread() {
        assert_eq!(
            fraction(7, ("people", 3_u64)).to_bits(),
            fraction(7, ("people", 3_u64)).to_bits()
        );
        let below_a_tenth = |seed| (0..10_000_u64).filter(|n| fraction(seed, n) < 0.1).count();
        for seed in 0..10 {
            let count = below_a_tenth(seed);
            assert!((850..1150).contains(&count), "seed {seed}: {count}");
        }
        let differ = (0..1000_u64).filter(|n| fraction(1, n) < 0.5).count();
        let together = (0..1000_u64).filter(|n| fraction(1, n) < 0.5 && fraction(2, n) < 0.5);
        assert!(
            together.count() < differ * 3 / 4,
            "two seeds are independent"
        );
    }
}
