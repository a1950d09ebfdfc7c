//! A row key belongs to one variant.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "emp_{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "emp_review_{id}")]
struct Review {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Employee(Employee),
    Review(Review),
}

fn main() {}
