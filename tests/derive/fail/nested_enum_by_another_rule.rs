//! One look at a row tells what it is.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Person {
    Employee(Employee),
}

#[derive(TableEntity)]
enum Row {
    Person(Person),
}

fn main() {}
