//! Tables and their entities as a file of lines, each a JSON object that stands by itself: what exports write and imports read.
//!
//! ```text
//! {"format":"tablesdk","version":1}
//! {"table":"Employees"}
//! {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Badge@odata.type":"Edm.Int64","Badge":"7"}}
//! {"end":{"tables":1,"entities":1}}
//! ```
//!
//! * The first line names the format and its version. A reader refuses versions that it does not know.
//! * A line with a table alone says that the table exists, so that empty ones are kept; it stands before the table's entities.
//! * An entity is written as the service's JSON has it: whatever a JSON value cannot tell of its type is annotated. Its
//!   `Timestamp` may be given, and says when it was last written where it comes from.
//! * The last line counts what came before: a file that does not end with it was cut.
//! * Every line names its table: a line that depends on another one could not be skipped, sorted or cut out. Files are interrupted
//!   anywhere, resumed in the middle and taken apart with line tools, and the name compresses to nothing.
//!
//! Lines end with `\n`, hold UTF-8, and have no other members. Knows nothing of files, and nothing of where entities go.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::{JsonEntity, JsonError, read_entity};
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::{TableName, TableNameError};

/// The longest line, in bytes: an entity that fits into a request does so with the name of its table.
pub const LINE_BYTES_MAX: usize = REQUEST_BODY_BYTES_MAX + 1024;

/// The version of the format that is written.
pub const VERSION: u64 = 1;

/// What a line says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Line<'a> {
    /// The first line, of a version that can be read.
    Start,
    /// There is a table of this name.
    Table {
        /// Its name.
        name: TableName,
    },
    /// An entity.
    Entity {
        /// The table that it is in.
        table: TableName,
        /// The entity, no value of it looked at yet.
        entity: JsonEntity<'a>,
    },
    /// The last line.
    End(Totals),
}

/// What the last line counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the format has these two, and a new one is a new version"
)]
pub struct Totals {
    /// How many tables there are.
    pub tables: u64,
    /// How many entities there are in all of them.
    pub entities: u64,
}

/// Reads a line, its end of line included or not.
///
/// # Errors
///
/// When it is longer than [`LINE_BYTES_MAX`], not JSON, none of the four kinds of lines, of a version that is not known, names
/// no table, or holds an entity that names a property twice.
pub fn read_line(line: &[u8]) -> Result<Line<'_>, LineError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(LineError::TooLong { bytes: line.len() });
    }
    let members: Members<'_> = serde_json::from_slice(line).map_err(LineError::Json)?;
    match members {
        Members {
            format: Some(format),
            version: Some(version),
            table: None,
            entity: None,
            end: None,
        } => {
            if format != FORMAT {
                return Err(LineError::Format);
            }
            if version != VERSION {
                return Err(LineError::Version { version });
            }
            Ok(Line::Start)
        }
        Members {
            table: Some(table),
            entity,
            format: None,
            version: None,
            end: None,
        } => {
            let table = TableName::new(table.as_ref()).map_err(LineError::Table)?;
            let Some(entity) = entity else {
                return Ok(Line::Table { name: table });
            };
            let entity = read_entity(entity.get().as_bytes()).map_err(LineError::Entity)?;
            if entity.has_duplicates() {
                return Err(LineError::Duplicate);
            }
            Ok(Line::Entity { table, entity })
        }
        Members {
            end: Some(totals),
            format: None,
            version: None,
            table: None,
            entity: None,
        } => Ok(Line::End(totals)),
        _ => Err(LineError::Form),
    }
}

/// Appends the first line.
pub fn write_start(out: &mut Vec<u8>) {
    write(
        out,
        &Members {
            format: Some(FORMAT.into()),
            version: Some(VERSION),
            ..Members::default()
        },
    );
}

/// Appends the line that says that a table exists.
pub fn write_table(out: &mut Vec<u8>, name: &TableName) {
    write(
        out,
        &Members {
            table: Some(name.as_str().into()),
            ..Members::default()
        },
    );
}

/// Appends the line of an entity. `entity` is a JSON object on one line, with the keys and annotations, such as
/// [`EntityWriter`](super::json::EntityWriter) makes one.
pub fn write_entity(out: &mut Vec<u8>, table: &TableName, entity: &[u8]) {
    // No character of a name needs an escape.
    out.extend_from_slice(b"{\"table\":\"");
    out.extend_from_slice(table.as_str().as_bytes());
    out.extend_from_slice(b"\",\"entity\":");
    out.extend_from_slice(entity);
    out.extend_from_slice(b"}\n");
}

/// Appends the last line.
pub fn write_end(out: &mut Vec<u8>, totals: Totals) {
    write(
        out,
        &Members {
            end: Some(totals),
            ..Members::default()
        },
    );
}

fn write(out: &mut Vec<u8>, members: &Members<'_>) {
    serde_json::to_writer(&mut *out, members)
        .expect("writing texts and numbers to memory cannot fail");
    out.push(b'\n');
}

/// All members that a line can have.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The entity names a property twice.
    #[error("the entity names a property twice")]
    Duplicate,
    /// The entity is none.
    #[error("the entity cannot be read")]
    Entity(#[source] JsonError),
    /// Neither the first line, nor a table, an entity, or the last line.
    #[error("the line is neither a table nor an entity, nor the first or last line of an export")]
    Form,
    /// The first line names another format.
    #[error("the file says that it has another format than {FORMAT:?}")]
    Format,
    /// Not a JSON object with those members. The source says where.
    #[error("the line is not an object of the members that lines have")]
    Json(#[source] serde_json::Error),
    /// The name of the table is none.
    #[error("the line names no table")]
    Table(#[source] TableNameError),
    /// Longer than any line can be.
    #[error("a line of {bytes} bytes is longer than {LINE_BYTES_MAX}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A version that is not known.
    #[error(
        "the file has version {version} of the format, and {VERSION} is the latest that is known"
    )]
    Version {
        /// The version that the file has.
        version: u64,
    },
}

const FORMAT: &str = "tablesdk";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::json::EntityWriter;
    use crate::{Value, ValueRef};

    fn table() -> TableName {
        TableName::new("Employees").unwrap()
    }

    #[test]
    fn a_whole_file_is_what_the_format_says() {
        let mut entity = EntityWriter::new();
        entity.property("PartitionKey", &ValueRef::String("Sales".into()));
        entity.property("RowKey", &ValueRef::String("a\nb".into()));
        entity.property("Badge", &ValueRef::Int64(7));
        let mut file = Vec::new();
        write_start(&mut file);
        write_table(&mut file, &table());
        write_entity(&mut file, &table(), &entity.finish());
        let totals = Totals {
            tables: 1,
            entities: 1,
        };
        write_end(&mut file, totals);
        let text = String::from_utf8(file).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"format":"tablesdk","version":1}"#,
                "\n",
                r#"{"table":"Employees"}"#,
                "\n",
                r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"a\nb","Badge@odata.type":"Edm.Int64","Badge":"7"}}"#,
                "\n",
                r#"{"end":{"tables":1,"entities":1}}"#,
                "\n",
            )
        );
        let mut lines = text.lines().map(|line| read_line(line.as_bytes()).unwrap());
        assert!(matches!(lines.next(), Some(Line::Start)));
        assert!(matches!(lines.next(), Some(Line::Table { name }) if name == table()));
        let Some(Line::Entity {
            table: name,
            entity,
        }) = lines.next()
        else {
            panic!("the third line is an entity");
        };
        assert_eq!(name, table());
        assert_eq!(entity.text("RowKey"), Ok(Some("a\nb")));
        let badge = entity.property("Badge").unwrap().to_value();
        assert_eq!(badge, Ok(Some(Value::Int64(7))));
        assert!(matches!(lines.next(), Some(Line::End(read)) if read == totals));
    }

    #[test]
    fn other_lines_are_refused_by_name() {
        for (line, problem) in [
            ("", "members that lines have"),
            ("[]", "members that lines have"),
            ("{", "members that lines have"),
            ("{}{}", "members that lines have"),
            (
                r#"{"table":"Employees","more":1}"#,
                "members that lines have",
            ),
            (
                r#"{"table":"Employees","table":"B"}"#,
                "members that lines have",
            ),
            (r#"{"end":{"tables":1}}"#, "members that lines have"),
            (
                r#"{"end":{"tables":-1,"entities":0}}"#,
                "members that lines have",
            ),
            ("{}", "neither a table nor an entity"),
            (r#"{"entity":{}}"#, "neither a table nor an entity"),
            (r#"{"format":"tablesdk"}"#, "neither a table nor an entity"),
            (
                r#"{"table":"Employees","end":{"tables":1,"entities":1}}"#,
                "neither a table nor an entity",
            ),
            (r#"{"format":"csv","version":1}"#, "another format"),
            (r#"{"format":"tablesdk","version":2}"#, "version 2"),
            (r#"{"table":"a/b"}"#, "names no table"),
            (
                r#"{"table":"Employees","entity":[]}"#,
                "entity cannot be read",
            ),
            (
                r#"{"table":"Employees","entity":{"a":1,"a":2}}"#,
                "a property twice",
            ),
        ] {
            let error = read_line(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{line}: {error}");
        }
        let long = vec![b' '; LINE_BYTES_MAX + 1];
        assert!(matches!(read_line(&long), Err(LineError::TooLong { .. })));
    }

    #[test]
    fn a_nested_value_takes_no_stack() {
        let depth = 100_000;
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let line = format!(r#"{{"table":"Employees","entity":{{"a":{nested}}}}}"#);
        let test = move || {
            assert!(matches!(
                read_line(line.as_bytes()),
                Ok(Line::Entity { .. })
            ));
        };
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        thread.spawn(test).unwrap().join().unwrap();
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>) {
            let _ = read_line(&bytes);
        }
    }
}
