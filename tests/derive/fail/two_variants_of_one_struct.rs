//! Two variants of one struct cannot be distinguished.
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
enum Row {
    Open(Department),
    Closed(Department),
}

fn main() {}
