struct Employee;

fn query(table: &tablesdk::TableClient) {
    let _ = table.query::<Employee>();
}

fn main() {}
