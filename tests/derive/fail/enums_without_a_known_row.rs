//! An enum knows at least one kind of row.
use tablesdk::{DynamicEntity, TableEntity};

#[derive(TableEntity)]
enum Nothing {}

#[derive(TableEntity)]
enum Anything {
    #[table(other)]
    Other(DynamicEntity),
}

fn main() {}
