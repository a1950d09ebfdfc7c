//! No field is stored in the property of the entity type.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    entity_type: String,
    #[table(alias = "EntityType")]
    kind: String,
}

#[derive(TableProperties)]
struct Kind {
    kind: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Office", entity_type_property = "kind")]
struct Office {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    more: Kind,
}

fn main() {}
