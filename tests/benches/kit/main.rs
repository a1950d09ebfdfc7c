//! The cost of a server in a test: its start, its memory, its requests, a snapshot and its restore,
//! and a journal. The start of the usual emulator, if it is installed, is beside it.
//!
//! All figures but those of memory are of the clock. Client and server are on one thread, as in a
//! test of `#[tokio::test]`.

#[path = "../shared/machine.rs"]
mod machine;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rows.rs"]
mod rows;

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tablesdk::{DynamicEntity, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::runtime::Runtime;

use report::{command, report};
use rows::{Goal, Results, Row, row};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROWS: &[Row] = &[
    row(
        "start/in-process",
        "start in process",
        "–",
        "µs",
        Goal::AtMost(200.0),
    ),
    row("start/socket", "start with a socket", "–", "µs", Goal::None),
    row(
        "start/azurite",
        "start with a socket",
        "Azurite",
        "their time / ours",
        Goal::AtLeast(100.0),
    ),
    row(
        "memory",
        "memory of a server, with a client, a table and an entity",
        "–",
        "KiB",
        Goal::None,
    ),
    row(
        "point-read/http",
        "point read without a socket",
        "HTTP",
        "requests/s",
        Goal::AtLeast(3.0),
    ),
    row(
        "snapshot",
        "snapshot of a million entities",
        "–",
        "µs",
        Goal::AtMost(1000.0),
    ),
    row(
        "restore",
        "restore of a million entities",
        "–",
        "µs",
        Goal::AtMost(1000.0),
    ),
    row(
        "journal",
        "insert with a journal",
        "without",
        "time per request",
        Goal::None,
    ),
];

/// How many servers are started for one figure.
const SERVERS: u32 = 200;
const ENTITIES: u32 = 1_000_000;
/// How often two peers take turns, and the requests of a turn.
const TURNS: u32 = 20;
const REQUESTS: u32 = 200;
/// How long the emulator may take.
const EMULATOR_WAIT_MAX: Duration = Duration::from_secs(60);
/// How many entities are changed between a snapshot and its restore.
const CHANGES: u32 = 100;

fn main() -> Outcome<()> {
    let matches = command(
        "kit",
        "Measures what a server costs a test.",
        (
            "quick",
            "One run with few entities instead of three with a million",
        ),
    )
    .get_matches();
    let is_quick = matches.get_flag("quick");
    let (runs, entities) = if is_quick { (1, 20_000) } else { (3, ENTITIES) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut results = Results::of(ROWS);
    let (server, table) = runtime.block_on(filled(entities))?;
    for _ in 0..runs {
        measure_memory(&mut results, &runtime)?;
        runtime.block_on(async {
            measure_start(&mut results).await?;
            measure_point_read(&mut results).await?;
            measure_snapshot(&mut results, &server, &table).await?;
            measure_journal(&mut results).await
        })?;
        measure_azurite(&mut results, &runtime)?;
    }
    report(&results, runs, matches.get_one("json"))
}

/// The memory of this process would depend on what was freed before. These are the bytes that were
/// allocated and not freed.
fn measure_memory(results: &mut Results, runtime: &Runtime) -> Outcome<()> {
    let mut servers = Vec::with_capacity(SERVERS as usize);
    let mut start = || {
        runtime.block_on(async {
            for _ in 0..SERVERS {
                servers.push(filled(1).await?);
            }
            Ok::<_, Box<dyn Error>>(())
        })
    };
    let mut started = Ok(());
    let counted = allocation_counter::measure(|| started = start());
    started?;
    let bytes = f64::from(i32::try_from(counted.bytes_current)?);
    results.figure("memory", bytes / f64::from(SERVERS) / 1024.0);
    Ok(())
}

async fn measure_start(results: &mut Results) -> Outcome<()> {
    let began = Instant::now();
    let servers: Vec<_> = (0..SERVERS).map(|_| TableServer::in_process()).collect();
    let each = began.elapsed() / SERVERS;
    results.figure("start/in-process", each.as_secs_f64() * 1e6);
    drop(servers);

    let began = Instant::now();
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(TableServer::start().await?);
    }
    let each = began.elapsed() / SERVERS;
    results.figure("start/socket", each.as_secs_f64() * 1e6);
    Ok(())
}

/// A server with that many entities.
async fn filled(entities: u32) -> Outcome<(TableServer, TableClient)> {
    let server = TableServer::in_process();
    let table = TableServiceClient::in_process(&server).table("Test");
    table.create_table().await?;
    for first in (0..entities).step_by(100) {
        let mut batch = table.batch("p");
        for number in first..entities.min(first + 100) {
            batch = batch.insert(&entity(number));
        }
        batch.await?;
    }
    Ok((server, table))
}

fn entity(number: u32) -> DynamicEntity {
    let entity = DynamicEntity::new("p", format!("{number:010}"));
    entity
        .with("Name", format!("Name of {number}"))
        .with("Number", i64::from(number))
}

/// Both in turns, by the same client with another transport.
async fn measure_point_read(results: &mut Results) -> Outcome<()> {
    let (server, in_process) = filled(1).await?;
    let other = TableServer::start().await?;
    other.load(server.save()?).await?;
    let http = TableServiceClient::from_connection_string(&other.connection_string())?;
    let http = http.table("Test");
    let mut times = [Duration::ZERO; 2];
    for _ in 0..TURNS {
        for (time, table) in times.iter_mut().zip([&in_process, &http]) {
            let began = Instant::now();
            for _ in 0..REQUESTS {
                let read = table.get::<DynamicEntity>(("p", "0000000000")).await?;
                read.ok_or("the entity is not there")?;
            }
            *time += began.elapsed();
        }
    }
    let [ours, theirs] = times.map(|time| f64::from(TURNS * REQUESTS) / time.as_secs_f64());
    results.ratio("point-read/http", ours, theirs);
    Ok(())
}

async fn measure_snapshot(
    results: &mut Results,
    server: &TableServer,
    table: &TableClient,
) -> Outcome<()> {
    let began = Instant::now();
    let snapshot = server.snapshot()?;
    results.figure("snapshot", began.elapsed().as_secs_f64() * 1e6);
    for number in 0..CHANGES {
        table.upsert_replace(&entity(number * 97)).await?;
    }
    let began = Instant::now();
    server.restore(&snapshot)?;
    results.figure("restore", began.elapsed().as_secs_f64() * 1e6);
    Ok(())
}

/// Both in turns, on servers of their own.
async fn measure_journal(results: &mut Results) -> Outcome<()> {
    let (with, without) = (filled(0).await?, filled(0).await?);
    let _journal = with.0.journal();
    let mut times = [0.0; 2];
    for turn in 0..TURNS {
        for (time, (_, table)) in times.iter_mut().zip([&with, &without]) {
            let began = Instant::now();
            for number in 0..REQUESTS {
                table.insert(&entity(turn * REQUESTS + number)).await?;
            }
            *time += began.elapsed().as_secs_f64() * 1e6 / f64::from(TURNS * REQUESTS);
        }
    }
    results.ratio("journal", times[0], times[1]);
    Ok(())
}

fn measure_azurite(results: &mut Results, runtime: &Runtime) -> Outcome<()> {
    match start_azurite()? {
        Ok(theirs) => {
            let began = Instant::now();
            let server = runtime.block_on(TableServer::start())?;
            let ours = began.elapsed();
            drop(server);
            results.cost(
                "start/azurite",
                ours.as_secs_f64() * 1e6,
                theirs.as_secs_f64() * 1e6,
            );
        }
        Err(reason) => results.missing("start/azurite", reason),
    }
    Ok(())
}

/// The time until the emulator says that it listens, or why it does not.
fn start_azurite() -> Outcome<Result<Duration, String>> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = workspace
        .join(target)
        .join("interop/node/node_modules/.bin/azurite-table");
    if !program.exists() {
        return Ok(Err("tests/interop/install.sh installs Azurite".to_owned()));
    }
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Process::new(program);
    command.args([
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]);
    command.args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string()]);
    let began = Instant::now();
    let mut process = Killed(command.stdout(Stdio::piped()).spawn()?);
    let output = process.0.stdout.take().ok_or("it has no output")?;
    let (sender, listens) = mpsc::channel();
    // Ends with the process.
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.contains("successfully started") {
                let _ = sender.send(());
            }
        }
    });
    Ok(match listens.recv_timeout(EMULATOR_WAIT_MAX) {
        Ok(()) => Ok(began.elapsed()),
        Err(RecvTimeoutError::Timeout) => Err(format!("it took more than {EMULATOR_WAIT_MAX:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("it ended before it listened".to_owned()),
    })
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
