//! The columns of each variant have a different name.
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
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum Row {
    RowKey(Department),
    Timestamp(Employee),
}

fn main() {}
