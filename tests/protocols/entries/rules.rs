//! The rules of an index with entries in other partitions: an entity always has its entry.

use super::{Key, Row, VALUES, entity};
use crate::explore::{Rows, Rules};

/// What the rules allow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Complete {
    /// An entity that was inserted, after another client had deleted it, may be without its entry for a time.
    pub allows_late_insert: bool,
    /// A repair has mended everything in the end. Without it, there may be entries that no entity has.
    pub is_repaired: bool,
    pub was_deleted: bool,
}

impl Rules<Key, Row> for Complete {
    fn observe(&mut self, before: &Rows<Key, Row>, after: &Rows<Key, Row>) -> Result<(), String> {
        let stored = |rows| entity(rows).map(|(_, entity)| entity);
        let (old, new) = (stored(before), stored(after));
        self.was_deleted |= old.is_some() && new.is_none();
        match new {
            Some(new) if after.get(Key::Entry(new.value)).is_none() => {
                if self.allows_late_insert && self.was_deleted {
                    return Ok(());
                }
                Err(format!("the entity has no entry {}", new.value))
            }
            _ => Ok(()),
        }
    }

    fn end(&self, rows: &Rows<Key, Row>) -> Result<(), String> {
        let entity = entity(rows).map(|(_, entity)| entity);
        for value in 1..=VALUES {
            let wanted = entity.filter(|entity| entity.value == value);
            let wanted = wanted.map(|entity| Row::Entry(entity.column));
            let found = rows.get(Key::Entry(value)).map(|found| found.row);
            if found != wanted && (self.is_repaired || wanted.is_some()) {
                return Err(format!("entry {value} is {found:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }
}
