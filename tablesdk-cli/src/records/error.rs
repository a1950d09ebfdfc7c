//! Why a record cannot be read, and where it is.

use std::fmt;
use std::io;

use tablesdk_protocol::TableNameError;
use tablesdk_protocol::wire::json::{JsonError, PropertyError, PropertyProblem};
use tablesdk_protocol::wire::lines;

use crate::lines::{LineError, MAX_LINE_BYTES};
use crate::sheet::KEYS;

/// Where a record is in its file. Records of one file are in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// The number of the line, from 1.
    Line(u64),
    /// The number of the entity, from 1. A table has that of the entity before it.
    Entity(u64),
    /// The number of the row, as a spreadsheet counts: the first one has the names of the columns.
    Row(u64),
}

impl Place {
    /// The number.
    pub const fn number(self) -> u64 {
        match self {
            Self::Line(number) | Self::Entity(number) | Self::Row(number) => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entity(number) => write!(f, "entity {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct RecordError {
    place: Place,
    problem: RecordProblem,
}

impl RecordError {
    pub(crate) const fn new(place: Place, problem: RecordProblem) -> Self {
        Self { place, problem }
    }

    /// Where it is.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// The reason for the error.
    pub const fn problem(&self) -> &RecordProblem {
        &self.problem
    }
}

/// A reason why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordProblem {
    /// A cell goes on after its closing quote.
    #[error(
        "a cell goes on after its closing quote: within a quoted cell, a quote is written twice"
    )]
    AfterQuote,
    /// Two columns have the same name.
    #[error("the column {0:?} is there twice")]
    ColumnTwice(String),
    /// The file ends within the record.
    #[error("the file ends in the middle of it")]
    Ended,
    /// The entity is malformed.
    #[error("{}{error}{}", OfKey(key.as_ref()), Remedy(error))]
    Entity {
        /// Its partition key and row key.
        key: Option<(String, String)>,
        /// The error.
        error: LineError,
    },
    /// Another character is needed.
    #[error("{expected} is missing before {:?}", char::from(*found))]
    Expected {
        /// The expected character, in words.
        expected: &'static str,
        /// The byte that is there.
        found: u8,
    },
    /// The file has none of the known forms.
    #[error("the file has none of the forms that are known; {EXPECTED}")]
    Form,
    /// The JSON around the entities is malformed.
    #[error("{0}")]
    Json(JsonError),
    /// The line is malformed.
    #[error("{}{}{}", .0, Remedy(.0), Expected(.0))]
    Line(LineError),
    /// An object is an entity, and has an array of entities.
    #[error(
        "an object with PartitionKey or RowKey is an entity, and no property of one is an array"
    )]
    List,
    /// Entities of Azurite come before the name of their collection.
    #[error("a collection has its entities before its name")]
    NoCollection,
    /// The CSV lacks a column.
    #[error(
        "CSV needs the columns PartitionKey and RowKey, and their names in the first row: {0} is missing"
    )]
    NoColumn(&'static str),
    /// A column has types, and no column has their values.
    #[error("the column {0:?} has the types of a column that is missing")]
    NoColumnOfTypes(String),
    /// A text is not UTF-8.
    #[error("it is not UTF-8")]
    NoUtf8,
    /// Neither the file nor the caller names a table.
    #[error("the file names no table for the entity: use --table NAME")]
    NoTable,
    /// The file ends within a quoted cell.
    #[error("the file ends within a quoted cell of it: a closing quote is missing")]
    OpenQuote,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    /// The file of Azurite has several accounts.
    #[error("the file has the tables of several accounts, {first} and {second}")]
    SeveralAccounts {
        /// The first account.
        first: String,
        /// Another one.
        second: String,
    },
    /// The row has another number of cells than the first one.
    #[error("it has {cells} cells, and the first row has {columns}")]
    RowLength {
        /// The number of its cells.
        cells: usize,
        /// The number of columns.
        columns: usize,
    },
    /// The file has several tables, and all entities are to go into one.
    #[error("--table is for a file with one table, and this one has {first} and {second}")]
    SeveralTables {
        /// The first name.
        first: String,
        /// Another one.
        second: String,
    },
    /// The name of the table breaks a rule of the service.
    #[error("the name of the table is not valid: {0}; --table NAME names another")]
    Table(TableNameError),
    /// The service itself makes tables with this name.
    #[error(
        "{0} is a table of the service, which no program can create: --table NAME names another"
    )]
    TableOfService(String),
    /// The record is longer than [`MAX_LINE_BYTES`].
    #[error("it is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The file is not UTF-8.
    #[error("the file is UTF-16: save it as UTF-8")]
    Utf16,
}

const EXPECTED: &str = r#"a line is expected such as {"PartitionKey":"Sales","RowKey":"1","Age":36}, or of an export {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#;

/// The key of an entity, as the start of a message.
struct OfKey<'a>(Option<&'a (String, String)>);

impl fmt::Display for OfKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((partition, row)) => write!(f, "({partition:?}, {row:?}): "),
        }
    }
}

/// The option with which a value is read that its type does not allow.
struct Remedy<'a>(&'a LineError);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LineError::Property(error) if may_be_string(error) => {
                f.write_str("; --as-string keeps it as a string")
            }
            _ => Ok(()),
        }
    }
}

/// The line that is expected instead of one that has no entity.
struct Expected<'a>(&'a LineError);

impl fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LineError::Property(_)
            | LineError::Duplicate
            | LineError::ETag
            | LineError::Entity(JsonError::AnnotatedTwice | JsonError::TooManyMembers)
            | LineError::Line(lines::LineError::Table(_)) => Ok(()),
            _ => write!(f, "; {EXPECTED}"),
        }
    }
}

/// Returns true if the option reads the value. With the option, there is no such error.
fn may_be_string(error: &PropertyError) -> bool {
    let is_other = matches!(
        error.problem(),
        PropertyProblem::Nested | PropertyProblem::UnannotatedInteger
    );
    // These are no properties that a user chose.
    !is_other && !KEYS.contains(&error.name())
}
