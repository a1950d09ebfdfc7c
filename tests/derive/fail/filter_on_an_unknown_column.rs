use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    salary: f64,
}

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Employee>().filter(|e| e.pay.ge(50_000.0));
}

fn main() {}
