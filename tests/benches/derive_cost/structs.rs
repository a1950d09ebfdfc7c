//! The sources that are compiled: the same structs for one derive and for the other.

use std::fmt::Write as _;

/// The types of the fields behind the two keys, over and over.
const TYPES: [&str; 9] = [
    "String",
    "i32",
    "Option<String>",
    "i64",
    "f64",
    "bool",
    "Option<i64>",
    "Vec<u8>",
    "Option<bool>",
];

/// The derive of a struct, and with it how a value is written and read.
#[derive(Clone, Copy)]
pub(crate) enum Derive {
    Nothing,
    Serde,
    TableEntity,
}

/// A library of so many structs with so many fields each; with a function that writes and reads
/// each of them, if `used`.
pub(crate) fn source(derive: Derive, structs: usize, fields: usize, used: bool) -> String {
    let (derives, keyed) = match derive {
        Derive::Nothing => ("", false),
        Derive::Serde => ("#[derive(serde::Serialize, serde::Deserialize)]\n", false),
        Derive::TableEntity => ("#[derive(tablesdk::TableEntity)]\n", true),
    };
    let mut text = String::new();
    for index in 0..structs {
        let _ = writeln!(text, "{derives}pub struct Struct{index} {{");
        for field in 0..fields {
            let (attribute, ty) = match field {
                0 => ("#[table(partition_key)] ", "String"),
                1 => ("#[table(row_key)] ", "String"),
                _ => ("", TYPES[field % TYPES.len()]),
            };
            let attribute = if keyed { attribute } else { "" };
            let _ = writeln!(text, "    {attribute}pub field_{field}: {ty},");
        }
        text += "}\n";
        let (error, body) = match derive {
            Derive::Serde if used => (
                "serde_json::Error",
                "serde_json::from_str(&serde_json::to_string(value)?)",
            ),
            Derive::TableEntity if used => (
                "tablesdk::entity::EntityError",
                "tablesdk::DynamicEntity::from_entity(value)?.to_entity()",
            ),
            _ => continue,
        };
        let _ = writeln!(
            text,
            "pub fn use_{index}(value: &Struct{index}) -> Result<Struct{index}, {error}> {{ {body} }}"
        );
    }
    text
}
