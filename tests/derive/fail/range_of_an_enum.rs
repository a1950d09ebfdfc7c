use tablesdk::{PropertyValue, TableEntity};

#[derive(PropertyValue)]
enum Status {
    Active,
    Retired,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{status}")]
struct Employee {
    department: String,
    status: Status,
}

fn main() {
    let _ = Employee::rows().status(Status::Active..Status::Retired);
}
