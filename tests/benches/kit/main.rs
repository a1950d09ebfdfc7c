//! What a server costs a test: its start, its memory, a snapshot and its restore, and a journal. The start of the usual emulator, if it is
//! installed, is beside it.

#[path = "../shared/machine.rs"]
mod machine;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rows.rs"]
mod rows;

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Instant;

use tablesdk::{DynamicEntity, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

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
    row("memory", "memory of a server", "–", "KiB", Goal::None),
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
    runtime.block_on(async {
        // First: memory that is freed later would be used again.
        for _ in 0..runs {
            measure_servers(&mut results).await?;
        }
        let (server, table) = filled(entities).await?;
        for _ in 0..runs {
            measure_snapshot(&mut results, &server, &table).await?;
            measure_journal(&mut results).await?;
            measure_azurite(&mut results).await?;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    report(&results, runs, matches.get_one("json"))
}

async fn measure_servers(results: &mut Results) -> Outcome<()> {
    let before = resident_kib()?;
    let began = Instant::now();
    let servers: Vec<_> = (0..SERVERS).map(|_| TableServer::in_process()).collect();
    let each = began.elapsed() / SERVERS;
    results.figure("start/in-process", each.as_secs_f64() * 1e6);
    for server in &servers {
        let table = TableServiceClient::in_process(server).table("Test");
        table.create_table().await?;
        table.insert(&DynamicEntity::new("p", "r")).await?;
    }
    let memory = resident_kib()? - before;
    results.figure("memory", memory / f64::from(SERVERS));
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
    for round in 0..20 {
        for (time, (_, table)) in times.iter_mut().zip([&with, &without]) {
            let began = Instant::now();
            for number in 0..200 {
                table.insert(&entity(round * 200 + number)).await?;
            }
            *time += began.elapsed().as_secs_f64() * 1e6 / 4000.0;
        }
    }
    results.ratio("journal", times[0], times[1]);
    Ok(())
}

/// Until the emulator says that it listens.
async fn measure_azurite(results: &mut Results) -> Outcome<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = workspace
        .join(target)
        .join("interop/node/node_modules/.bin/azurite-table");
    if !program.exists() {
        eprintln!("SKIPPED: tests/interop/install.sh installs Azurite");
        return Ok(());
    }
    let began = Instant::now();
    let server = TableServer::start().await?;
    let ours = began.elapsed().as_secs_f64() * 1e6;
    drop(server);
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let began = Instant::now();
    let mut process = Process::new(program)
        .args([
            "--inMemoryPersistence",
            "--skipApiVersionCheck",
            "--disableTelemetry",
        ])
        .args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = process.stdout.take().ok_or("it has no output")?;
    let listens = |line: &Result<String, _>| {
        let line: &Result<String, std::io::Error> = line;
        line.as_ref()
            .is_ok_and(|line| line.contains("successfully started"))
    };
    let found = BufReader::new(output).lines().any(|line| listens(&line));
    let time = began.elapsed();
    process.kill()?;
    process.wait()?;
    if found {
        results.cost("start/azurite", ours, time.as_secs_f64() * 1e6);
    }
    Ok(())
}

/// The memory of this process, as Linux says.
fn resident_kib() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("there is no VmRSS")?.parse()?)
}
