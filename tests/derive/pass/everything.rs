//! Attributes, raw identifiers, generics, shadowed names and strict lints, all at once.

#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic
)]
#![allow(dead_code)]

use tablesdk::{PropertyValue, TableEntity};

/// A name that generated code must not mistake for the prelude's.
pub(crate) struct Option;
/// Another.
pub(crate) struct Result;
/// Another.
pub(crate) struct String;

/// An entity.
#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
pub(crate) struct Row<T: PropertyValue + Send + 'static>
where
    T: Clone,
{
    /// A key.
    #[table(partition_key)]
    pub(crate) r#type: std::string::String,
    #[table(row_key)]
    id: std::string::String,
    r#match: bool,
    #[deprecated]
    old: u8,
    #[table(rename = "Größe")]
    size: std::option::Option<T>,
}

/// An entity without properties.
#[derive(TableEntity)]
pub(crate) struct Empty {
    #[table(partition_key)]
    a: std::string::String,
    #[table(row_key)]
    b: std::string::String,
}

fn main() {
    let columns = Row::<i64>::columns();
    let filter = columns.r#match.eq(true) & columns.size.gt(5) & columns.r#type.ne("x");
    assert_eq!(
        filter.to_string(),
        "Match eq true and Größe gt 5L and PartitionKey ne 'x'"
    );
    assert_eq!(Row::<i64>::SCHEMA.properties().len(), 3);
    assert!(Empty::SCHEMA.properties().is_empty());
    let _ = Row::<i64>::key("a", "b");
    let _ = Row::<i64>::partition("a");
    let _ = format!("{columns:?}");
}
