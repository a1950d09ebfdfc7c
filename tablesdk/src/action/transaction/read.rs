//! What a transaction has read: entities by their keys, and keys without an entity.

use bytes::Bytes;
use tablesdk_protocol::{ETag, EntityKey};

use crate::action::get_entity::stored;
use crate::entity::{Stored, TableEntity};
use crate::error::Error;

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
    pub(super) fn decode<E: TableEntity>(&self) -> Result<Stored<E>, Error> {
        stored(&self.content, &self.etag)
    }
}
