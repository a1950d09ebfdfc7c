//! An enum has at least one known variant.
use tablesdk::{DynamicEntity, TableEntity};

#[derive(TableEntity)]
enum Nothing {}

#[derive(TableEntity)]
enum Anything {
    #[table(other)]
    Other(DynamicEntity),
}

fn main() {}
