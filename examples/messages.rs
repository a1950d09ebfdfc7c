//! The messages of an employee for each hour of a day: `cargo run --example messages`.
//!
//! An employee writes messages all day, and a program counts them for each hour. One entity holds a
//! day, with a property for each hour. So a day is read by its key, and a week is a range of seven
//! entities instead of 168. See the [data series pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [data series pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#data-series-pattern

use std::error::Error;

use tablesdk::action::ClosureError;
use tablesdk::series::Series;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use time::macros::{date, datetime};
use time::{Date, OffsetDateTime};

#[derive(Debug, TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: Date,
    /// `H00` to `H23`. Hours without messages have no property.
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

impl MessageDay {
    fn new(employee: &str, day: Date, hours: Series<i32, 24>) -> Self {
        Self {
            employee: employee.to_owned(),
            day,
            hours,
        }
    }

    fn total(&self) -> i32 {
        self.hours.iter().flatten().sum()
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
    let day = date!(2024 - 03 - 15);
    let later = MessageDay::new("ann", day, Series::from([(17, 12)]));
    table.upsert_merge(&later).await?;

    println!("\n3. The curve of a day, by one point query:");
    let read = table.get(MessageDay::key("ann", day)).await?;
    let read = read.ok_or("it was counted")?;
    for (hour, count) in read.hours.filled() {
        println!("   {hour:02}:00 {}", "#".repeat(usize::try_from(*count)?));
    }

    println!("\n4. The days since the tenth of March, by one range:");
    let days = || {
        let days = MessageDay::rows().day(date!(2024 - 03 - 10)..);
        table.query::<MessageDay>().partition("ann").rows(days)
    };
    for day in days().collect().await? {
        println!("   {}: {} messages", day.day, day.total());
    }

    println!("\n5. The days with more than five messages at five o'clock:");
    let late = days().filter(|d| d.hours.slot(17).gt(5));
    for (day, count) in late.select(|d| (d.day, d.hours.slot(17))).collect().await? {
        println!("   {day}: {}", count.unwrap_or(0));
    }
    Ok(())
}

/// Another program may count at the same time: no message is lost. After a lost response it is not
/// counted twice.
async fn count(
    table: &TableClient,
    employee: &str,
    at: OffsetDateTime,
) -> Result<(), tablesdk::Error> {
    let hour = usize::from(at.hour());
    let add = |day: &mut MessageDay| -> Result<(), ClosureError> {
        *day.hours[hour].get_or_insert(0) += 1;
        Ok(())
    };
    let key = MessageDay::key(employee, at.date());
    let new = || MessageDay::new(employee, at.date(), Series::new());
    table.modify(key, add).or_insert(new).exactly_once().await?;
    Ok(())
}
