//! Variants are distinguished by entity types or by row keys.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
}

#[derive(TableEntity)]
#[table(by = "rowkey")]
enum Row {
    Department(Department),
}

fn main() {}
