//! A row key without a prefix could belong to any variant.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
struct Review {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Employee(Employee),
    Review(Review),
}

fn main() {}
