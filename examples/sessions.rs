//! Login sessions that expire: `cargo run --example sessions`.
//!
//! A session is over at an instant. From then on it is not returned, and a removal deletes it
//! later. The removal finds it by the bucket of its hour, so it does not read sessions that are not
//! over. It is run by a timer, in as many processes as there are.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::error::Error;

use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use time::{Duration, OffsetDateTime};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{user}",
    row_key = "session_{id:06}"
)]
struct Session {
    user: String,
    id: u32,
    device: String,
    /// Without an instant, the session is kept until the user leaves.
    #[table(expires(bucket = "1h"))]
    until: Option<OffsetDateTime>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Sessions"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let now = OffsetDateTime::now_utc();
    println!("1. Ann has three sessions, and two of them are over:");
    for (id, device, until) in [
        (1, "phone", Some(now - Duration::days(2))),
        (2, "laptop", Some(now - Duration::hours(1))),
        (3, "desk", Some(now + Duration::hours(1))),
    ] {
        table.insert(&session(id, device, until)).await?;
    }
    let of_ann = || table.query::<Session>().partition("ann");
    let devices = of_ann().select(|s| s.device).collect().await?;
    println!("   her sessions: {}", devices.join(", "));
    let laptop = table.get(Session::key("ann", 2)).await?;
    println!("   the laptop has one: {}", laptop.is_some());
    let stored = of_ann().including_expired().count().await?;
    println!("   {stored} are still stored");

    println!("\n2. A session that is in use is prolonged, and one that is over is not:");
    let prolong = |s: &mut Session| {
        s.until = Some(OffsetDateTime::now_utc() + Duration::hours(8));
        Ok(())
    };
    table.modify(Session::key("ann", 3), prolong).await?;
    println!("   the desk is prolonged");
    let laptop = table.modify(Session::key("ann", 2), prolong).await;
    let is_over = laptop.is_err_and(|error| error.is_not_found());
    println!("   the laptop was over: {is_over}");

    println!("\n3. A new session takes the place of an old one:");
    let phone = session(1, "new phone", None);
    table.insert(&phone).await?;
    let devices = of_ann().select(|s| s.device).collect().await?;
    println!("   her sessions: {}", devices.join(", "));

    println!("\n4. What expired more than five minutes ago is removed:");
    let report = table.clean_up_expired::<Session>().max(10_000).await?;
    println!("   {} removed, more: {}", report.removed, report.has_more);
    let stored = of_ann().including_expired().count().await?;
    println!("   {stored} are stored");
    Ok(())
}

fn session(id: u32, device: &str, until: Option<OffsetDateTime>) -> Session {
    Session {
        user: "ann".to_owned(),
        id,
        device: device.to_owned(),
        until,
    }
}
