//! The table of the server's targets: every path beside its peer, in one run, as a ratio.
//!
//! A group of rows shares its servers. Each run starts them again, fills them, and measures every
//! row of the group in turns with its peers. The figure of a row is the median of the runs.

mod data;
mod filter;
mod growth;
mod in_process;
mod operations;
mod tails;
mod targets;

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::child::{ChildServer, Subject};
use crate::cores::{self, Cores};
use crate::cpu::Cpu;
use crate::machine;
use crate::measure::{self, Asked, Measurement};
use crate::rows::Results;
use crate::servers::{self, Account, BareServer};
use crate::workload::{Operation, Shape, Workload};

/// The groups to measure, and for how long.
pub(crate) struct Plan {
    pub(crate) program: Option<PathBuf>,
    pub(crate) groups: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) is_quick: bool,
}

/// The groups of rows, by name.
pub(crate) const GROUPS: [&str; 6] = [
    "operations",
    "filter",
    "growth",
    "data",
    "in-process",
    "tails",
];

/// The values that the groups share.
struct Context {
    program: Subject,
    bare: BareServer,
    /// For how long each server is asked for each row.
    time: Duration,
    entities: usize,
    many: usize,
}

/// Measures, and prints the table.
pub(crate) async fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let program = match &plan.program {
        Some(program) => program.clone(),
        None => built()?,
    };
    let (date, machine) = (machine::date(), machine::machine());
    cores::SERVERS.pin();
    let context = Context {
        program: Subject::Program(program),
        bare: BareServer::start(1)?,
        time: Duration::from_millis(if plan.is_quick { 250 } else { 600 }),
        entities: if plan.is_quick { 20_000 } else { 100_000 },
        many: if plan.is_quick { 100_000 } else { 1_000_000 },
    };
    let runs = if plan.is_quick { 1 } else { 3 };
    let mut results = Results::of(targets::ROWS);
    for run in 1..=runs {
        for group in &plan.groups {
            eprintln!("run {run} of {runs}: {group}");
            cores::LOAD.pin();
            match group.as_str() {
                "operations" => operations::measure(&context, &mut results).await?,
                "filter" => filter::measure(&context, &mut results).await?,
                "growth" => growth::measure(&context, &mut results).await?,
                "data" => data::measure(&context, &mut results).await?,
                "in-process" => in_process::measure(&context, &mut results).await?,
                _ => tails::measure(&context, &mut results).await?,
            }
        }
    }
    println!(
        "{date}, {machine}; tables of {} entities, large ones of {}; runs: {runs}\n",
        context.entities, context.many
    );
    println!("{}", results.table());
    if let Some(file) = &plan.json {
        let text = json!({
            "date": date,
            "machine": machine,
            "entities": context.entities,
            "entities_of_large_tables": context.many,
            "allocator_of_peers": if cfg!(feature = "system-allocator") { "system" } else { "mimalloc" },
            "runs": runs,
            "rows": results.json(),
        });
        fs::write(file, format!("{text:#}\n"))?;
    }
    Ok(())
}

/// A server in a process of its own, with a table.
struct Served {
    child: ChildServer,
    workload: Workload,
}

impl Served {
    async fn start(subject: &Subject, shape: Shape, place: Place) -> Result<Self, Box<dyn Error>> {
        let (in_directory, cores) = match place {
            Place::Memory => (false, cores::SERVERS),
            Place::MemoryAllCores => (false, Cores::All),
            Place::Directory => (true, cores::SERVERS),
            Place::DirectoryAllCores => (true, Cores::All),
        };
        let child = ChildServer::start(subject, in_directory, cores)?;
        let account = Account::from_connection_string(child.connection_string())?;
        let workload = Workload::create(account, shape).await?;
        Ok(Self { child, workload })
    }

    fn peer(&self) -> Peer<'_> {
        Peer {
            workload: &self.workload,
            address: self.workload.address(),
            cpu: Cpu::Process(self.child.id()),
            is_repeated: false,
        }
    }
}

/// Where a server keeps its tables, and where it runs: on one core where its processor time is
/// measured.
#[derive(Clone, Copy)]
enum Place {
    Memory,
    MemoryAllCores,
    Directory,
    DirectoryAllCores,
}

/// One of those that are asked in turns.
#[derive(Clone, Copy)]
struct Peer<'a> {
    /// The table whose requests are sent.
    workload: &'a Workload,
    address: SocketAddr,
    cpu: Cpu,
    /// True if a request that can be sent once is sent again.
    is_repeated: bool,
}

impl Context {
    /// The bare server with the response that a server gives to an operation.
    async fn bare<'a>(
        &self,
        workload: &'a Workload,
        operation: Operation,
    ) -> Result<Peer<'a>, Box<dyn Error>> {
        self.bare.answer_with(workload.sample(operation).await?);
        Ok(Peer {
            workload,
            address: self.bare.address(),
            cpu: Cpu::Threads(servers::BARE),
            is_repeated: true,
        })
    }

    /// Asks servers for an operation in turns. Returns a measurement for each, with the number of
    /// entities of a request.
    async fn turns<const N: usize>(
        &self,
        peers: [Peer<'_>; N],
        operation: Operation,
        connections: usize,
    ) -> Result<[Turned; N], Box<dyn Error>> {
        let mut turned = [const { Turned::new() }; N];
        let mut counts = [FIRST_COUNT; N];
        for _ in 0..TURNS {
            for ((peer, turned), count) in peers.iter().zip(&mut turned).zip(&mut counts) {
                let time = self.time / TURNS;
                let mut requests = peer.workload.requests(operation, *count).await?;
                if peer.is_repeated {
                    requests = requests.repeated();
                }
                turned.entities = requests.entities();
                let asked = Asked {
                    address: peer.address,
                    others: Vec::new(),
                    cpu: Some(peer.cpu),
                    requests,
                    status: operation.status(),
                };
                let turn = measure::run(&asked, connections, time).await?;
                *count = (*count).max(turn.count_within(2 * time)).min(MAX_COUNT);
                turned.measurement += turn;
            }
        }
        Ok(turned)
    }
}

/// The result of all turns of one server.
struct Turned {
    measurement: Measurement,
    /// How many entities each request reads, examines or writes.
    entities: f64,
}

impl Turned {
    const fn new() -> Self {
        Self {
            measurement: Measurement::new(),
            entities: 0.0,
        }
    }

    /// Microseconds of processor time per request.
    fn cpu(&self) -> f64 {
        self.measurement.cpu().as_secs_f64() * 1e6
    }

    /// Entities per second of processor time.
    fn entities_per_second(&self) -> f64 {
        self.entities / self.measurement.cpu().as_secs_f64()
    }

    /// Microseconds within which that share of the responses came.
    fn quantile(&self, share: f64) -> f64 {
        self.measurement.quantile(share).as_secs_f64() * 1e6
    }
}

/// The program of the server, built now.
pub(crate) fn built() -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--locked",
        "--release",
        "-p",
        "tablesdk-server",
        "--bins",
    ]);
    if !command.current_dir(&root).status()?.success() {
        return Err("the program of the server cannot be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release/tablesdk-server"))
}

/// In how many turns each figure of a run is taken.
const TURNS: u32 = 3;
/// How many requests of a kind that can be sent once are made at first, and at most.
const FIRST_COUNT: usize = 3000;
const MAX_COUNT: usize = 50_000;
const CONNECTIONS: usize = 64;
