//! Tables in a file: lines of JSON. The command line exports and imports them, and the server saves
//! and loads them.
//!
//! ```text
//! {"format":"tablesdk","version":1}
//! {"table":"Employees"}
//! {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Badge@odata.type":"Edm.Int64","Badge":"7"}}
//! {"end":{"tables":1,"entities":1}}
//! ```
//!
//! * The first line contains the name and the version of the format. A reader rejects unknown
//!   versions.
//! * A line with only a table says that the table exists, so that empty tables are kept. It comes
//!   before the entities of the table.
//! * An entity is written as the JSON of the service: a type that the JSON value does not determine
//!   is annotated. `Timestamp` is the time of the last write in the account that was exported. It
//!   is not imported, since the service sets it.
//! * The last line contains the numbers of tables and entities: a file without it was truncated.
//! * Every line contains the name of its table, so lines can be removed, sorted and combined with
//!   line tools, with new numbers in the last line.
//!
//! Lines end with `\n`, are UTF-8, and have no other members.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::types::limits::REQUEST_BODY_BYTES_MAX;
use crate::types::{TableName, TableNameError, Timestamp, ValueRef};
use crate::wire::json::EntityWriter;

/// The maximum length of a line, in bytes: any entity that fits into a request, with the name of
/// its table.
pub const MAX_LINE_BYTES: usize = REQUEST_BODY_BYTES_MAX + 1024;

/// The version of the format.
pub const VERSION: u64 = 1;

/// One line, whose entity is not read yet.
///
/// ```
/// use tablesdk_protocol::wire::lines::Line;
///
/// let text = br#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#;
/// let line = Line::read(text)?;
/// let Line::Entity { table, entity } = &line else {
///     panic!("the line contains an entity");
/// };
/// assert_eq!((table.as_ref(), entity.len()), ("Employees", 46));
///
/// let mut written = Vec::new();
/// line.write(&mut written);
/// assert_eq!(written.strip_suffix(b"\n"), Some(&text[..]));
/// # Ok::<(), tablesdk_protocol::wire::lines::LineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "another kind of line is a new version"
)]
pub enum Line<'a> {
    /// The first line.
    Start,
    /// A table with this name exists.
    Table(Cow<'a, str>),
    /// An entity.
    Entity {
        /// The name of its table.
        table: Cow<'a, str>,
        /// The entity as the JSON of the service. When it was read, it is JSON, and nothing else is
        /// known of it.
        entity: Cow<'a, [u8]>,
    },
    /// The last line.
    End(Totals),
}

/// The numbers in the last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the format has these two, and a new one is a new version"
)]
pub struct Totals {
    /// The number of tables.
    pub tables: u64,
    /// The number of entities in all tables.
    pub entities: u64,
}

impl<'a> Line<'a> {
    /// Reads a line, with or without its end of line.
    ///
    /// # Errors
    ///
    /// When the line is longer than [`MAX_LINE_BYTES`], or is malformed.
    pub fn read(line: &'a [u8]) -> Result<Self, LineError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(LineError::TooLong);
        }
        match serde_json::from_slice(line).map_err(LineError::Json)? {
            Members {
                format: Some(format),
                version: Some(version),
                table: None,
                entity: None,
                end: None,
            } => match version {
                _ if format != FORMAT => Err(LineError::Format),
                VERSION => Ok(Self::Start),
                _ => Err(LineError::Version(version)),
            },
            Members {
                table: Some(table),
                entity,
                format: None,
                version: None,
                end: None,
            } => {
                TableName::new(table.as_ref()).map_err(LineError::Table)?;
                Ok(match entity {
                    None => Self::Table(table),
                    Some(entity) => Self::Entity {
                        table,
                        entity: entity.get().as_bytes().into(),
                    },
                })
            }
            Members {
                end: Some(totals),
                format: None,
                version: None,
                table: None,
                entity: None,
            } => Ok(Self::End(totals)),
            _ => Err(LineError::Form),
        }
    }

    /// Appends the line, with its end of line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::default();
        match self {
            Self::Start => {
                members.format = Some(FORMAT.into());
                members.version = Some(VERSION);
            }
            Self::Table(table) => members.table = Some(table.as_ref().into()),
            Self::Entity { table, entity } => {
                // The JSON of the entity is not copied through serde.
                out.extend_from_slice(b"{\"table\":");
                serde_json::to_writer(&mut *out, table).expect("a string is JSON");
                out.extend_from_slice(b",\"entity\":");
                out.extend_from_slice(entity);
                out.extend_from_slice(b"}\n");
                return;
            }
            Self::End(totals) => members.end = Some(*totals),
        }
        serde_json::to_writer(&mut *out, &members).expect("strings and numbers are JSON");
        out.push(b'\n');
    }
}

/// The JSON of an entity in a line. The service writes no type for a timestamp.
pub fn write_entity<'v>(
    partition_key: &str,
    row_key: &str,
    timestamp: Option<Timestamp>,
    properties: impl IntoIterator<Item = (impl AsRef<str>, ValueRef<'v>)>,
) -> Vec<u8> {
    let mut writer = EntityWriter::new();
    let mut text = |name, text: &str| writer.property(name, &ValueRef::String(text.into()));
    text("PartitionKey", partition_key);
    text("RowKey", row_key);
    if let Some(timestamp) = timestamp {
        text("Timestamp", &timestamp.to_string());
    }
    for (name, value) in properties {
        writer.property(name.as_ref(), &value);
    }
    writer.finish().into()
}

/// All members that a line can have.
#[derive(Default, Deserialize, Serialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with \"table\", and with \"entity\" if the line has one"
)]
struct Members<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    format: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    table: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    entity: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Totals>,
}

/// Why a line is malformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The members of the line do not belong together.
    #[error("the line is neither a table nor an entity, nor the first or last line of an export")]
    Form,
    /// The first line contains the name of another format.
    #[error("the format of the file is not {FORMAT:?}")]
    Format,
    /// The line is not a JSON object, or it has an unknown member.
    #[error("the line is not a JSON object with the members of a line: {}", InLine(.0))]
    Json(serde_json::Error),
    /// The name of the table breaks a rule of the service.
    #[error("the name of the table is not valid: {0}")]
    Table(TableNameError),
    /// The line is longer than [`MAX_LINE_BYTES`].
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The version of the format is unknown.
    #[error("the file has version {0} of the format; this program knows version {VERSION}")]
    Version(u64),
}

/// The error without the number of the line, which is always 1: that of the file is another.
struct InLine<'a>(&'a serde_json::Error);

impl fmt::Display for InLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (message, line, column) = (self.0.to_string(), self.0.line(), self.0.column());
        match message.strip_suffix(&format!(" at line {line} column {column}")) {
            Some(message) => write!(f, "{message} at column {column}"),
            None => f.write_str(&message),
        }
    }
}

const FORMAT: &str = "tablesdk";
