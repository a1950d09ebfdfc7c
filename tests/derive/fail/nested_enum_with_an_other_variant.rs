//! A nested enum cannot have the variant `other`.
use tablesdk::{DynamicEntity, TableEntity};

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
enum Inner {
    Employee(Employee),
    #[table(other)]
    Other(DynamicEntity),
}

#[derive(TableEntity)]
enum Row {
    Inner(Inner),
    Department(Department),
}

fn main() {}
