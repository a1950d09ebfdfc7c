#![doc = include_str!("../README.md")]

mod attr;
mod check;
mod diagnostics;
mod expand;
mod fallback;
mod input;
mod name;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use self::input::Target;

/// Maps a struct with named fields to an entity: two fields to its keys, each other field to a property.
///
/// Attributes have the form `#[table(word)]` or `#[table(word = "text")]`; several words may share one attribute, and
/// several attributes may stand in one place. All mistakes of a struct are reported at once, each where it stands.
///
/// # On the struct
///
/// ## `#[table(rename_all = "PascalCase")]`
///
/// Names the properties after their fields in another case. The rules are those of serde, which take a field's name to be
/// in snake case:
///
/// | rule | `first_name` becomes |
/// |---|---|
/// | `lowercase`, `snake_case` | `first_name` |
/// | `UPPERCASE`, `SCREAMING_SNAKE_CASE` | `FIRST_NAME` |
/// | `PascalCase` | `FirstName` |
/// | `camelCase` | `firstName` |
///
/// The rules with hyphens are refused, since the service takes no hyphen in the name of a property.
///
/// ## `#[table(crate = "path")]`
///
/// Says where `tablesdk` is, for a crate that has it under another name or gets it through a third crate. Without it the
/// generated code names `::tablesdk`.
///
/// # On a field
///
/// ## `#[table(partition_key)]` and `#[table(row_key)]`
///
/// Mark the two fields that are the key. Every entity has both, on two fields. They are stored as `PartitionKey` and
/// `RowKey`, whatever the fields are called, and not a second time.
///
/// ## `#[table(rename = "HiredOn")]`
///
/// Gives the property this very name; `rename_all` does not touch it.
///
/// # Names
///
/// The name of a property is a letter or `_`, then letters, digits and `_`, in all at most 255 UTF-16 units. Taken are
/// `PartitionKey`, `RowKey`, `Timestamp`, and what begins with `odata.`. No two fields have one name, and there are at most 252
/// properties. A raw identifier counts without its `r#`.
///
/// # Types
///
/// The type of a property implements `PropertyValue`, or is an `Option` of one that does: `None` is a property that is not
/// there. The type of a key field implements `KeyPart`. A generic struct is an entity for those parameters with which its
/// fields are so; bounds to that effect are added. There are no lifetimes: what is read from the service is owned.
///
/// # What is generated
///
/// From
///
/// ```text
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase")]
/// pub struct Employee {
///     #[table(partition_key)]
///     pub department: String,
///     #[table(row_key)]
///     pub id: String,
///     /// In full years.
///     pub age: i32,
/// }
/// ```
///
/// comes, with every path in full and shortened here:
///
/// ```text
/// impl TableEntity for Employee { … }
///
/// impl Employee {
///     pub fn key(department: impl Into<String>, id: impl Into<String>) -> Key<Self> { … }
///     pub fn partition(department: impl Into<String>) -> Partition<Self> { … }
/// }
///
/// #[derive(Clone, Copy, Debug)]
/// pub struct EmployeeColumns {
///     /// The column `PartitionKey`.
///     pub department: Column<Employee, String>,
///     /// The column `RowKey`.
///     pub id: Column<Employee, String>,
///     /// In full years.
///     pub age: Column<Employee, i32>,
/// }
/// ```
///
/// The columns have the names, visibilities and docs of the fields. They are what the closures of `filter` and `select` get.
/// The names `key`, `partition` and `EmployeeColumns` are taken by what is generated. Lints that the struct or a field allows or
/// expects are allowed there, too.
#[proc_macro_derive(TableEntity, attributes(table))]
pub fn derive_table_entity(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_struct(&input, Target::Entity).into()
}

/// Maps a struct with named fields to properties of the entities that it is flattened into.
#[proc_macro_derive(TableProperties, attributes(table))]
pub fn derive_table_properties(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_struct(&input, Target::Group).into()
}

/// Stores a newtype as what it holds, or an enum as a text for each variant.
#[proc_macro_derive(PropertyValue, attributes(table))]
pub fn derive_property_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let tokens = value::derive(&input);
    tokens
        .unwrap_or_else(|error| fallback::value(&input, &error))
        .into()
}

fn expand_struct(input: &DeriveInput, target: Target) -> proc_macro2::TokenStream {
    match input::parse(input, target).and_then(check::check) {
        Ok(model) => expand::expand(&model),
        Err(error) => fallback::expand(input, target, &error),
    }
}
