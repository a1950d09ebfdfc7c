//! The tools that an agent sees: their names, descriptions and arguments. This module does nothing.

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::arguments::tidy;
use crate::selection::Selection;

pub(super) const LIST_TABLES: &str = "list_tables";
pub(super) const TABLE_SCHEMA: &str = "table_schema";
pub(super) const GET_ENTITY: &str = "get_entity";
pub(super) const QUERY_ENTITIES: &str = "query_entities";
pub(super) const INSERT_ENTITY: &str = "insert_entity";
pub(super) const REPLACE_ENTITY: &str = "replace_entity";
pub(super) const MERGE_ENTITY: &str = "merge_entity";
pub(super) const DELETE_ENTITY: &str = "delete_entity";

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ListTables {
    /// Only tables whose names begin so, in the case in which they were created
    pub(super) prefix: Option<String>,
    /// Only tables that follow this one in the order of names: "continue" of an earlier answer
    #[serde(rename = "continue")]
    pub(super) resume: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct TableSchema {
    /// The table
    pub(super) table: String,
    /// Look at this number of entities. Default: 1000
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) sample: Option<usize>,
    /// Leave out this number of lines: "continue" of an earlier answer
    #[serde(rename = "continue")]
    pub(super) resume: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(rename_all = "camelCase")]
pub(super) struct GetEntity {
    /// The table
    pub(super) table: String,
    /// The partition key
    pub(super) partition_key: String,
    /// The row key
    pub(super) row_key: String,
    /// Only these properties, beside the keys. Their values are shown beyond 1,024 characters
    #[serde(default)]
    pub(super) select: Vec<String>,
    /// Show the value of the one selected property from this character on
    pub(super) offset: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct QueryEntities {
    /// The table
    pub(super) table: String,
    #[serde(flatten)]
    pub(super) selection: Selection,
    /// Only these properties, beside the keys. Their values are shown beyond 1,024 characters
    #[serde(default)]
    pub(super) select: Vec<String>,
    /// Return at most this number of entities. Default: 50
    #[schemars(range(min = 1, max = 1000))]
    pub(super) take: Option<usize>,
    /// Return what follows an earlier answer: its "continue", with the same other arguments
    #[serde(rename = "continue")]
    pub(super) resume: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct InsertEntity {
    /// The table
    pub(super) table: String,
    /// The entity in the JSON of the service, with `PartitionKey` and `RowKey`
    pub(super) entity: JsonObject,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub(super) struct ChangeEntity {
    /// The table
    pub(super) table: String,
    /// The entity in the JSON of the service, with `PartitionKey` and `RowKey`
    pub(super) entity: JsonObject,
    /// The ETag of the entity that was read
    pub(super) etag: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteEntity {
    /// The table
    pub(super) table: String,
    /// The partition key
    pub(super) partition_key: String,
    /// The row key
    pub(super) row_key: String,
    /// The ETag of the entity that was read
    pub(super) etag: String,
}

/// All tools, in the order in which an agent needs them.
pub(super) fn all() -> impl Iterator<Item = Tool> {
    [
        read::<ListTables>(
            LIST_TABLES,
            "List the names of the tables, in their order without regard to case.",
        ),
        read::<TableSchema>(
            TABLE_SCHEMA,
            "Look at some entities of a table, and list its properties: a line for each type that a property has, with the number of \
             entities that have it, its smallest and largest value (cut after 100 characters), and its size in bytes.",
        ),
        read::<GetEntity>(
            GET_ENTITY,
            "Read one entity by its keys, with its ETag. A value of more than 1,024 characters is not in \"entity\" but in \"cut\", with its first \
             characters: \"select\" shows more of it, and \"offset\" what follows.",
        ),
        read::<QueryEntities>(
            QUERY_ENTITIES,
            "Read the entities that meet all conditions, in the order of their keys, each with its ETag. \"access\" says how the service finds \
             them. If there may be more, the answer has \"continue\". A value of more than 1,024 characters is in \"cut\", as get_entity \
             has it.",
        ),
        write::<InsertEntity>(
            INSERT_ENTITY,
            "Insert an entity. It is an error if there is one with its keys.",
            false,
        ),
        write::<ChangeEntity>(
            REPLACE_ENTITY,
            "Replace all properties of an entity that was read, if it has still the same ETag. Properties that the new entity lacks are \
             removed; a long one, which reads show in \"cut\", only if it is null.",
            true,
        ),
        write::<ChangeEntity>(
            MERGE_ENTITY,
            "Set some properties of an entity that was read, if it has still the same ETag. The others stay.",
            true,
        ),
        write::<DeleteEntity>(
            DELETE_ENTITY,
            "Delete an entity that was read, if it has still the same ETag.",
            true,
        ),
    ]
    .into_iter()
}

fn read<T: JsonSchema + 'static>(name: &'static str, description: &'static str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true);
    tool::<T>(name, description, hints)
}

/// A second call with the same arguments changes nothing: the keys exist, or the ETag is another
/// one.
fn write<T: JsonSchema + 'static>(
    name: &'static str,
    description: &'static str,
    destroys: bool,
) -> Tool {
    let hints = ToolAnnotations::new().read_only(false).idempotent(true);
    tool::<T>(name, description, hints.destructive(destroys))
}

fn tool<T: JsonSchema + 'static>(
    name: &'static str,
    description: &'static str,
    hints: ToolAnnotations,
) -> Tool {
    // Each of these types is an object, as a test asserts.
    let schema = schema_for_input::<T>().unwrap_or_default();
    Tool::new(name, description, tidy(&schema)).with_annotations(hints.open_world(false))
}
