//! Readings that arrive faster than one partition takes, read in the order of time:
//! `cargo run --example readings`.
//!
//! Sensors report each second. If all readings of an hour were in one partition, it would take
//! 2,000 of them a second. So the partition key begins with one of 16 shards, by the sensor. A read
//! merges the shards. See the [prepend/append anti-pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [prepend/append anti-pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#prepend-append-anti-pattern

use std::error::Error;
use std::fmt;

use futures::stream;
use tablesdk::key::Shard;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Clone, Debug, TableEntity)]
#[table(
    partition_key = "{shard}_{hour}",
    row_key = "{minute:02}_{second:02}_{sensor}"
)]
struct Reading {
    shard: Shard<16>,
    hour: String,
    minute: u32,
    second: u32,
    sensor: String,
    celsius: f64,
}

impl Reading {
    fn new(hour: &str, at: u32, sensor: u32) -> Self {
        let celsius = 18.0 + f64::from((at + sensor) % 7) / 2.0;
        let sensor = format!("sensor-{sensor:02}");
        Self {
            hour: hour.to_owned(),
            // The same sensor is always in the same shard, so a single reading is read by its key.
            shard: Shard::of(&sensor),
            minute: at / 60,
            second: at % 60,
            celsius,
            sensor,
        }
    }
}

const HOUR: &str = "2024-03-15T10";
const SENSORS: u32 = 40;

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minute, second) = (self.minute, self.second);
        write!(
            f,
            "{minute:02}:{second:02} {}: {:.1} °C",
            self.sensor, self.celsius
        )
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Readings"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    println!("1. Write two minutes of {SENSORS} sensors:");
    let seconds = (0..120).flat_map(|at| (0..SENSORS).map(move |sensor| (at, sensor)));
    let readings = seconds.map(|(at, sensor)| Reading::new(HOUR, at, sensor));
    let report = table.bulk().insert(stream::iter(readings)).await?;
    println!("   {} readings in 16 partitions", report.progress().written);

    let of_hour = || {
        let partitions = Shard::all().map(|shard| Reading::partition(shard, HOUR));
        table.query::<Reading>().partitions(partitions).merged()
    };
    println!("\n2. The first readings of the hour, in the order of time:");
    let mut token = None;
    for _ in 0..2 {
        let page = of_hour().take(3).page_after(token.as_deref()).await?;
        for reading in page.items {
            println!("   {}", *reading);
        }
        // It fits into a URL.
        token = page.next.map(|next| next.to_string());
    }

    println!("\n3. The warm readings of one second of all sensors:");
    let warm = of_hour().rows(Reading::rows().minute(1).second(5));
    let warm = warm.filter(|r| r.celsius.ge(18.5)).count().await?;
    println!("   {warm} of {SENSORS}");

    println!("\n4. One reading, by its key:");
    let key = Reading::key(Shard::of("sensor-07"), HOUR, 1, 30, "sensor-07");
    let reading = table.get(key).await?.ok_or("it was written")?;
    println!("   {}", *reading);
    Ok(())
}
