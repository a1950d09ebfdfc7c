//! What the change of an entity does to its entries in indexes.

use std::fmt;

use tablesdk_protocol::EntityKey;

use super::entries::carry_out;
use crate::action::write::together::CommitHook;
use crate::entity::index::{AnyIndex, Entry};
use crate::entity::{EntityError, Stored, TableEntity, WritableEntity};

/// What the change of an entity does to its entries; nothing for an entity without indexes.
#[derive(Clone)]
pub(in crate::action) struct EntryChanges(Option<Box<Known>>);

#[derive(Clone)]
struct Known {
    changes: Vec<EntryChange>,
    /// Known only with entries, so that a program without indexes does not contain it.
    hook: &'static CommitHook,
}

/// [`carry_out`].
static HOOK: CommitHook = CommitHook {
    name: "entries of indexes",
    carry_out: |run, changes, exactly_once| Box::pin(carry_out(run, changes, exactly_once)),
};

/// What a change of an entity does to one of its entries in an index.
#[derive(Clone)]
pub(in crate::action) struct EntryChange {
    pub(super) index: &'static dyn AnyIndex,
    pub(super) before: Option<EntityKey>,
    pub(super) after: Option<Entry>,
}

impl EntryChanges {
    pub(in crate::action) const NONE: Self = Self(None);

    /// Of an entity that is inserted.
    pub(in crate::action) fn inserted<E: WritableEntity>(entity: &E) -> Result<Self, EntityError> {
        Self::all(|_| [].into_iter(), Some(entity))
    }

    /// Of an entity that replaces what was read.
    pub(in crate::action) fn of<E: WritableEntity>(
        entity: &Stored<E>,
    ) -> Result<Self, EntityError> {
        Self::all(|index| entity.entry_keys(index), Some(&**entity))
    }

    /// Of an entity that was read and is deleted.
    pub(in crate::action) fn removed<E: TableEntity>(entity: &Stored<E>) -> Self {
        // Nothing is written, so nothing can be refused.
        Self::all::<E, _>(|index| entity.entry_keys(index), None).unwrap_or(Self::NONE)
    }

    fn all<'e, E: TableEntity, K: Iterator<Item = &'e EntityKey>>(
        before: impl Fn(usize) -> K,
        after: Option<&E>,
    ) -> Result<Self, EntityError> {
        if const { E::INDEXES.is_empty() } {
            return Ok(Self::NONE);
        }
        let mut changes = Vec::new();
        for (position, index) in E::INDEXES.iter().enumerate() {
            let mut before = before(position).cloned();
            let after = after.map(|entity| index.entries(entity)).transpose()?;
            let mut after = after.into_iter().flatten();
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
        let known = Known {
            changes,
            hook: &HOOK,
        };
        Ok(Self(Some(Box::new(known))))
    }

    /// Leaves out the entries of some indexes.
    pub(in crate::action) fn retain(&mut self, is_kept: impl Fn(&dyn AnyIndex) -> bool) {
        if let Some(known) = &mut self.0 {
            known.changes.retain(|entry| is_kept(entry.index));
        }
    }

    pub(in crate::action) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an entry with that key is among them. A part goes into an entity that also changes without it.
    pub(in crate::action) fn contain(&self, key: &EntityKey) -> bool {
        let mut entries = self.iter().filter(|entry| !entry.index.is_part());
        entries.any(|entry| {
            let after = entry.after.as_ref().map(|after| &after.key);
            entry.before.as_ref() == Some(key) || after == Some(key)
        })
    }

    /// Leaves out the parts of these entities.
    pub(super) fn leave_out_parts(&mut self, entities: &[EntityKey]) {
        let Some(known) = &mut self.0 else { return };
        known.changes.retain(|entry| {
            let after = entry.after.as_ref().filter(|_| entry.index.is_part());
            !after.is_some_and(|part| entities.contains(&part.key))
        });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EntryChange> {
        self.0.iter().flat_map(|known| &known.changes)
    }

    /// What carries out the change together with these.
    pub(in crate::action) fn hook(&self) -> Option<&'static CommitHook> {
        Some(self.0.as_ref()?.hook)
    }
}

impl fmt::Debug for EntryChanges {
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
