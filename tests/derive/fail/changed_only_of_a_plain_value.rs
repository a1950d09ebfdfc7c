use tablesdk::{ETag, TableEntity};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

async fn merge(table: &tablesdk::TableClient, plain: Employee) -> Result<ETag, tablesdk::Error> {
    table.upsert_merge(&plain).changed_only().await
}

fn main() {}
