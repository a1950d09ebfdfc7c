//! A variant holds an entity.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
}

struct Employee {
    name: String,
}

#[derive(TableEntity)]
enum Row {
    Department(Department),
    Employee(Employee),
}

fn main() {}
