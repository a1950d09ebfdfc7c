//! The lines of a file, with their entities. This module knows neither files nor accounts.
//!
//! `tablesdk_protocol::wire::lines` describes the format.

use serde_json::Value as Json;
use tablesdk::{DynamicEntity, ETag, Stored};
use tablesdk_protocol::wire::json::{JsonError, PropertyError, read_entity};
use tablesdk_protocol::wire::lines;
pub use tablesdk_protocol::wire::lines::{MAX_LINE_BYTES, Totals};

use crate::records::{Rules, entity_of, etag_of};

/// One line of a file.
///
/// ```
/// use tablesdk_cli::lines::Line;
///
/// let text = br#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#;
/// let line = Line::read(text)?;
/// let Line::Entity { table, entity } = &line else {
///     panic!("the line contains an entity");
/// };
/// assert_eq!((table.as_str(), entity.row_key()), ("Employees", "1"));
///
/// let mut written = Vec::new();
/// line.write(&mut written);
/// assert_eq!(written.strip_suffix(b"\n"), Some(&text[..]));
/// # Ok::<(), tablesdk_cli::lines::LineError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Line {
    /// The first line.
    Start,
    /// A table with this name exists.
    Table(String),
    /// An entity.
    Entity {
        /// The name of its table.
        table: String,
        /// The entity. A timestamp in the line is validated, and is not part of the entity.
        entity: DynamicEntity,
    },
    /// The last line.
    End(Totals),
}

impl Line {
    /// Reads a line, with or without its end of line.
    ///
    /// # Errors
    ///
    /// When the line is longer than [`MAX_LINE_BYTES`], is malformed, or contains an entity that is
    /// malformed.
    pub fn read(line: &[u8]) -> Result<Self, LineError> {
        Self::read_as(line, Rules::of_service(false)).map(|(line, _)| line)
    }

    /// Reads a line, and the version of its entity.
    pub(crate) fn read_as(line: &[u8], rules: Rules) -> Result<(Self, Option<ETag>), LineError> {
        let line = match lines::Line::read(line)? {
            lines::Line::Start => Self::Start,
            lines::Line::Table(table) => Self::Table(table.into_owned()),
            lines::Line::Entity { table, entity } => {
                let json = read_entity(&entity).map_err(LineError::Entity)?;
                json.timestamp().map_err(LineError::Property)?;
                let table = table.into_owned();
                let entity = entity_of(&json, rules)?;
                return Ok((Self::Entity { table, entity }, etag_of(&json)?));
            }
            lines::Line::End(totals) => Self::End(totals),
        };
        Ok((line, None))
    }

    /// Appends the line, with its end of line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let line = match self {
            Self::Start => lines::Line::Start,
            Self::Table(table) => lines::Line::Table(table.into()),
            Self::Entity { table, entity } => lines::Line::Entity {
                table: table.into(),
                entity: entity_json(entity).into(),
            },
            Self::End(totals) => lines::Line::End(*totals),
        };
        line.write(out);
    }
}

/// The JSON of an entity, as it stands in a line: that of the service, without links.
pub fn entity_json(entity: &DynamicEntity) -> Vec<u8> {
    let properties = entity.properties().iter();
    lines::write_entity(
        entity.partition_key(),
        entity.row_key(),
        entity.timestamp(),
        properties.map(|(name, value)| (name, value.as_ref())),
    )
}

/// The JSON of a stored entity, as the service answers it without links: its version is the first
/// member, `odata.etag`.
pub fn stored_json(entity: &Stored<DynamicEntity>) -> Vec<u8> {
    let json = entity_json(entity);
    let etag = Json::from(entity.etag().as_str()).to_string();
    let members = json.strip_prefix(b"{").unwrap_or(&json);
    [b"{\"odata.etag\":", etag.as_bytes(), b",", members].concat()
}

/// Why a line is malformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The entity has two properties of the same name.
    #[error("the entity has a property twice")]
    Duplicate,
    /// The version of the entity is not a string.
    #[error("the entity is malformed: odata.etag is not a string")]
    ETag,
    /// The entity is not a JSON object of properties.
    #[error("the entity is malformed: {0}")]
    Entity(JsonError),
    /// The line is not one of the format.
    #[error(transparent)]
    Line(#[from] lines::LineError),
    /// The entity has no partition key or no row key.
    #[error("the entity has no {0}")]
    NoKey(&'static str),
    /// A property is malformed.
    #[error("the entity is malformed: {0}")]
    Property(PropertyError),
}
