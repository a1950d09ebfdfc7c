//! Each attribute has its form and its position, and excludes others.
use tablesdk::{Properties, TableEntity};

#[derive(TableEntity)]
#[table]
struct WithoutParenthesesOrStrings {
    #[table("partition_key")]
    country: String,
    #[table = "row_key"]
    id: String,
    #[table()]
    name: String,
    #[table(rename("Age"))]
    age: i32,
    #[table(default = 5)]
    limit: i32,
    #[table(rename)]
    hired: i32,
    #[table(rename = 5)]
    left: i32,
}

#[derive(TableEntity)]
#[table(rename = "Employees", partition_key = "{department}", row_key = "{id}")]
struct OnTheWrongItem {
    department: String,
    id: String,
    #[table(rename_all = "camelCase")]
    name: String,
}

#[derive(TableEntity)]
#[table(crate = "my sdk", partition_key = "{department}", row_key = "{id}")]
struct NotAPath {
    department: String,
    id: String,
    #[table(default = "5 + 5")]
    limit: i32,
}

#[derive(TableEntity)]
#[table(rename_al = "PascalCase", partition_key = "{department}", row_key = "{id}")]
struct UnknownAndRepeated {
    department: String,
    id: String,
    #[table(column = "Name", rename = "FullName")]
    name: String,
    #[table(rename = "A")]
    #[table(rename = "B")]
    nickname: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct ExcludeEachOther {
    department: String,
    id: String,
    #[table(json, skip)]
    tags: Vec<String>,
    #[table(json, with = "cents")]
    pay: i64,
    #[table(rest, etag)]
    other: Properties,
    #[table(skip, rename = "Cached", alias = "Cache")]
    cached: u64,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct TwoRests {
    department: String,
    id: String,
    #[table(rest)]
    a: Properties,
    #[table(rest)]
    b: Properties,
}

fn main() {}
