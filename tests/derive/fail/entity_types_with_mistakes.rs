//! Aliases, the property and versions need an entity type, and no field is stored in the property of the entity type.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(alias = "Worker", entity_type_property = "Kind", from = "Old")]
struct WithoutEntityType {
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
struct ForbiddenNames {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
struct TakenName {
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
struct TakenByAFlattenedStruct {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    more: Kind,
}

fn main() {}
