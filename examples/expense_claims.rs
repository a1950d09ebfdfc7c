//! The newest expense claims first: `cargo run --example expense_claims`.
//!
//! A query returns entities in ascending order of their keys. The row key of a claim contains its
//! date counted backwards, so the newest claim is the first entity. The ten newest claims are the
//! first ten entities, and the old claims are a key range. See the [log tail pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [log tail pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide#log-tail-pattern

use std::error::Error;

use futures::stream;
use tablesdk::{DynamicEntity, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{employee}",
    row_key = "{claimed:desc}_{number:04}"
)]
struct ExpenseClaim {
    employee: String,
    claimed: OffsetDateTime,
    /// Distinguishes claims of the same instant.
    number: u32,
    purpose: String,
    amount: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("ExpenseClaims"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let claims = (0..100).map(claim);
    let report = table.bulk().insert(stream::iter(claims)).await?;
    assert!(report.is_success());

    println!("1. The newest three, which are the first three:");
    let of_jones = || table.query::<ExpenseClaim>().partition("jonesj");
    for claim in of_jones().take(3).collect().await? {
        println!(
            "   {}: {} for {}",
            claim.claimed.date(),
            claim.amount,
            claim.purpose
        );
    }

    println!("\n2. Those of one week in March, the newest first as well:");
    let week = datetime!(2024-03-04 0:00 UTC)..datetime!(2024-03-11 0:00 UTC);
    for claim in of_jones()
        .rows(ExpenseClaim::rows().claimed(week))
        .collect()
        .await?
    {
        println!(
            "   {}: {} for {}",
            claim.claimed.date(),
            claim.amount,
            claim.purpose
        );
    }

    println!("\n3. How a key looks, which any .NET program reads as inverted ticks:");
    let key = ExpenseClaim::key("jonesj", datetime!(2024-04-09 9:30 UTC), 99);
    let row = table.get(key.of::<DynamicEntity>()).await?;
    let row = row.ok_or("it was just inserted")?;
    println!("   {}", row.key().row_key());

    println!("\n4. Deleting what is from before April:");
    let april = datetime!(2024-04-01 0:00 UTC);
    let old = || of_jones().rows(ExpenseClaim::rows().claimed(..april));
    let found = old().delete_all().dry_run().await?;
    println!("   {} would be deleted", found.progress().read);
    let report = old().delete_all().await?;
    println!(
        "   {} deleted by {} request, {} left",
        report.progress().written,
        report.progress().requests,
        of_jones().count().await?
    );
    Ok(())
}

fn claim(number: u32) -> ExpenseClaim {
    let purposes = ["a taxi", "a hotel", "a train", "lunch"];
    let index = usize::try_from(number).unwrap_or_default() % purposes.len();
    ExpenseClaim {
        employee: "jonesj".to_owned(),
        claimed: datetime!(2024-01-01 9:30 UTC) + Duration::days(number.into()),
        number,
        purpose: purposes[index].to_owned(),
        amount: 12.5 + f64::from(number),
    }
}
