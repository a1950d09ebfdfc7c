use tablesdk::{ETag, TableEntity};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

async fn replace(table: &tablesdk::TableClient, mut plain: Employee) -> Result<ETag, tablesdk::Error> {
    table.replace(&mut plain).await
}

fn main() {}
