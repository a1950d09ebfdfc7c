use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    salary: f64,
    name: String,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Employee>().filter(|e| e.salary.ge("lots"));
    let _ = table.query::<Employee>().filter(|e| e.name.eq(5));
    let _ = table.query::<Employee>().filter(|e| e.salary.starts_with("5"));
}

fn main() {}
