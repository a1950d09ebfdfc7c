//! An older version needs a conversion to the newer one.
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
#[table(entity_type = "Employee.v2", from = "Old")]
struct New {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
