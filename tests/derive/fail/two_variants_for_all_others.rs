//! One variant is `other`.
use tablesdk::{DynamicEntity, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
}

#[derive(TableEntity)]
enum Row {
    Department(Department),
    #[table(other)]
    Other(DynamicEntity),
    #[table(other)]
    Rest(DynamicEntity),
}

fn main() {}
