//! A nested enum distinguishes its variants like the outer enum.
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
