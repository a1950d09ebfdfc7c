//! Aliases, the property and versions need an entity type, and no field is stored in the property
//! of the entity type.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(alias = "Worker", entity_type_property = "Kind", from = "Old")]
#[table(partition_key = "{department}", row_key = "{id}")]
struct WithoutEntityType {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(entity_type = "", entity_type_property = "Row Key")]
#[table(partition_key = "{department}", row_key = "{id}")]
struct ForbiddenNames {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee", rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id}")]
struct TakenName {
    department: String,
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
#[table(partition_key = "{department}", row_key = "{id}")]
struct TakenByAFlattenedStruct {
    department: String,
    id: String,
    #[table(flatten)]
    more: Kind,
}

fn main() {}
