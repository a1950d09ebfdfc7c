//! The load program: how fast a table server responds, compared with a bare HTTP server that sends
//! the same bytes.
//!
//! Requests are built and signed before they are sent, over raw keep-alive sockets, so that the
//! server is measured and no client. Each measurement is taken in short turns with the bare server:
//! both see the same machine, and their ratio is what is worth reading. It knows only the protocol,
//! so any server that speaks it can be measured. Run it with `--help`.

mod child;
mod connection;
mod cores;
mod cpu;
mod entity;
#[path = "../shared/machine.rs"]
mod machine;
mod measure;
mod options;
mod plain;
mod report;
mod requests;
#[path = "../shared/rows.rs"]
mod rows;
mod servers;
mod shared_store;
mod table;
mod workload;

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use child::{ChildServer, Subject};
use cores::Cores;
use cpu::Cpu;
use measure::{Asked, Measurement};
use options::Settings;
use report::Row;
use servers::{Account, BareServer, OwnServer};
use workload::Workload;

// That of the server's program, so that a ratio to the servers of this program says nothing of the
// allocator.
#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let matches = options::command().get_matches();
    if let Some(("plain", matches)) = matches.subcommand() {
        let directory: Option<&PathBuf> = matches.get_one("data");
        return plain::run(directory.map(PathBuf::as_path));
    }
    // The load comes from this thread alone, so that it costs the same on every machine.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match matches.subcommand() {
        Some(("shared-store", matches)) => {
            runtime.block_on(shared_store::run(&options::plan(matches)))
        }
        Some((_, matches)) => runtime.block_on(table::run(&options::plan(matches))),
        None => runtime.block_on(run(&Settings::from(&matches))),
    }
}

async fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let bare = BareServer::start(settings.threads)?;
    for entities in &settings.entities {
        // A fresh one each time: what one size left behind is not measured with the next.
        let mut child = match &settings.program {
            Some(program) => Some(ChildServer::start(program, settings.data, Cores::All)?),
            None => None,
        };
        let own = match (&settings.endpoint, &child) {
            (None, None) => Some(OwnServer::start(settings.threads)?),
            _ => None,
        };
        let text = own.as_ref().map(OwnServer::connection_string);
        let text = text.or(child.as_ref().map(ChildServer::connection_string));
        let text = text.or(settings.endpoint.as_deref()).unwrap_or_default();
        let account = Account::from_connection_string(text)?;
        let other = match &settings.against {
            Some(program) => Some(OtherProgram::start(program, settings, *entities).await?),
            None => None,
        };
        let mut progress = Progress::new(settings, *entities);
        progress.show("filling the table");
        let began = Instant::now();
        let mut workload = Workload::create(account, settings.shape(*entities)).await?;
        let filled = began.elapsed();
        if let Some(child) = &mut child {
            progress.clear();
            println!("filled: {}", child.footprint());
            child.restart()?;
            println!("started again: {}", child.footprint());
            workload.moved_to(Account::from_connection_string(child.connection_string())?)?;
        }
        let cpu = match (&child, &own) {
            (Some(child), _) => Some(Cpu::Process(child.id())),
            (None, Some(_)) => Some(Cpu::Threads(servers::SERVER)),
            (None, None) => settings.pid.map(Cpu::Process),
        };
        let floor = match &other {
            Some(other) => Floor::Program(other),
            None => Floor::Bare(&bare),
        };
        let rows = measure_all(settings, &workload, cpu, &floor, &mut progress).await;
        progress.clear();
        // Whatever went wrong, the table goes.
        workload.delete().await?;
        println!("{}", report::filled(*entities, filled));
        println!("{}", report::table(*entities, &rows?));
        if let Some(child) = &child {
            println!("in the end: {}", child.footprint());
        }
        if let Some(other) = &other {
            println!("the other program in the end: {}", other.child.footprint());
        }
        if let Some(bytes) = settings.pid.and_then(child::resident_bytes) {
            println!("in the end: {} MiB of memory", bytes >> 20);
        }
    }
    Ok(())
}

async fn measure_all(
    settings: &Settings,
    workload: &Workload,
    cpu: Option<Cpu>,
    floor_server: &Floor<'_>,
    progress: &mut Progress,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for operation in &settings.operations {
        let sample = workload.sample(*operation).await?;
        if let Floor::Bare(bare) = floor_server {
            bare.answer_with(sample);
        }
        // How many requests of a kind that is good for once are made ready: more than were needed
        // so far.
        let mut count = FIRST_COUNT;
        for connections in &settings.connections {
            progress.step(&format!("{}, {connections} connections", operation.name()));
            let (mut server, mut floor) = (Measurement::new(), Measurement::new());
            let mut entities = 0.0;
            for _ in 0..ROUNDS {
                let time = settings.time / ROUNDS;
                let requests = workload.requests(*operation, count).await?;
                entities = requests.entities();
                let mut asked = Asked {
                    address: workload.address(),
                    others: Vec::new(),
                    cpu,
                    requests,
                    status: operation.status(),
                };
                let turn = measure::run(&asked, *connections, time).await?;
                count = count.max(turn.count_within(2 * time)).min(COUNT_MAX);
                server += turn;
                match floor_server {
                    Floor::Bare(bare) => {
                        asked.address = bare.address();
                        asked.cpu = Some(Cpu::Threads(servers::BARE));
                        asked.requests = asked.requests.repeated();
                    }
                    Floor::Program(other) => {
                        asked.address = other.workload.address();
                        asked.cpu = Some(Cpu::Process(other.child.id()));
                        asked.requests = other.workload.requests(*operation, count).await?;
                    }
                }
                floor += measure::run(&asked, *connections, time).await?;
            }
            rows.push(Row {
                operation: operation.name(),
                connections: *connections,
                entities,
                server,
                floor,
            });
        }
    }
    Ok(rows)
}

/// The server that takes turns with the measured one.
enum Floor<'a> {
    /// Sends the same bytes.
    Bare(&'a BareServer),
    Program(&'a OtherProgram),
}

/// Another program, with a table of its own.
struct OtherProgram {
    child: ChildServer,
    workload: Workload,
}

impl OtherProgram {
    async fn start(
        program: &Subject,
        settings: &Settings,
        entities: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let child = ChildServer::start(program, settings.data, Cores::All)?;
        let account = Account::from_connection_string(child.connection_string())?;
        let workload = Workload::create(account, settings.shape(entities)).await?;
        println!("filled the other program: {}", child.footprint());
        Ok(Self { child, workload })
    }
}

/// One line on a terminal, nothing elsewhere.
struct Progress {
    is_shown: bool,
    entities: usize,
    done: usize,
    all: usize,
}

impl Progress {
    fn new(settings: &Settings, entities: usize) -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            entities,
            done: 0,
            all: settings.operations.len() * settings.connections.len(),
        }
    }

    fn step(&mut self, what: &str) {
        self.done += 1;
        self.show(what);
    }

    fn show(&self, what: &str) {
        if self.is_shown {
            let Self {
                entities,
                done,
                all,
                ..
            } = self;
            let width = 20;
            let bar: String = (0..width)
                .map(|place| if place * all < done * width { '#' } else { '.' })
                .collect();
            // A terminal that is gone needs no progress.
            let _ = write!(io::stderr(), "\r\x1b[K[{bar}] {entities} entities: {what}");
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// In how many turns each result is taken.
const ROUNDS: u32 = 4;
const FIRST_COUNT: usize = 500;
const COUNT_MAX: usize = 50_000;
