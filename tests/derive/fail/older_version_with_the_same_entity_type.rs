//! An older version has a different entity type.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Old {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee", from = "Old")]
struct SameName {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

impl From<Old> for SameName {
    fn from(old: Old) -> Self {
        Self { department: old.department, id: old.id }
    }
}

fn main() {}
