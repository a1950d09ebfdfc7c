//! A loop of reads and conditional writes in a network that delivers each request twice and returns
//! the second response: each write is carried out, and refused because of its own copy.
//!
//! That an entity is as it was sent does not show this: another client may have written the same,
//! and many clients that count in one entity often do. So after two such writes in a row, a write
//! of no properties shows what the network does. Knows nothing of what the loop writes.

use super::change::{ChangeKind, EntityChange};
use super::encoded::EncodedEntity;
use crate::entity::write_values;
use crate::error::Error;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, TableName};

/// The last writes of a loop that were refused because of their conditions.
#[derive(Default)]
pub(crate) struct OwnCopies {
    /// How many in a row left what they sent.
    alike: u32,
    /// How many writes of no properties were refused since, and left the entities as they were.
    probes: u32,
}

/// The next step of a loop after a refused write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another round: another client has written.
    Round,
    /// A write of no properties, under the versions that are stored now.
    Probe,
    /// The end: the network delivers requests twice, so that the outcome of the writes is unknown.
    End,
}

impl OwnCopies {
    /// Says what follows a refusal, by whether the entities are now as they were sent.
    pub(crate) const fn after_refusal(&mut self, is_as_sent: bool) -> Next {
        if !is_as_sent {
            *self = Self {
                alike: 0,
                probes: 0,
            };
            return Next::Round;
        }
        if self.alike < ALIKE {
            self.alike += 1;
        }
        if self.alike < ALIKE {
            Next::Round
        } else if self.probes < PROBES {
            Next::Probe
        } else {
            Next::End
        }
    }

    /// Notes whether the write of no properties was accepted: then requests arrive once. A refusal
    /// may be due to another client.
    pub(crate) const fn after_probe(&mut self, is_accepted: bool) {
        if is_accepted {
            *self = Self {
                alike: 0,
                probes: 0,
            };
        } else {
            self.probes += 1;
        }
    }
}

/// A change of no properties, which is refused if the entity has another version.
pub(crate) fn unchanged(
    table: &TableName,
    key: &EntityKey,
    etag: &ETag,
) -> Result<EntityChange, Error> {
    let body = write_values(key, &[]).map_err(|error| Error::input(error).with_key(key))?;
    let kind = ChangeKind::Update(Mode::Merge, Some(IfMatch::ETag(etag.clone())));
    let entity = EncodedEntity::alone(key.clone(), body);
    Ok(EntityChange::of(table.clone(), kind, entity))
}

const ALIKE: u32 = 2;
/// Two clients whose probes meet are told apart from a network that delivers twice by another
/// probe.
const PROBES: u32 = 3;
