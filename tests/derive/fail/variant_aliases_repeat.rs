//! An alias belongs to one variant, and is not a name of its struct.
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
    #[table(alias = "Office", alias = "Office")]
    Department(Department),
    #[table(alias = "Office", alias = "")]
    Employee(Employee),
}

#[derive(TableEntity)]
enum Known {
    #[table(alias = "Department")]
    Department(Department),
}

fn main() {}
