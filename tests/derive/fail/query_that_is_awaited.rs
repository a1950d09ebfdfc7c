//! A query is no action: a method chooses its result.
use tablesdk::{TableClient, TableEntity, TableServiceClient};

#[derive(TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
}

async fn read(service: &TableServiceClient, table: &TableClient) -> Result<(), tablesdk::Error> {
    let _ = table.query::<Person>().partition("UK").await?;
    let _ = table.query::<Person>().partitions(["UK", "FR"]).await?;
    let _ = service.tables().await?;
    Ok(())
}

fn main() {}
