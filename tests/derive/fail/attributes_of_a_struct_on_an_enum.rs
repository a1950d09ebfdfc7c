//! Keys and names belong on the structs.
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
#[table(partition_key, entity_type = "Row", alias = "Line", bye = "row_key")]
enum Row {
    #[table(row_key, rename = "Office")]
    Department(Department),
    Employee(#[table(alias = "Worker")] Employee),
}

fn main() {}
