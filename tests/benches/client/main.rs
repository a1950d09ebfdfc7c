//! The client's benches: processor time per operation beside a floor of reqwest and `serde_json` by
//! hand, and beside other clients.
//!
//! All ask a server of fixed bytes, which runs on a thread of its own. The client and the floor
//! take turns on the main thread, whose processor time is read from Linux's `/proc`.

mod entity;
mod fixed;
mod floor;
#[path = "../shared/machine.rs"]
mod machine;
mod peers;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rows.rs"]
#[allow(
    dead_code,
    reason = "this program says on standard error what is missing"
)]
mod rows;

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use tablesdk::{DynamicEntity, TableClient, TableServiceClient};

use entity::Employee;
use fixed::{ACCOUNT, KEY, PAGE, Responses};
use floor::Floor;
use peers::Peer;
use report::{command, report};
use rows::{Goal, Results, Row, row};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let matches = command(
        "client",
        "Measures the client beside reqwest and serde_json by hand, and beside other clients.",
        ("quick", "One short run instead of three"),
    )
    .get_matches();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut results = Results::of(ROWS);
    let runs = if matches.get_flag("quick") { 1 } else { 3 };
    runtime.block_on(async {
        let address = fixed::start(Responses::record().await?)?;
        let origin = format!("http://{address}");
        let text = format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={origin}/{ACCOUNT}"
        );
        let bench = Bench {
            table: TableServiceClient::from_connection_string(&text)?.table("people"),
            floor: Floor::new(&origin)?,
            employees: (0..100).map(Employee::new).collect(),
            time: Duration::from_millis(if runs == 1 { 200 } else { 600 }),
        };
        bench.check().await?;
        for _ in 0..runs {
            let ours = bench.measure(&mut results).await?;
            for peer in Peer::installed() {
                // The server of fixed bytes has a thread of its own, so that this one may wait.
                let measured = peer.measure(&text).unwrap_or_else(|error| {
                    eprintln!("SKIPPED: {error}");
                    Vec::new()
                });
                for (operation, theirs) in measured {
                    let own = ours.iter().find(|(name, _)| *name == operation);
                    let row = ROWS.iter().find(|row| row.name == format!("{operation}/{}", peer.name));
                    if let (Some((_, own)), Some(row)) = (own, row) {
                        results.cost(row.name, *own, theirs);
                    }
                }
            }
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    report(&results, runs, matches.get_one("json"))
}

struct Bench {
    table: TableClient,
    floor: Floor,
    employees: Vec<Employee>,
    /// For how long each operation is measured in a run.
    time: Duration,
}

impl Bench {
    /// Both read the same.
    async fn check(&self) -> Outcome<()> {
        let (ours, theirs) = (self.get().await?, self.floor.point_read(ROW).await?);
        let page = self.page().await?;
        let pages = (page.len(), self.floor.page().await?.len());
        let batches = (
            fixed::insert_all(&self.table, &self.employees).await?,
            self.floor.batch(&self.employees).await?.len(),
        );
        let count = PAGE as usize;
        if ours != theirs || pages != (count, count) || batches != (100, 100) {
            return Err(format!("{ours:?} {theirs:?} {pages:?} {batches:?}").into());
        }
        Ok(())
    }

    async fn get(&self) -> Outcome<Employee> {
        let found = self.table.get::<Employee>(("sales", ROW)).await?;
        Ok(found.ok_or("there is no entity")?.into_inner())
    }

    async fn page(&self) -> Outcome<Vec<Employee>> {
        let query = self.table.query::<Employee>().partition("sales");
        let page = query.collect().await?;
        Ok(page.into_iter().map(tablesdk::Stored::into_inner).collect())
    }

    /// Adds a run. Returns what our client needs for each operation.
    async fn measure(&self, results: &mut Results) -> Outcome<Vec<(&'static str, f64)>> {
        let Self {
            table,
            floor,
            employees,
            ..
        } = self;
        let employee = employees.first().ok_or("no employee")?;
        let get = async || Ok(table.get::<Employee>(("sales", ROW)).await.map(drop)?);
        let read = async || floor.point_read(ROW).await.map(drop);
        let own_insert = async || Ok(table.insert(employee).await.map(drop)?);
        let insert = async || floor.insert(employee).await.map(drop);
        let own_page = async || {
            let query = table.query::<Employee>().partition("sales");
            Ok(query.collect().await.map(drop)?)
        };
        let dynamic_page = async || {
            let query = table.query::<DynamicEntity>().partition("sales");
            Ok(query.collect().await.map(drop)?)
        };
        let page = async || floor.page().await.map(drop);
        let own_batch = async || Ok(fixed::insert_all(table, employees).await.map(drop)?);
        let batch = async || floor.batch(employees).await.map(drop);

        let mut all = Vec::new();
        let mut add = |operation, name, (ours, theirs): (f64, f64)| {
            results.ratio(name, ours, theirs);
            all.push((operation, ours));
        };
        add(
            "point-read",
            "point-read/floor",
            self.turns(IN_FLIGHT, &get, &read).await?,
        );
        add(
            "insert",
            "insert/floor",
            self.turns(IN_FLIGHT, &own_insert, &insert).await?,
        );
        add("page", "page/floor", self.turns(1, &own_page, &page).await?);
        add(
            "",
            "page-dynamic/floor",
            self.turns(1, &dynamic_page, &page).await?,
        );
        add(
            "batch",
            "batch/floor",
            self.turns(1, &own_batch, &batch).await?,
        );
        for (operation, ours) in &all {
            if *operation == "page" {
                results.figure("page", *ours);
            }
        }
        Ok(all)
    }

    /// The microseconds of processor time that two kinds of operations need each, measured in
    /// turns.
    async fn turns(
        &self,
        in_flight: usize,
        ours: &impl AsyncFn() -> Outcome<()>,
        theirs: &impl AsyncFn() -> Outcome<()>,
    ) -> Outcome<(f64, f64)> {
        let mut costs = ((0.0, 0), (0.0, 0));
        for _ in 0..TURNS {
            let time = self.time / TURNS;
            repeat(time, in_flight, ours, &mut costs.0).await?;
            repeat(time, in_flight, theirs, &mut costs.1).await?;
        }
        let each = |(micros, count): (f64, u32)| micros / f64::from(count);
        Ok((each(costs.0), each(costs.1)))
    }
}

/// Repeats an operation, so many at a time, and adds the microseconds of this thread and the number
/// of operations.
async fn repeat(
    time: Duration,
    in_flight: usize,
    operation: &impl AsyncFn() -> Outcome<()>,
    (micros, count): &mut (f64, u32),
) -> Outcome<()> {
    // Connections are opened before it counts.
    try_join_all((0..in_flight).map(|_| operation())).await?;
    let (started, before) = (Instant::now(), processor_time()?);
    let repeated = (0..in_flight).map(async |_| {
        let mut count = 0;
        while started.elapsed() < time {
            operation().await?;
            count += 1;
        }
        Ok::<_, Box<dyn Error>>(count)
    });
    *count += try_join_all(repeated).await?.into_iter().sum::<u32>();
    *micros += processor_time()?.saturating_sub(before).as_secs_f64() * 1e6;
    Ok(())
}

/// For how long this thread ran.
fn processor_time() -> Outcome<Duration> {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = statistics.split(' ').next().unwrap_or_default();
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// How many point operations are in flight.
const IN_FLIGHT: usize = 16;
/// In how many turns each figure of a run is taken.
const TURNS: u32 = 4;
/// The key of the entity that is read.
const ROW: &str = "0000000007";

const FLOOR: &str = "reqwest + serde_json by hand";
const CPU: &str = "processor time per operation";
const TIMES: &str = "their processor time / ours";
const PYTHON: &str = "azure-data-tables for Python";
const JAVASCRIPT: &str = "@azure/data-tables for JavaScript";
const LEGACY: &str = "azure_data_tables 0.21";

const ROWS: &[Row] = &[
    row(
        "point-read/floor",
        "client, point read",
        FLOOR,
        CPU,
        Goal::AtMost(1.1),
    ),
    row(
        "insert/floor",
        "client, insert",
        FLOOR,
        CPU,
        Goal::AtMost(1.1),
    ),
    row(
        "page/floor",
        "client, page of 1,000 into structs",
        FLOOR,
        CPU,
        Goal::AtMost(1.0),
    ),
    row(
        "page-dynamic/floor",
        "client, page of 1,000 into `DynamicEntity`",
        FLOOR,
        CPU,
        Goal::AtMost(1.3),
    ),
    row(
        "batch/floor",
        "client, batch of 100",
        FLOOR,
        CPU,
        Goal::AtMost(1.1),
    ),
    row(
        "page",
        "client, page of 1,000",
        "–",
        "µs of processor time",
        Goal::None,
    ),
    row(
        "point-read/python",
        "client, point read",
        PYTHON,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "insert/python",
        "client, insert",
        PYTHON,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "page/python",
        "client, page of 1,000",
        PYTHON,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "batch/python",
        "client, batch of 100",
        PYTHON,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "point-read/javascript",
        "client, point read",
        JAVASCRIPT,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "insert/javascript",
        "client, insert",
        JAVASCRIPT,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "page/javascript",
        "client, page of 1,000",
        JAVASCRIPT,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "batch/javascript",
        "client, batch of 100",
        JAVASCRIPT,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "point-read/legacy",
        "client, point read",
        LEGACY,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "insert/legacy",
        "client, insert",
        LEGACY,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "page/legacy",
        "client, page of 1,000",
        LEGACY,
        TIMES,
        Goal::AtLeast(1.0),
    ),
    row(
        "batch/legacy",
        "client, batch of 100",
        LEGACY,
        TIMES,
        Goal::AtLeast(1.0),
    ),
];
