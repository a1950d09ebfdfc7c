//! What a transaction has read: entities by their keys, and keys without an entity.

use bytes::Bytes;
use tablesdk_protocol::wire::json::read_entity_by;
use tablesdk_protocol::{ETag, EntityKey};

use crate::action::get_entity::stored;
use crate::entity::{Stored, TableEntity, read_key};
use crate::error::Error;

/// What was read under a key.
pub(super) struct Read {
    pub(super) key: EntityKey,
    /// `None` if no entity has the key.
    pub(super) found: Option<Found>,
}

/// An entity as it was read. It can be decoded as any type.
pub(super) struct Found {
    content: Bytes,
    etag: ETag,
}

impl Read {
    /// The version of the entity, if there is one.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.found.as_ref().map(|found| &found.etag)
    }
}

impl Found {
    pub(super) fn new(content: Bytes, header: Option<ETag>) -> Result<Self, Error> {
        let etag = match header {
            Some(etag) => Some(etag),
            None => {
                let key = read_entity_by(&content, |entity| read_key(&entity, true));
                let (_, etag) = key.map_err(Error::response)?.map_err(Error::entity)?;
                etag
            }
        };
        let etag = etag.ok_or_else(|| Error::response("the entity has no ETag"))?;
        Ok(Self { content, etag })
    }

    pub(super) fn decode<E: TableEntity>(&self) -> Result<Stored<E>, Error> {
        stored(&self.content, Some(&self.etag))
    }
}
