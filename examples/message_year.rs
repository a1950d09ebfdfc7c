//! The messages of an employee for each day of a year: `cargo run --example message_year`.
//!
//! A year has 366 values, and an entity has at most 252 properties. `#[table(wide)]` stores the
//! year as several entities of one partition, and writes and reads them as one. See the [wide
//! entities pattern]. The same goes for more than 1 MiB: see the [large entities pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [large entities pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#large-entities-pattern
//! [wide entities pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#wide-entities-pattern

use std::error::Error;
use std::time::Duration;

use futures::TryStreamExt;
use tablesdk::action::ClosureError;
use tablesdk::series::Series;
use tablesdk::{DynamicEntity, TableClient, TableEntity, Value};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct MessageYear {
    employee: String,
    year: u16,
    /// `D000` to `D365`.
    #[table(flatten, prefix = "D")]
    days: Series<i32, 366>,
}

impl MessageYear {
    fn total(&self) -> i32 {
        self.days.iter().flatten().sum()
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
    let years = table.wide::<MessageYear>();
    println!("1. A year, in one transaction:");
    for year in [2023, 2024] {
        let days = (0..365).map(|day| (day, 10)).collect::<Vec<_>>();
        let year = MessageYear {
            employee: "ann".to_owned(),
            year,
            days: Series::from_iter(days),
        };
        years.insert(&year).await?;
    }
    let stored = table
        .query::<DynamicEntity>()
        .partition("ann")
        .count()
        .await?;
    println!("   2 years are {stored} entities of the service");

    println!("\n2. All of it is read, or none:");
    let key = || MessageYear::key("ann", 2024);
    let year = years.get(key()).await?.ok_or("no such year")?;
    println!("   2024: {} messages", year.total());

    println!("\n3. One more, under the ETag that was read:");
    let add = |year: &mut MessageYear| -> Result<(), ClosureError> {
        *year.days[74].get_or_insert(0) += 1;
        Ok(())
    };
    let year = years.modify(key(), add).await?;
    println!("   2024: {} messages", year.total());

    println!("\n4. A few days, from the entities that have them:");
    let days = years.select(key(), |y| (y.days.slot(74), y.days.slot(365)));
    let (day, last) = days.await?.ok_or("no such year")?;
    println!("   15 March: {day:?}, the last day: {last:?}");

    println!("\n5. The years of the employee:");
    let mut of_ann = years.stream("ann");
    while let Some(year) = of_ann.try_next().await? {
        println!("   {}: {} messages", year.year, year.total());
    }

    println!("\n6. A map of 6 MiB, in several transactions; readers see all or nothing:");
    let photo = |number| (format!("P{number:02}"), Value::Binary(vec![7; 64 * 1024]));
    let album = DynamicEntity::new("ann", "album").with_properties((0..96).map(photo).collect());
    let albums = table.wide::<DynamicEntity>();
    albums.insert(&album).await?;
    let album = albums.get(("ann", "album")).await?.ok_or("no album")?;
    println!("   {} photos", album.properties().len());

    println!("\n7. What a program leaves that ends between two transactions is deleted:");
    let left = albums
        .clean_up_siblings("ann", Duration::from_secs(3600))
        .await?;
    println!("   {left} writes did not end");
    Ok(())
}
