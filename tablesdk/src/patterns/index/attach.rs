//! Functions that the derive calls for an entity with indexes or copies.

use super::entries::LAYER;
use super::entry::{EntryKeys, IndexEntry, Indexed};
use super::indexes::Indexes;
use super::reservation::Reservations;
use super::rider::EntryRider;
use crate::entity::EntityError;
use crate::entity::attached::{Attach, Extensions, Memory, Note, Remembered};

/// Adds what becomes of the entries when an entity is written.
#[doc(hidden)]
pub fn attach<E: Indexed>(entity: &E, attach: &mut Attach<'_>) -> Result<(), EntityError> {
    let entries = EntryRider::of(&LAYER, entity, attach.memory)?;
    attach.add(Box::new(entries));
    Ok(())
}

impl Note for EntryKeys {
    fn remove(&self, attach: &mut Attach<'_>) {
        attach.add(Box::new(EntryRider::of_removed(&LAYER, self)));
    }
}

/// Notes which entries a stored entity has.
#[doc(hidden)]
pub fn remember<E: Indexed>(entity: &E, memory: &mut Memory, how: Remembered) {
    memory.keep(match how {
        Remembered::Read => EntryKeys::of(entity),
        Remembered::Written => EntryKeys::of_written(entity),
    });
}

/// Adds that queries are told of the indexes.
#[doc(hidden)]
pub fn extensions<E: Indexed>(extensions: &mut Extensions<'_>) {
    extensions.add(const { &Indexes::of::<E>() });
}

/// Adds that the entity of an entry is looked at while the entry is only reserved.
#[doc(hidden)]
pub fn reserved<I: IndexEntry>(extensions: &mut Extensions<'_>) {
    extensions.add(const { &Reservations::<I>::new() });
}
