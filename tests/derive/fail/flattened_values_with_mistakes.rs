//! Mistakes that the compiler finds in the names, the number and the types of flattened properties.
use tablesdk::chunked::Chunked;
use tablesdk::series::Series;
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct ChunksWithoutPrefix {
    employee: String,
    day: String,
    #[table(flatten)]
    cv: Chunked<String>,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct SlotsWithoutPrefix {
    employee: String,
    day: String,
    #[table(flatten)]
    hours: Series<i32, 24>,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct NameOfAChunk {
    employee: String,
    day: String,
    cv__1: String,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String>,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct NameOfASlot {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
    #[table(rename = "H07")]
    seven: i32,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct NameInAStruct {
    employee: String,
    day: String,
    city: String,
    #[table(flatten)]
    home: Home,
}

#[derive(TableProperties)]
struct Home {
    city: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct TooManySlots {
    employee: String,
    day: String,
    total: i32,
    #[table(flatten, prefix = "M")]
    minutes: Series<i32, 252>,
}

#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct NoSlots {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 0>,
}

/// An entity has at most 1 MiB, and sixteen chunks are that.
#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct TooManyChunks {
    employee: String,
    day: String,
    #[table(flatten, prefix = "cv")]
    cv: Chunked<String, 17>,
}

/// Only strings and binary are cut.
#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct ChunksOfAnotherType {
    employee: String,
    day: String,
    #[table(flatten, prefix = "age")]
    age: Chunked<i32>,
}

/// Only a column of Int64 can also hold Int32.
#[derive(TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MixedIntegersOfAString {
    employee: String,
    day: String,
    #[table(mixed_integers)]
    name: String,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase", partition_key = "{country}", row_key = "{id}")]
struct Person {
    country: String,
    id: String,
    #[table(flatten, prefix = "Home")]
    home: Address,
    #[table(flatten)]
    work: Option<Office>,
}

#[derive(TableProperties)]
struct Address {
    street_name: String,
}

#[derive(TableProperties)]
#[table(rename_all = "camelCase")]
struct Office {
    #[table(flatten)]
    building: Building,
    #[table(flatten, prefix = "Own")]
    named: Named,
}

#[derive(TableProperties)]
struct Building {
    floor_number: i32,
}

#[derive(TableProperties)]
struct Named {
    #[table(rename = "Name")]
    name: String,
    #[table(skip)]
    cached_name: String,
}

fn main() {}
