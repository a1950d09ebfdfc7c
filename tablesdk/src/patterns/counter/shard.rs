//! One shard of a counter: its entity, and which clients have written it.

use std::fmt::Write as _;

use tablesdk_protocol::{ETag, EntityKey, Guid};

use crate::entity::{DynamicEntity, Stored};

/// A shard as it is stored, or as it will be.
#[derive(Debug)]
pub(super) struct Shard {
    /// `None` if the entity does not exist.
    pub(super) etag: Option<ETag>,
    pub(super) count: i64,
    /// The clients that wrote it, the last one first.
    pub(super) writers: Vec<Writer>,
}

/// A client, and the number of its last write of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) id: Guid,
    pub(super) number: u64,
}

impl Shard {
    pub(super) fn of(entity: Option<&Stored<DynamicEntity>>) -> Result<Self, NotAShard> {
        let Some(entity) = entity else {
            return Ok(Self {
                etag: None,
                count: 0,
                writers: Vec::new(),
            });
        };
        let writers = entity.properties().read::<String>(WRITERS);
        let writers = writers.map_err(|_| NotAShard { property: WRITERS })?;
        Ok(Self {
            etag: Some(entity.etag().clone()),
            count: Self::count(entity)?,
            writers: parse(&writers).ok_or(NotAShard { property: WRITERS })?,
        })
    }

    /// The count of the shard.
    pub(super) fn count(entity: &DynamicEntity) -> Result<i64, NotAShard> {
        let count = entity.properties().read(COUNT);
        count.map_err(|_| NotAShard { property: COUNT })
    }

    /// Returns true if the shard has counted the write, which was sent when the shard had the
    /// writers `before`. `None` if the shard no longer shows it.
    pub(super) fn has(&self, write: Writer, before: &[Writer]) -> Option<bool> {
        let last = self.writers.iter().find(|writer| writer.id == write.id);
        if let Some(last) = last {
            return Some(last.number == write.number);
        }
        // Writers leave the list at its end. One that has not written since then is behind all that
        // have.
        let is_complete = self.writers.len() < WRITERS_MAX;
        let has_earlier = self.writers.iter().any(|writer| before.contains(writer));
        (is_complete || has_earlier).then_some(false)
    }

    /// The shard after a write. `None` if the count would not fit.
    pub(super) fn plus(&self, amount: i128, write: Writer) -> Option<Self> {
        let others = self.writers.iter().filter(|writer| writer.id != write.id);
        Some(Self {
            etag: None,
            count: i128::from(self.count)
                .checked_add(amount)?
                .try_into()
                .ok()?,
            writers: [&write]
                .into_iter()
                .chain(others)
                .take(WRITERS_MAX)
                .copied()
                .collect(),
        })
    }

    pub(super) fn to_entity(&self, key: &EntityKey) -> DynamicEntity {
        let mut writers = String::new();
        for Writer { id, number } in &self.writers {
            let separator = if writers.is_empty() { "" } else { " " };
            let _ = write!(writers, "{separator}{id}:{number}");
        }
        DynamicEntity::of_key(key)
            .with(COUNT, self.count)
            .with(WRITERS, writers)
    }
}

fn parse(text: &str) -> Option<Vec<Writer>> {
    let writers = text.split(' ').filter(|writer| !writer.is_empty());
    let writers = writers.map(|writer| {
        let (id, number) = writer.split_once(':')?;
        let (id, number) = (id.parse().ok()?, number.parse().ok()?);
        Some(Writer { id, number })
    });
    writers.collect()
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the entity is not that of a counter: its property {property:?} is missing or malformed")]
pub(super) struct NotAShard {
    property: &'static str,
}

pub(super) const COUNT: &str = "Count";
const WRITERS: &str = "Writers";
/// A client that waits for a response learns its outcome unless so many other clients write the
/// shard meanwhile.
const WRITERS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(id: u8, number: u64) -> Writer {
        let id = Guid::from_bytes([id; 16]);
        Writer { id, number }
    }

    fn shard(writers: Vec<Writer>) -> Shard {
        Shard {
            etag: None,
            count: 0,
            writers,
        }
    }

    #[test]
    fn a_write_is_recognized_until_too_many_others_have_written() {
        let before: Vec<Writer> = (0..32).map(|id| writer(id, 1)).collect();
        let us = writer(100, 7);
        let mut counted = shard(before.clone()).plus(1, us).unwrap();
        let mut not_counted = shard(before.clone());
        for others in 0..40_u8 {
            let expected = (others < 32).then_some(true);
            assert_eq!(counted.has(us, &before), expected, "{others}");
            // Where one client of before has left no trace, the write may have.
            let expected = (others < 32).then_some(false);
            assert_eq!(not_counted.has(us, &before), expected, "{others}");
            counted = counted.plus(1, writer(101 + others, 1)).unwrap();
            not_counted = not_counted.plus(1, writer(101 + others, 1)).unwrap();
            assert_eq!(counted.writers.len(), 32);
        }
    }

    #[test]
    fn an_earlier_write_of_the_client_is_not_the_one() {
        let before = vec![writer(1, 6)];
        let shard = shard(before.clone()).plus(1, writer(2, 1)).unwrap();
        assert_eq!(shard.has(writer(1, 7), &before), Some(false));
        let shard = shard.plus(1, writer(1, 7)).unwrap();
        assert_eq!(shard.has(writer(1, 7), &before), Some(true));
        assert_eq!(shard.writers, [writer(1, 7), writer(2, 1)]);
    }

    #[test]
    fn writers_are_read_as_they_are_written() {
        let writers: Vec<Writer> = (0..32).map(|id| writer(id, u64::from(id) << 50)).collect();
        let key = EntityKey::new("home", "views~00").unwrap();
        let entity = shard(writers.clone()).to_entity(&key);
        let text = entity.properties().read::<String>(WRITERS).unwrap();
        assert_eq!(parse(&text), Some(writers));
        assert_eq!(parse(""), Some(Vec::new()));
        for malformed in ["x", "x:1", "00000000-0000-0000-0000-000000000000:-1"] {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn a_count_does_not_overflow() {
        let full = shard(Vec::new())
            .plus(i64::MAX.into(), writer(1, 1))
            .unwrap();
        assert!(full.plus(1, writer(1, 2)).is_none());
        assert!(full.plus(i128::MAX, writer(1, 2)).is_none());
        assert_eq!(full.plus(-1, writer(1, 2)).unwrap().count, i64::MAX - 1);
    }
}
