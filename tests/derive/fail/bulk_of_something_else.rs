use futures::stream;
use tablesdk::{Stored, TableClient, TableEntity};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

async fn run(table: &TableClient, stored: Vec<Stored<Employee>>, plain: Vec<Employee>) {
    let _ = table.bulk().insert(stream::iter(["Ada"])).await;
    let _ = table.bulk().upsert_replace(stream::iter(stored)).await;
    let _ = table.bulk().insert(plain).await;
    let _ = table.bulk().delete([Employee::key("Sales", "1")]).await;
}

fn main() {}
