//! Writes generated entities in bulk and reads them by a query, with the server in another process.
//! Prints the speed and the memory that it takes.
//!
//! Usage: `cargo run --release --example bulk_load [COUNT [CONNECTION_STRING]]`. The default is
//! 20,000 entities and the bundled server. Pass a connection string as an argument or in
//! `AZURE_STORAGE_CONNECTION_STRING` to use another service.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures::{TryStreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use tablesdk::{TableClient, TableEntity, TableServiceClient};
use tablesdk_examples::unique_name;
use tablesdk_server::TableServer;

/// A measurement of a sensor.
#[derive(Debug, Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Measurement {
    #[table(partition_key)]
    sensor: String,
    #[table(row_key)]
    sequence: String,
    celsius: f64,
    humidity: i32,
    battery: Option<i64>,
    note: String,
}

impl Measurement {
    /// Measurement number `index` of all: sensors take turns.
    fn generate(index: u64) -> Self {
        let sensor = index % SENSORS;
        Self {
            sensor: sensor_name(sensor),
            sequence: format!("{:012}", index / SENSORS),
            celsius: f64::from(u32::try_from(index % 400).unwrap_or_default()) / 10.0 - 10.0,
            humidity: i32::try_from(index % 101).unwrap_or_default(),
            battery: (index.is_multiple_of(7)).then_some(i64::try_from(index).unwrap_or_default()),
            note: format!(
                "measured by sensor {sensor} as its number {}",
                index / SENSORS
            ),
        }
    }
}

fn sensor_name(sensor: u64) -> String {
    format!("sensor-{sensor:03}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some(SERVE) {
        return serve().await;
    }
    let count: u64 = match first {
        Some(count) => count
            .parse()
            .map_err(|_| format!("{count:?} is no count of entities"))?,
        None => 20_000,
    };
    let (service, server) = match arguments.next() {
        Some(text) => (TableServiceClient::from_connection_string(&text)?, None),
        None if std::env::var_os("AZURE_STORAGE_CONNECTION_STRING").is_some() => {
            (TableServiceClient::from_env()?, None)
        }
        None => {
            let (server, text) = Server::start()?;
            let service = TableServiceClient::from_connection_string(&text)?;
            (service, Some(server))
        }
    };
    let table = service.table(unique_name("Measurements"));
    table.create_table().await?;
    let result = run(&table, count).await;
    table.delete_table().await?;
    drop(server);
    result
}

async fn run(table: &TableClient, count: u64) -> Result<(), Box<dyn Error>> {
    let start = resident("VmRSS");
    println!("Resident memory at the start: {}", shown(start));

    let bar = bar(count, "written");
    let started = Instant::now();
    let report = table
        .bulk()
        .insert(stream::iter((0..count).map(Measurement::generate)))
        .concurrency(16)
        .progress(|progress| bar.set_position(progress.written))
        .await?;
    bar.finish_and_clear();
    for failure in report.failures() {
        eprintln!("{failure}");
    }
    let progress = report.progress();
    println!(
        "Wrote {} entities in {} requests, {}. Resident memory: {}",
        progress.written,
        progress.requests,
        rate(progress.written, started),
        shown(resident("VmRSS"))
    );

    let bar = self::bar(count, "read");
    let started = Instant::now();
    let query = table
        .query::<Measurement>()
        .partitions((0..SENSORS).map(sensor_name))
        .parallel(4);
    let mut rows = query.stream();
    let (mut read, mut warmest) = (0, f64::MIN);
    while let Some(row) = rows.try_next().await? {
        read += 1;
        warmest = warmest.max(row.celsius);
        if read % 1_000 == 0 {
            bar.set_position(read);
        }
    }
    bar.finish_and_clear();
    println!(
        "Read {read} entities, {}; the warmest measurement was {warmest:.1} °C. Resident memory: {}",
        rate(read, started),
        shown(resident("VmRSS"))
    );
    println!("Resident memory at its peak: {}", shown(resident("VmHWM")));
    if !report.is_success() || read != count {
        return Err(format!("{read} of {count} entities came back").into());
    }
    Ok(())
}

fn bar(count: u64, what: &'static str) -> ProgressBar {
    let style = "{bar:40} {pos}/{len} {msg}, {per_sec}, {eta} left";
    let bar = ProgressBar::new(count).with_message(what);
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn rate(count: u64, started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    format!("{seconds:.1} s, {:.0} a second", count / seconds)
}

/// A figure of this process in KiB, where the operating system reports it.
fn resident(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn shown(kib: Option<u64>) -> String {
    match kib {
        Some(kib) => format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024),
        None => "not available on this system".to_owned(),
    }
}

/// The bundled server in a separate process, which ends with this one.
struct Server(Child);

impl Server {
    fn start() -> Result<(Self, String), Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let server = Self(child);
        let mut text = String::new();
        BufReader::new(stdout).read_line(&mut text)?;
        Ok((server, text.trim().to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server stops at the end of its standard input.
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            eprintln!("the server did not stop: {error}");
        }
    }
}

/// The other process: serves until its standard input ends.
async fn serve() -> Result<(), Box<dyn Error>> {
    let server = TableServer::start().await?;
    println!("{}", server.connection_string());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(server.shutdown().await?)
}

const SENSORS: u64 = 50;
const SERVE: &str = "serve";
