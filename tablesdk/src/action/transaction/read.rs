//! What a transaction has read: entities by their keys, and keys without an entity.

use bytes::Bytes;
use tablesdk_protocol::{ETag, EntityKey};

use crate::action::encryption::opened;
use crate::action::get_entity::stored;
use crate::action::write::ambiguous_write::compare;
use crate::action::write::change::EntityChange;
use crate::entity::{Schema, Stored, TableEntity};
use crate::error::{CurrentState, Error};
use crate::pipeline::Table;

/// What was read under a key.
pub(super) struct Read {
    pub(super) key: EntityKey,
    /// `None` if no entity has the key.
    pub(super) found: Option<Found>,
}

/// An entity as it was read. It can be decoded as any type.
pub(super) struct Found {
    pub(super) content: Bytes,
    pub(super) etag: ETag,
}

impl Read {
    /// The version of the entity, if there is one.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.found.as_ref().map(|found| &found.etag)
    }
}

impl Found {
    /// The entity with the properties decrypted that a type has encrypted.
    pub(super) async fn opened(
        &self,
        table: &Table,
        schema: &'static Schema,
        key: &EntityKey,
    ) -> Result<Self, Error> {
        let content = self.content.clone();
        Ok(Self {
            content: opened(table, Some(schema), key, content).await?,
            etag: self.etag.clone(),
        })
    }

    /// It, compared with what a change sent.
    pub(super) fn compared_with(&self, change: &EntityChange) -> CurrentState {
        compare(change, self.content.clone(), Some(self.etag.clone()))
    }

    pub(super) fn decode<E: TableEntity>(&self) -> Result<Stored<E>, Error> {
        stored(&self.content, &self.etag)
    }
}
