//! The state of an entity after a write whose outcome is unknown. This module does not know why the
//! outcome is unknown.

use std::fmt;

use bytes::Bytes;
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_entity, read_entity_by};
use tablesdk_protocol::{ETag, Value};

use crate::entity::{Stored, TableEntity};
use crate::error::Error;

/// The state of an entity, read after a write with an [unknown
/// outcome](crate::ErrorKind::OutcomeUnknown).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::action::CurrentState;
///
/// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// ada.name = "Ada Lovelace".to_owned();
/// if let Err(error) = table.replace(&mut ada).await {
///     match error.current() {
///         Some(CurrentState::Present(row)) if row.equals_sent() => println!("the entity is as it was sent"),
///         Some(CurrentState::Present(row)) => println!("{} is there", row.read::<Employee>()?.name),
///         Some(CurrentState::Missing) => println!("nothing is there"),
///         _ => return Err(error.into()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CurrentState {
    /// The entity does not exist, or its table does not.
    Missing,
    /// This entity.
    Present(CurrentEntity),
    /// The entity could not be read.
    Unread,
}

/// An entity as it was read. If it equals what was sent, this does not prove that the same program
/// wrote it.
#[derive(Clone)]
pub struct CurrentEntity {
    content: Bytes,
    /// The content with its encrypted properties decrypted, for the types that have these.
    decrypted: Option<Bytes>,
    etag: ETag,
    equals_sent: bool,
}

impl CurrentEntity {
    /// Compares what was found with what was sent, where anything was: with `whole`, nothing else
    /// may be there. `None` when what was found has no version.
    pub(crate) fn new(
        content: Bytes,
        header: Option<ETag>,
        sent: Option<&Bytes>,
        whole: bool,
    ) -> Result<Option<Self>, JsonError> {
        let found = read_entity(&content)?;
        let of_timestamp = || Some(ETag::from_timestamp(found.timestamp().ok()??));
        let etag = header
            .or_else(|| found.etag().cloned())
            .or_else(of_timestamp);
        // Without a version it is no entity of the service.
        let Some(etag) = etag else {
            return Ok(None);
        };
        let equals_sent = match sent {
            Some(sent) => is_in(&read_entity(sent)?, &found, whole),
            None => false,
        };
        Ok(Some(Self {
            content,
            decrypted: None,
            etag,
            equals_sent,
        }))
    }

    /// Adds the content as the program wrote it, where that is another one.
    pub(crate) fn reveal(
        self,
        reveal: impl FnOnce(&Bytes) -> Result<Option<Bytes>, Error>,
    ) -> Result<Self, Error> {
        let decrypted = reveal(&self.content)?;
        Ok(Self { decrypted, ..self })
    }

    /// The version that was found.
    pub const fn etag(&self) -> &ETag {
        &self.etag
    }

    /// Returns true if the entity has the content that was sent: all of it after an insert or a
    /// replace, the properties that were sent after a merge.
    pub const fn equals_sent(&self) -> bool {
        self.equals_sent
    }

    /// The entity. A type without encrypted properties gets the bytes as they are stored.
    ///
    /// # Errors
    ///
    /// When it is not of that type. When the type has encrypted properties, and that of the write
    /// had none.
    pub fn read<E: TableEntity>(&self) -> Result<Stored<E>, Error> {
        let content = match &self.decrypted {
            Some(decrypted) if const { E::SCHEMA.encrypts() } => decrypted,
            None if const { E::SCHEMA.encrypts() } => return Err(Error::data(NOT_DECRYPTED)),
            _ => &self.content,
        };
        let read = read_entity_by(content, |mut entity| {
            Stored::read(&mut entity, Some(&self.etag))
        });
        read.map_err(Error::response)?.map_err(Error::entity)
    }
}

const NOT_DECRYPTED: &str =
    "the write was of a type without encrypted properties: read the entity with `get`";

fn is_in(sent: &JsonEntity<'_>, found: &JsonEntity<'_>, whole: bool) -> bool {
    let sent = properties(sent);
    let found = properties(found);
    let (Some(sent), Some(found)) = (sent, found) else {
        return false;
    };
    (!whole || sent.len() == found.len()) && sent.iter().all(|property| found.contains(property))
}

/// The properties that are not null; `None` when one cannot be read.
fn properties<'e>(entity: &'e JsonEntity<'_>) -> Option<Vec<(&'e str, Value)>> {
    let mut properties = Vec::new();
    for property in entity.properties() {
        if let Some(value) = property.to_value().ok()? {
            properties.push((property.name(), value));
        }
    }
    Some(properties)
}

/// Without the values, which are the program's private data.
impl fmt::Debug for CurrentEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentEntity")
            .field("etag", &self.etag)
            .field("equals_sent", &self.equals_sent)
            .finish_non_exhaustive()
    }
}

impl CurrentState {
    /// Returns true if the entity exists, with the content that was sent.
    pub(crate) fn equals_sent(&self) -> bool {
        matches!(self, Self::Present(entity) if entity.equals_sent)
    }
}

impl fmt::Display for CurrentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "it is not there now",
            Self::Present(row) if row.equals_sent => "what is there now equals what was sent",
            Self::Present(_) => "what is there now is not what was sent",
            Self::Unread => "it could not be looked at",
        })
    }
}
