//! What an export yields and an import takes, and its form as a line of JSON.

use tablesdk_protocol::TableName;
use tablesdk_protocol::wire::json_lines::{self, Line, Totals};

use crate::entity::WritableEntity as _;
use crate::entity::{DynamicEntity, EntityError, PropertyReader, TableEntity, write_record};
use crate::error::Error;

/// One record of an export: a line of the [format](crate::transfer#the-format-of-the-lines).
///
/// ```
/// use tablesdk::transfer::Record;
///
/// let line = br#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Age":36}}"#;
/// let Record::Entity { table, entity } = Record::read_line(line)? else {
///     panic!("the line is an entity");
/// };
/// assert_eq!((table.as_str(), entity.row_key()), ("Employees", "1"));
///
/// let mut written = Vec::new();
/// Record::Entity { table, entity }.write_line(&mut written)?;
/// assert_eq!(written.strip_suffix(b"\n"), Some(&line[..]));
/// # Ok::<(), tablesdk::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Record {
    /// The first record.
    Start,
    /// A table of this name exists. It comes before the table's entities.
    Table {
        /// Its name.
        name: String,
    },
    /// An entity.
    Entity {
        /// The name of its table.
        table: String,
        /// The entity. Its timestamp is that of where it comes from.
        entity: DynamicEntity,
    },
    /// The last record: what came before it.
    End {
        /// How many tables.
        tables: u64,
        /// How many entities, in all of them.
        entities: u64,
    },
}

impl Record {
    /// Reads a line, with or without its end of line.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when it is none of the format, is longer than any can be, or holds an
    /// entity that cannot be read; the source says what is wrong.
    pub fn read_line(line: &[u8]) -> Result<Self, Error> {
        let refused = |error| Error::input(error).with_operation(READ);
        Ok(match json_lines::read_line(line).map_err(refused)? {
            Line::Start => Self::Start,
            Line::Table { name } => Self::Table {
                name: name.as_str().to_owned(),
            },
            Line::Entity { table, entity } => {
                let read = DynamicEntity::read(&mut PropertyReader::new(&entity, None));
                Self::Entity {
                    table: table.as_str().to_owned(),
                    entity: read.map_err(|error| Error::input(error).with_operation(READ))?,
                }
            }
            Line::End(Totals { tables, entities }) => Self::End { tables, entities },
            line => {
                let problem = format!("a kind of line that is not known: {line:?}");
                return Err(Error::input(problem).with_operation(READ));
            }
        })
    }

    /// Appends the record as a line, with its end of line.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the name of a table, a key or a property is none, or an entity
    /// exceeds what the service stores. Nothing is appended then.
    pub fn write_line(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Start => json_lines::write_start(out),
            Self::Table { name } => json_lines::write_table(out, &table_name(name)?),
            Self::Entity { table, entity } => {
                let table = table_name(table)?;
                let refused = |error: EntityError| Error::input(error).with_operation(WRITE);
                let key = entity.entity_key().map_err(refused)?;
                let body = write_record(entity, &key, entity.timestamp());
                let body = body.map_err(|error| refused(error).with_key(&key))?;
                json_lines::write_entity(out, &table, &body);
            }
            Self::End { tables, entities } => {
                let (tables, entities) = (*tables, *entities);
                json_lines::write_end(out, Totals { tables, entities });
            }
        }
        Ok(())
    }
}

fn table_name(name: &str) -> Result<TableName, Error> {
    TableName::new(name).map_err(|error| Error::input(error).with_operation(WRITE))
}

const READ: &str = "read export";
const WRITE: &str = "write export";
