//! Servers over one PostgreSQL, beside the SQL statements that they send, alone: what a request
//! costs beyond its statements.
//!
//! Client, servers and PostgreSQL share the cores of this machine, so that a ratio of requests per
//! second is about the processor time of all three. The statements alone, one server and three
//! servers take turns, with the same number of clients and of connections to the database.

mod details;
mod processes;
mod sql;
mod targets;

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use harness::postgres::Postgres;
use serde_json::json;

use self::details::{Details, Subject};
use self::processes::Processes;
use self::sql::Sql;
use self::targets::{ROWS, TARGETS, Target};
use crate::child::{self, ChildServer};
use crate::cores::Cores;
use crate::machine;
use crate::measure::{self, Asked, Measurement};
use crate::requests::Requests;
use crate::rows::Results;
use crate::servers::Account;
use crate::table::{self, Plan};
use crate::workload::{Shape, Workload, address_of};

/// Measures, and prints the tables.
pub(crate) async fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let program = match &plan.program {
        Some(program) => program.clone(),
        None => table::built()?,
    };
    // With the settings of an installation: a commit waits for the disk.
    let cluster = Postgres::start().ok_or("there is no PostgreSQL to measure with")?;
    let (date, machine) = (machine::date(), machine::machine());
    let server = |connections| {
        let subject = child::Subject::Store {
            program: program.clone(),
            url: cluster.url("postgres"),
            connections,
        };
        ChildServer::start(&subject, false, Cores::All)
    };
    let one = [server(CONNECTIONS)?];
    let part = CONNECTIONS / 3;
    let three = [server(part)?, server(part)?, server(part)?];
    let shape = Shape {
        text_bytes: TEXT_BYTES,
        ..Shape::of(if plan.is_quick { 5_000 } else { 20_000 })
    };
    let account = Account::from_connection_string(one[0].connection_string())?;
    let workload = Workload::create(account, shape).await?;
    cluster.sql("postgres", "VACUUM ANALYZE tablesdk_records");
    let bench = Bench {
        sql: Sql::connect(&cluster.url("postgres"), CONNECTIONS).await?,
        one: addresses(&one)?,
        three: addresses(&three)?,
        processes: Processes::of(&cluster, one.iter().chain(&three)),
    };
    let (rounds, time) = if plan.is_quick {
        (3, Duration::from_millis(250))
    } else {
        (9, Duration::from_millis(700))
    };
    let mut results = Results::of(ROWS);
    let mut details = Details::default();
    for target in &TARGETS {
        eprintln!("{}", target.operation.name());
        let requests = workload.requests(target.operation, 1).await?;
        for round in 0..=rounds {
            // The first round opens connections and prepares statements.
            let (results, details) = match round {
                0 => (&mut Results::of(ROWS), &mut Details::default()),
                _ => (&mut results, &mut details),
            };
            let turn = Turn {
                bench: &bench,
                target,
                requests: &requests,
                time,
            };
            turn.many(results, details).await?;
            turn.single(results, details).await?;
        }
    }
    println!(
        "{date}, {machine}; PostgreSQL {}; {} entities of {} bytes; {CONNECTIONS} connections; rounds: {rounds}\n",
        cluster.programs().version(),
        shape.entities,
        bench.sql.record_bytes(),
    );
    println!("{}\n{}", results.table(), details.table());
    if let Some(file) = &plan.json {
        let text = json!({
            "date": date,
            "machine": machine,
            "entities": shape.entities,
            "connections": CONNECTIONS,
            "rounds": rounds,
            "rows": results.json(),
            "details": details.json(),
        });
        fs::write(file, format!("{text:#}\n"))?;
    }
    Ok(())
}

fn addresses(servers: &[ChildServer]) -> Result<Vec<SocketAddr>, Box<dyn Error>> {
    let accounts = servers.iter().map(|server| {
        let account = Account::from_connection_string(server.connection_string())?;
        address_of(&account)
    });
    accounts.collect()
}

/// The subjects of the measurement, all over one database.
struct Bench {
    sql: Sql,
    one: Vec<SocketAddr>,
    three: Vec<SocketAddr>,
    processes: Processes,
}

/// One round of an operation.
struct Turn<'a> {
    bench: &'a Bench,
    target: &'a Target,
    requests: &'a Requests,
    time: Duration,
}

impl Turn<'_> {
    /// With many connections: rates and processor times.
    async fn many(
        &self,
        results: &mut Results,
        details: &mut Details,
    ) -> Result<(), Box<dyn Error>> {
        let mut rates = Vec::new();
        for subject in Subject::ALL {
            let before = self.bench.processes.times();
            let measured = self.ask(subject, CONNECTIONS).await?;
            let times = self.bench.processes.times() - before;
            details.add_many(self.target.operation, subject, &measured, times);
            rates.push(measured.rate());
        }
        if let [alone, one, three] = rates[..] {
            results.ratio(self.target.one, one, alone);
            results.ratio(self.target.three, three, alone);
        }
        Ok(())
    }

    /// With one connection: latencies.
    async fn single(
        &self,
        results: &mut Results,
        details: &mut Details,
    ) -> Result<(), Box<dyn Error>> {
        let alone = self.ask(Subject::Sql, 1).await?;
        let one = self.ask(Subject::One, 1).await?;
        let p50 = |measured: &Measurement| measured.quantile(0.5).as_secs_f64() * 1e6;
        results.ratio(self.target.latency, p50(&one), p50(&alone));
        for (subject, measured) in [(Subject::Sql, &alone), (Subject::One, &one)] {
            details.add_single(self.target.operation, subject, measured);
        }
        Ok(())
    }

    async fn ask(
        &self,
        subject: Subject,
        connections: usize,
    ) -> Result<Measurement, Box<dyn Error>> {
        let Self { bench, target, .. } = self;
        let addresses = match subject {
            Subject::Sql => {
                let run = bench.sql.run(target.operation, connections, self.time);
                return run.await;
            }
            Subject::One => &bench.one,
            Subject::Three => &bench.three,
        };
        let (first, others) = addresses.split_first().ok_or("there is no server")?;
        let asked = Asked {
            address: *first,
            others: others.to_vec(),
            cpu: None,
            requests: self.requests.clone(),
            status: target.operation.status(),
        };
        measure::run(&asked, connections, self.time).await
    }
}

/// The connections of the clients, and of the servers to the database. Three servers have a third
/// each.
const CONNECTIONS: usize = 24;
/// So that a stored entity has about 1 KB.
const TEXT_BYTES: usize = 500;
