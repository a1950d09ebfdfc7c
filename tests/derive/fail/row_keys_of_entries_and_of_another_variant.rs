//! A row key belongs to one variant, also where it is that of an entry in an index.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "emp_{id}",
    index(EmployeeByName, row_key = "name_{name}_{id}")
)]
struct Employee {
    department: String,
    id: String,
    name: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "name_{name}")]
struct Name {
    department: String,
    name: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Employee(Employee),
    Name(Name),
}

fn main() {}
