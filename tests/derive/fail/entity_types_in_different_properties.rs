//! All variants have their type in one property.
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
#[table(entity_type = "Employee", entity_type_property = "Kind")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum Row {
    Department(Department),
    Employee(Employee),
}

fn main() {}
