//! Former employees in a table of their own: `cargo run --example archive`.
//!
//! Two tables have no transaction in common. A move writes the employee into the archive, and then
//! deletes it under the ETag with which it was read. So an employee is in both tables for a moment,
//! and never in neither. If a program ends in between, the next run of the same move finishes it.
//! See the archive in the [eventually consistent transactions pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.
//!
//! [eventually consistent transactions pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#eventually-consistent-transactions-pattern

use std::error::Error;

use futures::stream;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    /// The year in which the employee left.
    left: Option<i32>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Employees"));
    let archive = service.table(unique_name("Archive"));
    table.create_table().await?;
    archive.create_table().await?;

    // The tables are deleted after an error, too.
    let outcome = tour(&table, &archive).await;
    table.delete_table().await?;
    archive.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient, archive: &TableClient) -> Result<(), Box<dyn Error>> {
    let employees = (0..500).map(employee);
    let report = table.bulk().insert(stream::iter(employees)).await?;
    assert!(report.is_success());

    println!("1. One employee:");
    let key = || Employee::key("Sales", 7);
    let jones = table.get(key()).await?.ok_or("was inserted")?;
    let archived = table.move_to(archive, jones.clone()).await?;
    println!("   {} is in the archive", archived.name);
    println!("   in the table: {}", table.get(key()).await?.is_some());

    println!("\n2. An employee who was changed since the read stays:");
    let key = || Employee::key("Sales", 8);
    let stale = table.get(key()).await?.ok_or("was inserted")?;
    let promote = |e: &mut Employee| {
        e.name.push_str(", manager");
        Ok(())
    };
    table.modify(key(), promote).await?;
    if let Err(error) = table.move_to(archive, stale).await {
        println!("   changed: {}", error.is_precondition_failed());
    }
    println!("   in the archive: {}", archive.get(key()).await?.is_some());

    println!("\n3. The number of an archived employee was given again:");
    let second = table.insert(&employee(7)).await?;
    let renamed = |e: &mut Employee| {
        e.name = String::from("Smith");
        Ok(())
    };
    let second = table.modify(second.key(), renamed).await?.into_stored();
    if let Err(error) = table.move_to(archive, second.clone()).await {
        println!("   conflict: {}", error.is_conflict());
    }
    let archived = table.move_to(archive, second).overwrite().await?;
    println!("   {} has replaced Employee 7", archived.name);

    println!("\n4. All who left before 2020, in batches of 100:");
    let former = || {
        table
            .query::<Employee>()
            .partition("Sales")
            .filter(|e| e.left.lt(2020))
    };
    let found = former().move_to(archive).dry_run().await?;
    println!("   {} would be moved", found.progress().read);
    let report = former().move_to(archive).concurrency(4).await?;
    let progress = report.progress();
    println!(
        "   {} moved by {} requests",
        progress.written, progress.requests
    );
    println!(
        "   {} employees are left",
        table.query::<Employee>().count().await?
    );
    Ok(())
}

fn employee(id: u32) -> Employee {
    let year = 2010 + i32::try_from(id % 20).unwrap_or_default();
    Employee {
        department: "Sales".to_owned(),
        id,
        name: format!("Employee {id}"),
        left: (year < 2025).then_some(year),
    }
}
