//! An entity of a response that is read property by property, whether its members are scanned or
//! listed.

use std::slice;

use super::entity::{JsonEntity, RawProperty};
use super::error::PropertyError;
use super::members::ScannedEntity;
use crate::types::{ETag, Timestamp};

/// An entity of a response that is read property by property.
///
/// Its members are scanned when they are asked for, as long as they are in their usual form. Where
/// the scanner gives up, the properties end early, and the same entity is passed again, with its
/// members in a list.
#[derive(Debug)]
pub struct EntityCursor<'r, 'a> {
    members: Members<'r, 'a>,
    /// The name of the property that is passed over.
    hidden: Option<&'static str>,
    /// True after that property was passed over.
    has_hidden: bool,
}

#[derive(Debug)]
enum Members<'r, 'a> {
    Scanned(&'r mut ScannedEntity<'a>),
    Listed {
        entity: &'r JsonEntity<'a>,
        rest: slice::Iter<'r, RawProperty<'a>>,
    },
}

impl<'r, 'a> EntityCursor<'r, 'a> {
    /// A cursor over an entity in memory.
    pub fn new(entity: &'r JsonEntity<'a>) -> Self {
        let rest = entity.members().iter();
        Self::of(Members::Listed { entity, rest })
    }

    pub(super) const fn scanned(entity: &'r mut ScannedEntity<'a>) -> Self {
        Self::of(Members::Scanned(entity))
    }

    const fn of(members: Members<'r, 'a>) -> Self {
        Self {
            members,
            hidden: None,
            has_hidden: false,
        }
    }

    /// A cursor for another reader, at the same place.
    pub fn reborrow(&mut self) -> EntityCursor<'_, 'a> {
        let members = match &mut self.members {
            Members::Scanned(entity) => Members::Scanned(entity),
            Members::Listed { entity, rest } => Members::Listed {
                entity,
                rest: rest.clone(),
            },
        };
        EntityCursor { members, ..*self }
    }

    /// The entity's ETag, if the JSON contains one.
    pub const fn etag(&self) -> Option<&ETag> {
        match &self.members {
            Members::Scanned(entity) => entity.etag(),
            Members::Listed { entity, .. } => entity.etag(),
        }
    }

    /// The time of the entity's last write, if the JSON contains it.
    ///
    /// # Errors
    ///
    /// When it is not a date and time.
    pub fn timestamp(&self) -> Result<Option<Timestamp>, PropertyError> {
        match &self.members {
            Members::Scanned(entity) => Ok(entity.timestamp()),
            Members::Listed { entity, .. } => entity.timestamp(),
        }
    }

    /// The text of a key or of another string, before any property was read; `None` when it is
    /// absent or null. Where several members have the name, it is that of the first.
    ///
    /// # Errors
    ///
    /// When it is not a string, or annotated with another type than `Edm.String`.
    pub fn find(&self, name: &str) -> Result<Option<&'r str>, PropertyError> {
        match &self.members {
            Members::Scanned(entity) => Ok(entity.text(name)),
            Members::Listed { entity, .. } => entity.text(name),
        }
    }

    /// Returns true if several members have that name. False for a scanned entity: the scanner
    /// detects duplicates at the end.
    pub fn has_several(&self, name: &str) -> bool {
        match &self.members {
            Members::Scanned(_) => false,
            Members::Listed { entity, .. } => entity.has_several(name),
        }
    }

    /// Passes over a property, which must come once.
    pub const fn hide(&mut self, name: &'static str) {
        self.hidden = Some(name);
    }

    /// The next of the user's properties, nulls included; `None` after the last one.
    #[inline]
    pub fn next_property(&mut self) -> Option<&RawProperty<'a>> {
        let hidden = self.hidden;
        let is_hidden = |property: &RawProperty<'_>| Some(property.name()) == hidden;
        match &mut self.members {
            Members::Scanned(entity) => {
                while entity.advance() {
                    if !is_hidden(entity.member()) {
                        return Some(entity.member());
                    }
                    // The list finds out that there are two.
                    if std::mem::replace(&mut self.has_hidden, true) {
                        entity.give_up();
                    }
                }
                None
            }
            Members::Listed { rest, .. } => {
                rest.find(|property| !property.is_system() && !is_hidden(property))
            }
        }
    }

    /// How many properties are left, as far as that is known.
    pub fn expected_properties(&self) -> usize {
        match &self.members {
            Members::Scanned(entity) => entity.expected_properties(),
            Members::Listed { rest, .. } => {
                let left = rest.as_slice().iter();
                left.filter(|property| !property.is_system()).count()
            }
        }
    }

    /// The list of all members. Where they are scanned, this is `None`, and the entity is passed
    /// again with the list.
    pub fn list(&self) -> Option<&'r JsonEntity<'a>> {
        match &self.members {
            Members::Scanned(entity) => {
                entity.give_up();
                None
            }
            Members::Listed { entity, .. } => Some(entity),
        }
    }

    #[cfg(test)]
    pub(super) const fn is_listed(&self) -> bool {
        matches!(self.members, Members::Listed { .. })
    }
}
