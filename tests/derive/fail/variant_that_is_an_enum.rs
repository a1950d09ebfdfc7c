//! A variant holds a struct, and not another enum of entities.
use tablesdk::{DynamicEntity, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum Person {
    Employee(Employee),
}

#[derive(TableEntity)]
enum Row {
    Person(Person),
    #[table(other)]
    Other(DynamicEntity),
}

fn main() {}
