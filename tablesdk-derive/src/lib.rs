#![doc = include_str!("../README.md")]

mod attr;
mod check;
mod diagnostics;
mod expand;
mod fallback;
mod input;
mod name;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Maps a struct to an entity: each field to a property, two of them to the keys.
///
/// Every mistake is reported where it stands, all of a struct's at once.
///
/// # On the struct
///
/// **`#[table(rename_all = "PascalCase")]`** names every property after its field in another case: `lowercase`, `UPPERCASE`,
/// `PascalCase`, `camelCase`, `snake_case` or `SCREAMING_SNAKE_CASE`. Names with hyphens are none that the service takes.
///
/// **`#[table(crate = "path")]`** says where `tablesdk` is, for a crate that has it under another name.
///
/// # On a field
///
/// **`#[table(partition_key)]`** and **`#[table(row_key)]`** mark the two key fields. Every entity has both. They are stored as the
/// system properties `PartitionKey` and `RowKey` and not a second time.
///
/// **`#[table(rename = "HiredOn")]`** gives the property another name than its field.
///
/// # Types
///
/// A field is of a type that implements `PropertyValue`, or an `Option` of one: `None` is an absent property.
///
/// # What is generated
///
/// For a struct `Employee`:
///
/// * `impl TableEntity for Employee`,
/// * `Employee::key(…)`, a typed key, and `Employee::partition(…)`, a typed partition,
/// * a struct `EmployeeColumns` with one column for each field, of the same name, visibility and documentation, which the closures
///   of `filter` and `select` get.
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn derive_table_entity(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let tokens = match input::parse(&input).and_then(check::check) {
        Ok(model) => expand::expand(&model),
        Err(error) => fallback::expand(&input, &error),
    };
    tokens.into()
}
