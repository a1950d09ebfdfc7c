//! Entities and tables as JSON, at the three levels of metadata: a streaming writer and a streaming
//! reader, without a tree or a map in between.
//!
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations>.

mod cursor;
mod entity;
mod error;
mod is_printed;
mod literal;
mod members;
mod metadata;
mod object;
mod other_key;
mod page;
mod reader;
mod scan;
mod stored;
mod stored_reader;
mod stored_value;
mod table;
mod usual;
mod value;
mod writer;

pub use cursor::EntityCursor;
pub use entity::{JsonEntity, RawProperty};
pub use error::{JsonError, PropertyError, PropertyProblem};
pub use literal::StoredLiteral;
pub use metadata::MetadataLevel;
pub use other_key::has_other_key;
pub use page::PageWriter;
pub use reader::{read_entity, read_entity_by, read_page, read_page_by};
pub use stored::{StoredProperty, write_stored_property};
pub use stored_reader::{StoredKeys, StoredReader};
pub use stored_value::StoredValue;
pub use table::{
    TableJsonError, read_table_name, read_tables, write_table, write_table_name, write_tables,
};
pub use writer::{EntityFormat, EntityHead, EntityStyle, EntityWriter};

/// The properties that every entity has and no user property may be named after.
pub const SYSTEM_PROPERTIES: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];
