//! Three web servers count the views of a page: `cargo run --example counters`.
//!
//! The number is the sum of several entities, so that the servers seldom conflict. What one server
//! counts at the same time is one request.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::error::Error;

use futures::future::try_join_all;
use tablesdk::counter::Counter;
use tablesdk::{DynamicEntity, TableClient};
use tablesdk_examples::{connect, unique_name};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Views"));
    table.create_table().await?;
    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let servers: Vec<Counter> = (0..3)
        .map(|_| Counter::new(table, ("home", "views")))
        .collect();

    println!("1. Each of three servers shows the page 200 times, at the same time:");
    let views = servers
        .iter()
        .flat_map(|server| (0..200).map(|_| server.add(1)));
    try_join_all(views).await?;
    let total = servers[0].value().await?;
    println!("   {total} views");

    println!("\n2. A few more, one after the other:");
    for server in servers.iter().cycle().take(30) {
        server.add(1).await?;
    }
    println!("   {} views", servers[1].value().await?);

    println!("\n3. The number is the sum of the shards that were written:");
    let shards = table.query::<DynamicEntity>().partition("home");
    for shard in shards.collect().await? {
        let count: i64 = shard.properties().read("Count")?;
        println!("   {}: {count}", shard.row_key());
    }
    Ok(())
}
