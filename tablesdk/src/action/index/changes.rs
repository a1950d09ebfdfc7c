//! What the change of an entity does to its entries in indexes.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use tablesdk_protocol::{ETag, EntityKey};

use super::entries::carry_out;
use crate::action::write::change::EntityChange;
use crate::action::write::exactly_once::KeepMarker;
use crate::entity::index::{AnyIndex, Index};
use crate::entity::{EntityError, EntityProblem, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// What the change of an entity does to its entries; nothing for an entity without indexes.
#[derive(Clone)]
pub(in crate::action) struct EntryChanges(Option<Box<Known>>);

#[derive(Clone)]
struct Known {
    changes: Vec<EntryChange>,
    /// Known only with entries, so that a program without indexes does not contain it.
    carry_out: CarryOut,
}

/// [`carry_out`].
type CarryOut = for<'r, 'p> fn(
    &'r mut OperationRun<'p>,
    &'r [EntityChange],
    Option<KeepMarker>,
) -> EtagsFuture<'r>;

type EtagsFuture<'r> = Pin<Box<dyn Future<Output = Result<Vec<Option<ETag>>, Error>> + Send + 'r>>;

/// What a change of an entity does to its entry in one index.
#[derive(Clone)]
pub(in crate::action) struct EntryChange {
    pub(super) index: &'static dyn AnyIndex,
    pub(super) before: Option<EntityKey>,
    pub(super) after: Option<Entry>,
}

/// An entry, as it is sent.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: EntityKey,
    pub(super) body: Bytes,
}

impl EntryChanges {
    pub(in crate::action) const NONE: Self = Self(None);

    /// Of an entity that is inserted.
    pub(in crate::action) fn inserted<E: WritableEntity>(entity: &E) -> Result<Self, EntityError> {
        Self::all(|_| None, Some(entity))
    }

    /// Of an entity that replaces what was read.
    pub(in crate::action) fn of<E: WritableEntity>(
        entity: &Stored<E>,
    ) -> Result<Self, EntityError> {
        Self::all(|index| entity.entry_key(index).cloned(), Some(&**entity))
    }

    /// Of an entity that was read and is deleted.
    pub(in crate::action) fn removed<E: TableEntity>(entity: &Stored<E>) -> Self {
        // Nothing is written, so nothing can be refused.
        Self::all::<E>(|index| entity.entry_key(index).cloned(), None).unwrap_or(Self::NONE)
    }

    fn all<E: TableEntity>(
        before: impl Fn(usize) -> Option<EntityKey>,
        after: Option<&E>,
    ) -> Result<Self, EntityError> {
        if const { E::INDEXES.is_empty() } {
            return Ok(Self::NONE);
        }
        let changes = E::INDEXES.iter().enumerate().map(|(position, index)| {
            let refused = |error| EntityProblem::of_entry(index.name(), error);
            let after = match after {
                Some(entity) => Entry::of(index, entity).map_err(refused)?,
                None => None,
            };
            Ok(EntryChange {
                index,
                before: before(position),
                after,
            })
        });
        let known = Known {
            changes: changes.collect::<Result<_, EntityError>>()?,
            carry_out: |run, changes, exactly_once| Box::pin(carry_out(run, changes, exactly_once)),
        };
        Ok(Self(Some(Box::new(known))))
    }

    pub(in crate::action) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an entry with that key is among them.
    pub(in crate::action) fn contain(&self, key: &EntityKey) -> bool {
        self.iter().any(|entry| {
            let after = entry.after.as_ref().map(|after| &after.key);
            entry.before.as_ref() == Some(key) || after == Some(key)
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EntryChange> {
        self.0.iter().flat_map(|known| &known.changes)
    }

    /// What carries out the change together with these.
    pub(in crate::action) fn carry_out(&self) -> Option<CarryOut> {
        Some(self.0.as_ref()?.carry_out)
    }
}

impl Entry {
    fn of<E>(index: &Index<E>, entity: &E) -> Result<Option<Self>, EntityError> {
        let Some(key) = index.entry_key(entity)? else {
            return Ok(None);
        };
        let body = index.write_entry(entity, &key)?;
        Ok(Some(Self { key, body }))
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
