//! An enum has no entity type.
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
enum Inner {
    Employee(Employee),
}

#[derive(TableEntity)]
enum Row {
    Department(Department),
    #[table(alias = "Worker")]
    Inner(Inner),
}

fn main() {}
