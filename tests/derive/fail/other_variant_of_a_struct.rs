//! The variant `other` holds a `DynamicEntity`.
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
    Department(Department),
    #[table(other)]
    Other(Employee),
}

fn main() {}
