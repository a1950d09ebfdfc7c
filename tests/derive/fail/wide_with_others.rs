//! A wide struct is stored as several entities, and as nothing else.

use tablesdk::{Properties, TableEntity, TableProperties, Timestamp};

#[derive(TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
#[table(index(ByPhone, row_key = "phone_{phone}"))]
struct WithIndex {
    employee: String,
    year: u16,
    phone: String,
}

#[derive(TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct WithRest {
    employee: String,
    year: u16,
    #[table(rest)]
    others: Properties,
}

#[derive(TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct Expiring {
    employee: String,
    year: u16,
    #[table(expires)]
    until: Timestamp,
}

#[derive(TableProperties)]
#[table(wide)]
struct Month {
    day_01: i32,
}

fn main() {}
