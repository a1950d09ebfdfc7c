//! The rules of an index with entries in other partitions: an entity always has its entry.

use super::{Entity, Key, Row, VALUES, entity};
use crate::explore::{Rows, Rules};

/// The rules of a complete index, with the exceptions that they allow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Complete {
    /// An entity that was inserted, after another client had deleted it, may be without its entry
    /// for a time.
    pub allows_late_insert: bool,
    /// A repair has mended everything in the end. Without it, there may be entries that no entity
    /// has.
    pub is_repaired: bool,
    pub was_deleted: bool,
    /// The expected entity at the end, where one client writes it.
    pub written: Option<Entity>,
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
        if self.written.is_some() && self.written != entity {
            return Err(format!("the entity is {entity:?}"));
        }
        for value in 1..=VALUES {
            let wanted = entity.filter(|entity| entity.value == value);
            let wanted = wanted.map(|entity| Row::Entry(entity.column, 0));
            let found = rows.get(Key::Entry(value)).map(|found| match found.row {
                Row::Entry(column, _) => Row::Entry(column, 0),
                row @ Row::Entity(_) => row,
            });
            if found != wanted && (self.is_repaired || wanted.is_some()) {
                return Err(format!("entry {value} is {found:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }
}
