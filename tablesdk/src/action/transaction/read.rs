//! The reads of a transaction: entities by their keys, and keys without an entity.

use tablesdk_protocol::{ETag, EntityKey};

use crate::action::get_entity::{RawEntity, stored};
use crate::action::write::ambiguous_write::compare;
use crate::action::write::change::EntityChange;
use crate::entity::{Stored, TableEntity};
use crate::error::{CurrentState, Error};

/// The result of a read by a key.
pub(super) struct Read {
    pub(super) key: EntityKey,
    /// `None` if no entity has the key.
    pub(super) found: Option<RawEntity>,
}

impl Read {
    /// The version of the entity, if there is one.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.found.as_ref().map(|found| &found.etag)
    }
}

impl RawEntity {
    /// It, compared with what a change sent.
    pub(super) fn compared_with(&self, change: &EntityChange) -> CurrentState {
        compare(change, self.content.clone(), Some(self.etag.clone()))
    }

    /// It can be decoded as any type.
    pub(crate) fn decode<E: TableEntity>(&self) -> Result<Stored<E>, Error> {
        stored(&self.content, &self.etag)
    }
}
