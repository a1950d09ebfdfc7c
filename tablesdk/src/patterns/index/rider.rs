//! The rider that writes the entries of a changed entity in indexes.

use std::fmt;

use tablesdk_protocol::EntityKey;

use super::entry::{AnyIndex, Entry, EntryKeys, Indexed};
use crate::action::extend::ride::{AlsoWritten, Layer, Place, Ride};
use crate::action::write::change::EntityChange;
use crate::entity::EntityError;
use crate::entity::attached::Memory;

/// The changes of the entries of an entity that its own change requires.
#[derive(Clone)]
pub(crate) struct EntryRider {
    /// Writes the entries.
    layer: &'static Layer,
    changes: Vec<EntryChange>,
}

/// The change of one entry in an index: its key before, and the entry after.
#[derive(Clone)]
pub(crate) struct EntryChange {
    pub(super) index: &'static dyn AnyIndex,
    pub(super) before: Option<EntityKey>,
    pub(super) after: Option<Entry>,
}

impl EntryRider {
    /// The changes for a value that is inserted, or replaces what was read.
    pub(super) fn of<E: Indexed>(
        layer: &'static Layer,
        entity: &E,
        memory: &Memory,
    ) -> Result<Self, EntityError> {
        let before = memory.get::<EntryKeys>();
        let mut changes = Vec::new();
        for (position, index) in E::INDEXES.iter().enumerate() {
            let before = before.into_iter().flat_map(|keys| keys.of_index(position));
            let mut before = before.cloned();
            let mut after = index.entries(entity)?.into_iter();
            loop {
                let (before, after) = (before.next(), after.next());
                if before.is_none() && after.is_none() {
                    break;
                }
                changes.push(EntryChange {
                    index,
                    before,
                    after,
                });
            }
        }
        Ok(Self { layer, changes })
    }

    /// The changes for a stored entity that is removed.
    pub(super) fn of_removed(layer: &'static Layer, stored: &EntryKeys) -> Self {
        let changes = stored.by_index().map(|(index, key)| EntryChange {
            index,
            before: Some(key.clone()),
            after: None,
        });
        let changes = changes.collect();
        Self { layer, changes }
    }

    /// Leaves out the entries of some indexes.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&dyn AnyIndex) -> bool) {
        self.changes.retain(|entry| is_kept(entry.index));
    }

    /// Leaves out the parts of these entities.
    pub(super) fn leave_out_parts(&mut self, entities: &[EntityKey]) {
        self.changes.retain(|entry| {
            let after = entry.after.as_ref().filter(|_| entry.index.is_part());
            !after.is_some_and(|part| entities.contains(&part.key))
        });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EntryChange> {
        self.changes.iter()
    }
}

/// The changes of the entries of an entity.
pub(super) fn entries_of(change: &EntityChange) -> impl Iterator<Item = &EntryChange> {
    change.riders.all::<EntryRider>().flat_map(EntryRider::iter)
}

impl Ride for EntryRider {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }

    fn layer(&self) -> Option<&'static Layer> {
        Some(self.layer)
    }

    /// That of the ticket.
    fn adds_change(&self) -> bool {
        self.iter().any(|entry| {
            let after = entry.after.as_ref().map(|after| &after.key);
            entry.index.is_reserved() && after.is_some() && after != entry.before.as_ref()
        })
    }

    fn also_writes(&self, see: &mut dyn FnMut(AlsoWritten<'_>)) {
        for entry in self.iter() {
            let place = match entry.index {
                // A part goes into an entity that also changes without it.
                index if index.is_part() => Place::Shared,
                index if index.schema().table().is_some() => Place::OtherTable,
                index if index.is_elsewhere() => Place::Other,
                _ => Place::Same,
            };
            let after = entry
                .after
                .as_ref()
                .map(|after| (&after.key, after.body.len()));
            let lost = entry.before.as_ref().map(|before| (before, 0));
            let lost = lost.filter(|(before, _)| after.is_none_or(|(key, _)| key != *before));
            for (key, bytes) in lost.into_iter().chain(after) {
                see(AlsoWritten { key, bytes, place });
            }
        }
    }
}

impl fmt::Debug for EntryRider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for EntryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryChange")
            .field("index", &self.index.name())
            .field("before", &self.before)
            .field("after", &self.after.as_ref().map(|after| &after.key))
            .finish()
    }
}
