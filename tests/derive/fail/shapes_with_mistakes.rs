//! An entity is a struct that owns named fields, and a property holds one value.
use tablesdk::{PropertyValue, TableEntity};

#[derive(TableEntity)]
struct Unit;

#[derive(TableEntity)]
struct Tuple(String, String);

#[derive(TableEntity)]
union Union {
    id: u32,
    number: i32,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Borrowed<'a> {
    department: String,
    id: String,
    name: &'a str,
}

#[derive(PropertyValue)]
struct TwoValues(f64, f64);

#[derive(PropertyValue)]
struct NoValue;

/// Each variant is stored as a different string.
#[derive(PropertyValue)]
#[table(rename_all = "snakecase")]
enum Status {
    Active(u32),
    #[table(rename = "Gone")]
    Left,
    Gone,
    #[table(other, rename = "x")]
    Other,
    #[table(other)]
    Another(String),
    #[table(othr)]
    Misspelt,
}

fn main() {}
