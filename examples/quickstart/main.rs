//! The main features, from an empty table to a rejected write: `cargo run -p quickstart`.
//!
//! Without a connection string, it starts the bundled server in this process and sends requests
//! over HTTP. With one, as the argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses Azure
//! Table storage, Cosmos DB or an emulator: it creates a table with a new name, and deletes it at
//! the end. An https endpoint needs the feature `https`.

use std::error::Error;
use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use tablesdk::{TableClient, TableEntity, TableServiceClient};
use tablesdk_server::TableServer;
use time::OffsetDateTime;
use time::macros::{datetime, format_description};

/// An event of the US Geological Survey's earthquake feed. A plain struct: the derive maps it to an
/// entity.
#[derive(Debug, Clone, PartialEq, Deserialize, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Earthquake {
    /// The seismic network that reported it.
    #[table(partition_key)]
    network: String,
    #[table(row_key)]
    id: String,
    #[serde(with = "time::serde::rfc3339")]
    time: OffsetDateTime,
    latitude: f64,
    longitude: f64,
    depth_km: f64,
    magnitude: f64,
    place: String,
    /// The number of people who reported that they felt it. Most entities have no value.
    felt_reports: Option<i32>,
    stations: Option<i32>,
    significance: i64,
    tsunami: bool,
    reviewed: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    if cfg!(not(feature = "https")) && service.endpoint().is_https() {
        return Err(
            "an https endpoint needs TLS: `cargo run -p quickstart --features https`".into(),
        );
    }
    let now = OffsetDateTime::now_utc().unix_timestamp_nanos();
    let table = service.table(format!("Earthquakes{now}"));
    table.create_table().await?;
    println!("Created table {} at {}.", table.name(), service.endpoint());

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome?;
    println!("\nDeleted the table. That was all.");
    Ok(())
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    load(table).await?;

    println!("\n1. A point read, by typed key:");
    let key = Earthquake::key("us", "us1000chhc");
    let quake = table
        .get(key)
        .await?
        .ok_or("the earthquake is not in the table")?;
    print(&quake);
    println!(
        "   {} people felt it; version {}",
        quake.felt_reports.unwrap_or(0),
        quake.etag()
    );

    println!(
        "\n2. A typed range query: Northern California, 3 to 5 February 2018, from magnitude 2.5 up to 5, felt by someone:"
    );
    let felt = table
        .query::<Earthquake>()
        .partition("nc")
        .filter(|q| {
            q.time.ge(datetime!(2018-02-03 0:00 UTC))
                & q.time.lt(datetime!(2018-02-06 0:00 UTC))
                & q.magnitude.ge(2.5)
                & q.magnitude.lt(5.0)
                & q.felt_reports.ge(1)
        })
        .collect()
        .await?;
    for quake in &felt {
        print(quake);
    }

    println!("\n3. A filtered query as a stream, only two columns of it, the first eight:");
    let mut places = table
        .query::<Earthquake>()
        .filter(|q| q.reviewed.eq(true) & (q.tsunami.eq(true) | q.magnitude.ge(5.5)))
        .select(|q| (q.magnitude, q.place))
        .take(8)
        .stream();
    while let Some((magnitude, place)) = places.try_next().await? {
        println!("   M {magnitude:.1}  {place}");
    }

    println!("\n4. A merge of the version that was read, and the refusal of a stale one:");
    let mut mine = quake.clone();
    let mut theirs = quake;
    mine.felt_reports = Some(mine.felt_reports.unwrap_or(0) + 1);
    table.merge(&mut mine).await?;
    println!(
        "   merged: {} people felt it; version {}",
        mine.felt_reports.unwrap_or(0),
        mine.etag()
    );

    theirs.felt_reports = Some(0);
    match table.merge(&mut theirs).await {
        Err(error) if error.is_precondition_failed() => println!("   refused: {error}"),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("a stale version was written".into()),
    }
    Ok(())
}

/// Connects to the service of the connection string, or starts the bundled server, which stops when
/// it is dropped.
async fn connect() -> Result<(TableServiceClient, Option<TableServer>), Box<dyn Error>> {
    if let Some(text) = std::env::args().nth(1) {
        return Ok((TableServiceClient::from_connection_string(&text)?, None));
    }
    if std::env::var_os("AZURE_STORAGE_CONNECTION_STRING").is_some() {
        return Ok((TableServiceClient::from_env()?, None));
    }
    let server = TableServer::start().await?;
    let service = TableServiceClient::from_connection_string(&server.connection_string())?;
    Ok((service, Some(server)))
}

/// Inserts the data set, with several requests in flight.
async fn load(table: &TableClient) -> Result<(), Box<dyn Error>> {
    let quakes: Vec<Earthquake> = csv::Reader::from_reader(DATA)
        .deserialize()
        .collect::<Result<_, _>>()?;
    let started = Instant::now();
    stream::iter(&quakes)
        .map(|quake| table.insert(quake).into_future())
        .buffer_unordered(32)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    println!(
        "Inserted {} earthquakes in {:.1?}.",
        quakes.len(),
        started.elapsed()
    );
    Ok(())
}

fn print(quake: &Earthquake) {
    let format = format_description!("[day padding:none] [month repr:short], [hour]:[minute] UTC");
    let time = quake.time.format(format).unwrap_or_default();
    let Earthquake {
        magnitude,
        depth_km,
        place,
        ..
    } = quake;
    println!("   M {magnitude:.1}  {time}  {depth_km:>5.1} km deep  {place}");
}

/// See `examples/data/README.md`.
const DATA: &[u8] = include_bytes!("../data/earthquakes.csv");
