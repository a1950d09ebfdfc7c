//! A value together with its key, ETag and timestamp in the service.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{ETag, EntityKey, KeyKind, Timestamp};

use super::attached::{Memory, Remembered};
use super::encrypted::without_secrets;
use super::reader::key_text;
use super::{EntityError, EntityProblem, PropertyReader, TableEntity, WritableEntity};

/// An entity as the service stores it: the value, and the key, ETag and timestamp it was read with.
///
/// It derefs to the value. Conditional writes need a `Stored`, since it holds the version that the
/// write is based on.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// assert_eq!(ada.name, "Ada", "it derefs to the employee");
/// println!("{} is of {:?}, version {}", ada.key().row_key(), ada.timestamp(), ada.etag());
///
/// let before = ada.etag().clone();
/// ada.name.push_str(" Lovelace");
/// table.replace(&mut ada).await?;
/// assert_ne!(*ada.etag(), before, "it knows its new version");
/// let employee: Employee = ada.into_inner();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Stored<E> {
    value: E,
    key: EntityKey,
    etag: ETag,
    timestamp: Option<Timestamp>,
    known: Known,
}

/// The facts about the stored entity beside its value. They are no part of the value: all of them
/// are equal.
#[derive(Clone, Default)]
struct Known {
    /// Its content, where it is kept to be compared with.
    content: Option<Bytes>,
    /// The notes of patterns.
    memory: Memory,
    /// The step of an outbox that has written it.
    step_of: Option<Box<str>>,
}

impl Known {
    fn of<E: TableEntity>(value: &E, how: Remembered) -> Self {
        Self {
            memory: Memory::of(value, how),
            ..Self::default()
        }
    }
}

impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Without the content, whose values the entity shows as it likes.
impl<E: fmt::Debug> fmt::Debug for Stored<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("value", &self.value)
            .field("key", &self.key)
            .field("etag", &self.etag)
            .field("timestamp", &self.timestamp)
            .field("tracked", &self.tracked().is_some())
            .finish_non_exhaustive()
    }
}

impl<E> Stored<E> {
    /// The key under which the entity is stored. It does not change when the value's key fields
    /// change.
    pub const fn key(&self) -> &EntityKey {
        &self.key
    }

    /// The version that was last read or written.
    pub const fn etag(&self) -> &ETag {
        &self.etag
    }

    /// When that version was written. After a write, the time is taken from the ETag. It is absent
    /// where the ETags of the backend contain no time.
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Keeps what is stored, as it came or was sent.
    pub(crate) fn track(&mut self, content: Bytes) {
        self.known.content = Some(content);
    }

    /// The stored content, if it was kept and was not written since in another way.
    pub(crate) const fn tracked(&self) -> Option<&Bytes> {
        self.known.content.as_ref()
    }

    /// The stamp of the step that has written the entity, where it was read with one.
    pub(crate) fn step_of(&self) -> Option<&str> {
        self.known.step_of.as_deref()
    }

    /// The notes of patterns about the stored entity.
    pub(crate) const fn memory(&self) -> &Memory {
        &self.known.memory
    }

    /// The value alone.
    pub fn into_inner(self) -> E {
        self.value
    }
}

impl<E: TableEntity> Stored<E> {
    pub(crate) fn new(value: E, key: EntityKey, etag: ETag) -> Self {
        let timestamp = etag.timestamp();
        Self {
            known: Known::of(&value, Remembered::Read),
            value,
            key,
            etag,
            timestamp,
        }
    }

    /// Reads an entity of an answer; `header` is the ETag that came beside it.
    pub(crate) fn read(
        entity: &mut EntityCursor<'_, '_>,
        header: Option<&ETag>,
    ) -> Result<Self, EntityError> {
        let key = key_of(entity)?;
        let timestamp = entity.timestamp()?;
        // Some backends leave the ETag out of the body; it is the timestamp in another spelling.
        let etag = match header.or_else(|| entity.etag()) {
            Some(etag) => etag.clone(),
            None => timestamp
                .map(ETag::from_timestamp)
                .ok_or(EntityProblem::NoETag)?,
        };
        let schema = const { &E::SCHEMA };
        let mut reader = PropertyReader::with_schema(entity.reborrow(), schema, Some(&etag));
        let value = E::read(&mut reader).map_err(without_secrets::<E>)?;
        let step_of = reader.step_of();
        Ok(Self {
            known: Known {
                step_of,
                ..Known::of(&value, Remembered::Read)
            },
            value,
            key,
            timestamp: timestamp.or_else(|| etag.timestamp()),
            etag,
        })
    }

    /// Notes that the value was written, and as which version.
    pub(crate) fn written(&mut self, etag: ETag) {
        self.timestamp = etag.timestamp();
        self.value.written_as(&etag);
        self.etag = etag;
        self.known = Known {
            step_of: self.known.step_of.take(),
            ..Known::of(&self.value, Remembered::Written)
        };
    }
}

impl<E: WritableEntity> Stored<E> {
    /// Notes that the value was written under another key, and as which version.
    pub(crate) fn moved(&mut self, key: EntityKey, etag: ETag) {
        self.key = key;
        self.known.step_of = None;
        self.written(etag);
    }

    /// The stored key, if the value still has it.
    pub(crate) fn unchanged_key(&self) -> Result<&EntityKey, EntityError> {
        check_unchanged(&self.key, &self.value.entity_key()?)?;
        Ok(&self.key)
    }
}

/// Returns true if two ETags are of one version. An ETag of a page may be made of the timestamp,
/// and have another spelling than the ETag of an entity that was read alone.
pub(crate) fn is_same_version(one: &ETag, other: &ETag) -> bool {
    one == other
        || one
            .timestamp()
            .is_some_and(|at| other.timestamp() == Some(at))
}

/// Refuses a value with another key than that of the stored entity.
pub(crate) fn check_unchanged(stored: &EntityKey, now: &EntityKey) -> Result<(), EntityError> {
    let (stored, value, part) = if now.partition_key() != stored.partition_key() {
        let (stored, now) = (stored.partition_key().as_str(), now.partition_key());
        (stored, now.as_str().to_owned(), KeyKind::PartitionKey)
    } else if now.row_key() != stored.row_key() {
        let (stored, now) = (stored.row_key().as_str(), now.row_key());
        (stored, now.as_str().to_owned(), KeyKind::RowKey)
    } else {
        return Ok(());
    };
    Err(EntityProblem::KeyChanged {
        part,
        stored: stored.to_owned(),
        value,
    }
    .into())
}

fn key_of(entity: &EntityCursor<'_, '_>) -> Result<EntityKey, EntityError> {
    Ok(EntityKey::new(
        key_text(entity, KeyKind::PartitionKey)?,
        key_text(entity, KeyKind::RowKey)?,
    )?)
}

/// The key of an entity of an answer, and its version if that is wanted.
pub(crate) fn read_key(
    entity: &EntityCursor<'_, '_>,
    with_etag: bool,
) -> Result<(EntityKey, Option<ETag>), EntityError> {
    let key = key_of(entity)?;
    if !with_etag {
        return Ok((key, None));
    }
    let timestamp = entity.timestamp()?;
    let etag = entity.etag().cloned();
    let etag = etag.or_else(|| timestamp.map(ETag::from_timestamp));
    Ok((key, Some(etag.ok_or(EntityProblem::NoETag)?)))
}

impl<E> Deref for Stored<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.value
    }
}

impl<E> DerefMut for Stored<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.value
    }
}
