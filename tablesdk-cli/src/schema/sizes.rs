//! The sizes of entities: the median within about 1 %, and the largest with its key.

use tablesdk::DynamicEntity;
use tablesdk_protocol::ValueRef;

/// The sizes of entities, as the service counts them.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// How many entities have a size of each step.
    steps: Vec<u64>,
    count: u64,
    total: u64,
    largest: Option<Largest>,
}

/// The entity that takes most.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Largest {
    /// Its size.
    pub bytes: usize,
    /// Its partition key.
    pub partition_key: String,
    /// Its row key.
    pub row_key: String,
}

impl Sizes {
    pub(super) fn note(&mut self, entity: &DynamicEntity) {
        let bytes = bytes_of(entity);
        let step = step(bytes);
        if self.steps.len() <= step {
            self.steps.resize(step + 1, 0);
        }
        if let Some(count) = self.steps.get_mut(step) {
            *count += 1;
        }
        self.count += 1;
        self.total += bytes as u64;
        if self.largest.as_ref().is_none_or(|it| it.bytes < bytes) {
            self.largest = Some(Largest {
                bytes,
                partition_key: entity.partition_key().to_owned(),
                row_key: entity.row_key().to_owned(),
            });
        }
    }

    /// The size that half of the entities do not exceed.
    pub fn median(&self) -> usize {
        let mut seen = 0;
        let middle = self.count.div_ceil(2);
        let step = self.steps.iter().position(|count| {
            seen += count;
            seen >= middle
        });
        step.map_or(0, bytes_from)
    }

    /// The bytes of all entities together.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The largest entity, of several the one that was seen first.
    pub const fn largest(&self) -> Option<&Largest> {
        self.largest.as_ref()
    }
}

/// The bytes that the service counts for an entity.
fn bytes_of(entity: &DynamicEntity) -> usize {
    let units = |text: &str| text.encode_utf16().count();
    let keys = 4 + 2 * (units(entity.partition_key()) + units(entity.row_key()));
    let properties = entity.properties().iter().map(|(name, value)| {
        let value = ValueRef::counted_bytes(&value.as_ref());
        8 + 2 * units(name) + value
    });
    keys + properties.sum::<usize>()
}

/// The step of a size: each doubling has 64 of them, and small sizes have one each.
const fn step(bytes: usize) -> usize {
    let bits = (usize::BITS - bytes.leading_zeros()) as usize;
    if bits <= BITS {
        return bytes;
    }
    let shift = bits - BITS;
    // The highest bit of what is left is always set.
    shift * (1 << (BITS - 1)) + (bytes >> shift)
}

/// The least size of a step.
const fn bytes_from(step: usize) -> usize {
    let half = 1 << (BITS - 1);
    if step < 2 * half {
        return step;
    }
    let shift = step / half - 1;
    (step - shift * half) << shift
}

/// The bits of a size that are looked at.
const BITS: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_at_most_a_hundredth_below_each_of_its_sizes() {
        let mut last = 0;
        for bytes in (0..100_000).chain([1 << 20, (1 << 20) - 1, usize::MAX]) {
            let from = bytes_from(step(bytes));
            assert!(
                from <= bytes && bytes - from <= bytes / 64,
                "{bytes} {from}"
            );
            assert!(from >= last, "{bytes}");
            last = from.min(100_000);
        }
    }

    #[test]
    fn the_median_is_in_the_middle_and_the_largest_has_its_key() {
        let mut sizes = Sizes::default();
        assert_eq!((sizes.median(), sizes.largest()), (0, None));
        for (row, units) in ["a", "b", "c"].into_iter().zip([10, 1_000, 30_000]) {
            let entity = DynamicEntity::new("p", row).with("Text", "x".repeat(units));
            sizes.note(&entity);
        }
        // The keys 8, the name 16, the value 2,004.
        assert_eq!(sizes.median(), bytes_from(step(2_028)));
        let largest = sizes.largest().expect("there are entities");
        assert_eq!((largest.bytes, largest.row_key.as_str()), (60_028, "c"));
    }
}
