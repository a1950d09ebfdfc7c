//! The rules of a unique index over partitions: one entity has a value, and has its entry.

use super::{ENTITIES, Key, Row, VALUES, entity, entry};
use crate::explore::{Rows, Rules};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unique {
    /// False until the entity has got its entry, after a program that does not know the index has
    /// written it.
    pub is_indexed: bool,
    /// The entity that one client alone writes, and its value.
    pub written: Option<(u8, u8)>,
}

/// The entities that have the value.
fn owners(rows: &Rows<Key, Row>, value: u8) -> Vec<u8> {
    let owners = (0..ENTITIES).filter(|&it| entity(rows, it).is_some_and(|(_, it)| it == value));
    owners.collect()
}

impl Rules<Key, Row> for Unique {
    fn observe(&mut self, _: &Rows<Key, Row>, after: &Rows<Key, Row>) -> Result<(), String> {
        for value in 1..=VALUES {
            let named = entry(after, value).map(|entry| entry.owner);
            match owners(after, value).as_slice() {
                [] => {}
                // The program has written the entity, or has deleted it, without the index.
                [owner] if !self.is_indexed && value == 1 => {
                    self.is_indexed = named == Some(*owner);
                }
                [owner] if named == Some(*owner) => {}
                [owner] => return Err(format!("the entity {owner} has no entry {value}")),
                owners => return Err(format!("{owners:?} have the value {value}")),
            }
        }
        Ok(())
    }

    fn end(&self, rows: &Rows<Key, Row>) -> Result<(), String> {
        if let Some((written, value)) = self.written
            && entity(rows, written).is_none_or(|(_, it)| it != value)
        {
            return Err(format!("the entity {written} is not written"));
        }
        for value in 1..=VALUES {
            let wanted = owners(rows, value).first().map(|&it| (it, None));
            let found = entry(rows, value).map(|it| (it.owner, it.ticket));
            if found != wanted {
                return Err(format!("entry {value} is {found:?} instead of {wanted:?}"));
            }
        }
        match rows.iter().find(|(_, found)| found.row == Row::Ticket) {
            Some((key, _)) => Err(format!("{key:?} is left")),
            None => Ok(()),
        }
    }
}
