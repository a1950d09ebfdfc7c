//! The payroll of a month is run by one of several servers, which number the payments:
//! `cargo run --example leases`.
//!
//! A lease is held by one server at a time. When its holder stops, another server takes it over,
//! and writes of the earlier holder that are late are refused. A sequence gives numbers that no two
//! payments share.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::error::Error;
use std::time::Duration;

use tablesdk::lease::Lease;
use tablesdk::sequence::Sequence;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{month}",
    row_key = "empid_{id:06}"
)]
struct Payment {
    month: String,
    id: u32,
    number: i64,
    server: String,
}

const MONTH: &str = "2024-03";
/// Longer in a real program: a minute survives short failures of the network.
const TIME: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Payroll"));
    table.create_table().await?;
    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    println!("1. Server 1 acquires the lease, and pays the first employee:");
    let mut lease = acquire(table, "server 1").await?.ok_or("it is free")?;
    let numbers = Sequence::new(table, ("numbers", "payments")).block(100);
    pay(table, &mut lease, "server 1", 1, &numbers).await?;
    println!("   token {}", lease.token());

    println!("\n2. A look at the lease of another server:");
    let look = acquire(table, "server 2").wait(Duration::ZERO).await?;
    println!("   free: {}", look.is_some());

    println!("\n3. Server 1 pauses for too long, and server 2 takes over:");
    let mut next = acquire(table, "server 2").await?.ok_or("not renewed")?;
    println!(
        "   token {}, server 1 holds it: {}",
        next.token(),
        lease.is_held()
    );

    println!("\n4. Server 1 wakes up, and goes on where it was:");
    let late = pay(table, &mut lease, "server 1", 2, &numbers).await;
    let error = late.err().ok_or("it must not pay twice")?;
    println!("   refused: {}", error.is_precondition_failed());
    if let Err(error) = lease.renew().await {
        println!("   {:?}: {error}", error.kind());
    }

    println!("\n5. Server 2 takes its time, and keeps the lease:");
    let slow = async { tokio::time::sleep(TIME * 2).await };
    next.renew_while(slow).await?;
    let numbers = Sequence::new(table, ("numbers", "payments")).block(100);
    pay(table, &mut next, "server 2", 2, &numbers).await?;
    next.release().await?;

    let payments = table.query::<Payment>().partition(MONTH);
    for payment in payments.rows(Payment::rows().id(..)).collect().await? {
        let Payment {
            id, number, server, ..
        } = payment.into_inner();
        println!("   employee {id}: payment {number} by {server}");
    }
    Ok(())
}

fn acquire(table: &TableClient, server: &str) -> tablesdk::lease::AcquireLease {
    Lease::acquire(table, (MONTH, "lock"), TIME).holder(server)
}

/// Pays an employee, unless another server has taken the lease over.
async fn pay(
    table: &TableClient,
    lease: &mut Lease,
    server: &str,
    id: u32,
    numbers: &Sequence,
) -> Result<(), tablesdk::Error> {
    let payment = Payment {
        month: MONTH.to_owned(),
        id,
        number: numbers.next().await?.cast_signed(),
        server: server.to_owned(),
    };
    lease.fence(table.batch(MONTH)).insert(&payment).await?;
    Ok(())
}
