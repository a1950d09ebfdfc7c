//! An entity has one partition key and one row key: each is a field, or a template of fields.
use tablesdk::TableEntity;

#[derive(TableEntity)]
struct MissingBothKeys {
    name: String,
}

#[derive(TableEntity)]
struct MissingPartitionKey {
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct MissingKeyByName {
    #[table(partition_key)]
    department: String,
    row_key: String,
}

#[derive(TableEntity)]
struct BothKeysOnOneField {
    #[table(partition_key, row_key)]
    id: String,
    #[table(row_key)]
    badge: String,
}

#[derive(TableEntity)]
struct TwoRowKeys {
    #[table(partition_key, rename = "Department")]
    department: String,
    #[table(row_key, default)]
    id: String,
    #[table(row_key)]
    badge: String,
}

#[derive(TableEntity)]
struct MisspeltMark {
    #[table(partitionkey)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(partition_key)]
    other: String,
}

#[derive(TableEntity)]
struct TemplateOnAField {
    #[table(partition_key = "{department}")]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key)]
struct TemplateWithoutString {
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04}")]
struct TemplateAndMark {
    #[table(partition_key)]
    department: String,
    employee: String,
    year: u16,
}

#[derive(TableEntity)]
#[table(keys = "not a name")]
struct KeysTypeWithoutName {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
