//! The variant `other` has no entity type.
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
    #[table(other, alias = "Ship")]
    Other(DynamicEntity),
}

fn main() {}
