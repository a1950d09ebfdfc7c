//! Logins of users, in one table for each day: `cargo run --example login_log`.
//!
//! The key of a login is the user and the instant, so one query of a key range reads what a user
//! did in a time. Logins are deleted after some days: with a table for each day, that is one
//! request for any number of logins. To delete by anything but the age, such as all logins of a
//! user, a query finds the entities and deletes them in batches. See the [high volume delete
//! pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.
//!
//! [high volume delete pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#high-volume-delete-pattern

use std::error::Error;

use futures::{TryStreamExt, stream};
use tablesdk::rolling::{Period, RollingTable};
use tablesdk::{TableEntity, Timestamp};
use tablesdk_examples::{connect, unique_name};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{user}",
    row_key = "{at}_{session:04}"
)]
struct Login {
    user: String,
    at: OffsetDateTime,
    /// Distinguishes logins of the same instant.
    session: u32,
    succeeded: bool,
}

const MONDAY: OffsetDateTime = datetime!(2024-03-11 0:00 UTC);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let prefix = unique_name("Logins") + "Of";
    let logins = RollingTable::new(&service, prefix, Period::Day);

    // The tables are deleted after an error, too.
    let outcome = tour(&logins).await;
    logins.drop_before(Timestamp::MAX).await?;
    outcome
}

async fn tour(logins: &RollingTable) -> Result<(), Box<dyn Error>> {
    println!(
        "1. The tables of a week are created ahead, and each login goes into that of its day:"
    );
    for day in 0..7 {
        let day = MONDAY + Duration::days(day);
        logins.at(day).create_table().await?;
        let of_day = (0..300).map(|number| login(day, number));
        let report = logins.at(day).bulk().insert(stream::iter(of_day)).await?;
        assert!(report.is_success());
    }
    println!("   2100 logins in 7 tables");

    println!("\n2. The failed logins of a user in a night, from two tables:");
    let night = MONDAY + Duration::hours(22)..MONDAY + Duration::hours(26);
    let range = night.clone();
    let failed = logins.stream(night, move |day| {
        let of_ann = day.query::<Login>().partition("ann");
        let in_range = of_ann.rows(Login::rows().at(range.clone()));
        in_range.filter(|l| l.succeeded.eq(false)).stream()
    });
    let failed: Vec<_> = failed.try_collect().await?;
    for login in failed.iter().take(3) {
        println!("   {} {}", login.at.date(), login.at.time());
    }
    println!("   {} in all", failed.len());

    println!("\n3. A user leaves, and all logins are deleted in batches of 100:");
    let (mut deleted, mut requests) = (0, 0);
    for day in 0..7 {
        let table = logins.at(MONDAY + Duration::days(day));
        let of_bob = || table.query::<Login>().partition("bob");
        let report = of_bob().delete_all().await?;
        deleted += report.progress().written;
        requests += report.progress().requests;
    }
    println!("   {deleted} deleted by {requests} batches");

    println!("\n4. What is from before Friday is dropped:");
    let dropped = logins.drop_before(MONDAY + Duration::days(4)).await?;
    println!(
        "   {} tables, without a look at their logins",
        dropped.len()
    );
    let left = logins.stream(MONDAY.., |day| day.query::<Login>().stream());
    println!(
        "   {} logins are left",
        left.try_fold(0, |count, _| async move { Ok(count + 1) })
            .await?
    );
    Ok(())
}

/// A login of ann, bob and eve in turn, 300 a day.
fn login(day: OffsetDateTime, number: u32) -> Login {
    let users = ["ann", "bob", "eve"];
    let index = usize::try_from(number).unwrap_or_default();
    Login {
        user: users[index % users.len()].to_owned(),
        at: day + Duration::seconds(288) * number,
        session: number,
        succeeded: !number.is_multiple_of(4),
    }
}
