//! The messages of an employee for each hour of a day: `cargo run --example messages`.
//!
//! An employee writes messages all day, and a program counts them for each hour. One entity holds a day, with a property for each hour. So a
//! day is read by its key, and a week is a range of seven entities instead of 168. See the [data series pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the argument or in
//! `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with a new name, and deletes it at the end.
//!
//! [data series pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#data-series-pattern

use std::error::Error;

use tablesdk::action::ClosureError;
use tablesdk::{Properties, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use time::macros::{date, datetime};
use time::{Date, OffsetDateTime};

#[derive(Debug, TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: Date,
    /// `H00` to `H23`. Hours without messages have no property.
    #[table(rest)]
    hours: Properties,
}

fn hour(hour: u8) -> String {
    format!("H{hour:02}")
}

impl MessageDay {
    fn new(employee: &str, day: Date) -> Self {
        Self {
            employee: employee.to_owned(),
            day,
            hours: Properties::new(),
        }
    }

    fn count(&self, at: u8) -> i32 {
        self.hours.read(&hour(at)).unwrap_or(0)
    }

    fn total(&self) -> i32 {
        (0..24).map(|at| self.count(at)).sum()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Messages"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    println!("1. Count each message:");
    for at in [
        datetime!(2024-03-14 16:20 UTC),
        datetime!(2024-03-15 9:05 UTC),
        datetime!(2024-03-15 9:40 UTC),
        datetime!(2024-03-15 11:30 UTC),
    ] {
        count(table, "ann", at).await?;
    }
    println!("   4 counted");

    println!("\n2. Write an hour that another program has counted, without a read:");
    let mut later = MessageDay::new("ann", date!(2024 - 03 - 15));
    later.hours.set(hour(17), 12);
    table.upsert_merge(&later).await?;

    println!("\n3. The curve of a day, by one point query:");
    let key = MessageDay::key("ann", date!(2024 - 03 - 15));
    let day = table.get(key).await?.ok_or("it was counted")?;
    for at in (0..24).filter(|at| day.count(*at) > 0) {
        println!("   {at:02}:00 {}", "#".repeat(day.count(at).try_into()?));
    }

    println!("\n4. The days since the tenth of March, by one range:");
    let days = MessageDay::rows().day(date!(2024 - 03 - 10)..);
    let days = table.query::<MessageDay>().partition("ann").rows(days);
    for day in days.collect().await? {
        println!("   {}: {} messages", day.day, day.total());
    }
    Ok(())
}

/// Another program may count at the same time: no message is lost. After a lost response it is not counted twice.
async fn count(
    table: &TableClient,
    employee: &str,
    at: OffsetDateTime,
) -> Result<(), tablesdk::Error> {
    let add = |day: &mut MessageDay| -> Result<(), ClosureError> {
        let count = day.count(at.hour()) + 1;
        day.hours.set(hour(at.hour()), count);
        Ok(())
    };
    let (key, new) = (MessageDay::key(employee, at.date()), || {
        MessageDay::new(employee, at.date())
    });
    table.modify(key, add).or_insert(new).exactly_once().await?;
    Ok(())
}
