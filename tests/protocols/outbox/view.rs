//! The outbox of a partition, as a client reads it.

use super::{Entry, Head, Key, Mutant, NUMBERS, Row, Target};
use crate::explore::Rows;

/// An entry as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    pub etag: u8,
    pub entry: Entry,
    pub is_old: bool,
}

/// By number.
pub type Entries = [Option<Seen>; NUMBERS as usize];

/// The outbox of the partition, as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct View {
    pub head: Option<(u8, Head)>,
    pub log: Entries,
    pub graves: Entries,
    pub dead: Entries,
}

pub fn head(rows: &Rows<Key, Row>) -> Option<(u8, Head)> {
    let found = rows.get(Key::Head)?;
    match found.row {
        Row::Head(head) => Some((found.etag, head)),
        _ => unreachable!("the key is the head's"),
    }
}

pub fn entries(rows: &Rows<Key, Row>, key: fn(u8) -> Key) -> Entries {
    let mut entries = Entries::default();
    for (number, seen) in (0..).zip(&mut entries) {
        if let Some(found) = rows.get(key(number))
            && let Row::Entry(entry) = found.row
        {
            *seen = Some(Seen {
                etag: found.etag,
                entry,
                is_old: found.old,
            });
        }
    }
    entries
}

/// The least number of an entry that is there.
pub fn first(entries: &Entries) -> Option<(u8, Seen)> {
    let mut numbered = (0..).zip(entries);
    numbered.find_map(|(number, seen)| Some((number, (*seen)?)))
}

impl View {
    pub fn page(rows: &Rows<Key, Row>) -> Self {
        Self {
            head: head(rows),
            log: entries(rows, Key::Entry),
            graves: entries(rows, Key::Grave),
            dead: Entries::default(),
        }
    }

    pub fn moves(&self) -> u8 {
        self.head.map_or(0, |(_, head)| head.moves)
    }

    pub(super) fn has(&self, pointer: u8, mutant: Mutant) -> bool {
        let graves = match mutant {
            Mutant::GravesNotCounted => &Entries::default(),
            _ => &self.graves,
        };
        let mut seen = [&self.log, graves, &self.dead]
            .into_iter()
            .flatten()
            .flatten();
        seen.any(|seen| seen.entry.pointer == pointer)
    }
}

pub fn target(rows: &Rows<Key, Row>) -> Option<(u8, Target)> {
    let found = rows.get(Key::Target)?;
    match found.row {
        Row::Target(target) => Some((found.etag, target)),
        _ => unreachable!("the key is the target's"),
    }
}
