//! Aliases, the property and versions need an entity type.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(alias = "Worker", entity_type_property = "Kind", from = "Old")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableProperties)]
#[table(entity_type = "Address")]
struct Address {
    city: String,
}

#[derive(TableEntity)]
#[table(entity_type = "", entity_type_property = "Row Key")]
struct Office {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
