//! A part of a key is a value that a key shows, and that is never absent.
use tablesdk::key::Desc;
use tablesdk::{PropertyValue, TableEntity};

#[derive(TableEntity)]
struct OptionalKey {
    #[table(partition_key)]
    department: Option<String>,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}")]
struct OptionalPart {
    department: String,
    employee: Option<String>,
}

#[derive(TableEntity)]
#[table(partition_key = "{department:desc}", row_key = "{employee}_{project:06}_{year:04}")]
struct StringsAsNumbers {
    department: String,
    employee: Desc<String>,
    project: String,
    year: u16,
}

/// It drops unknown strings.
#[derive(PropertyValue)]
enum Region {
    North,
    #[table(other)]
    Unknown,
}

#[derive(PropertyValue)]
struct Degrees(f64);

#[derive(TableEntity)]
struct Place {
    #[table(partition_key)]
    region: Region,
    #[table(row_key)]
    degrees: Degrees,
}

fn main() {}
