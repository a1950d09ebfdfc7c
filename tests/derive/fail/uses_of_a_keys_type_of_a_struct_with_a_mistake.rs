use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(keys = "EmployeeKeys", row_key = "{id:06}")]
struct Employee {
    #[table(partition_key)]
    department: String,
    id: u32,
    #[table(renam = "FullName")]
    name: String,
}

fn main() {
    let _ = EmployeeKeys::key("Sales", 1);
    let _ = EmployeeKeys::partition("Sales");
    let _ = EmployeeKeys::rows().id(1);
}
