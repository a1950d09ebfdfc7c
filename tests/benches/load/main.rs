//! The load program: how fast a table server responds, compared with a bare HTTP server that sends the same bytes.
//!
//! Requests are built and signed before they are sent, over raw keep-alive sockets, so that the server is measured and no
//! client. Each measurement is taken in short turns with the bare server: both see the same machine, and their ratio is what is
//! worth reading. It knows only the protocol, so any server that speaks it can be measured. Run it with `--help`.

mod child;
mod connection;
mod cpu;
mod measure;
mod report;
mod servers;
mod workload;

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use child::ChildServer;
use cpu::Cpu;
use measure::{Asked, Measurement};
use report::Row;
use servers::{Account, BareServer, OwnServer};
use workload::{Operation, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from(&command().get_matches());
    // The load comes from this thread alone, so that it costs the same on every machine.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(&settings))
}

async fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let bare = BareServer::start(settings.threads)?;
    for entities in &settings.entities {
        // A fresh one each time: what one size left behind is not measured with the next.
        let mut child = match &settings.program {
            Some(program) => Some(ChildServer::start(program, settings.data)?),
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
        let mut workload = Workload::create(account, *entities, settings.text_bytes).await?;
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
        // How many requests of a kind that is good for once are made ready: more than were needed so far.
        let mut count = FIRST_COUNT;
        for connections in &settings.connections {
            progress.step(&format!("{}, {connections} connections", operation.name()));
            let (mut server, mut floor) = (Measurement::default(), Measurement::default());
            for _ in 0..ROUNDS {
                let time = settings.time / ROUNDS;
                let requests = workload.requests(*operation, count).await?;
                let mut asked = Asked {
                    address: workload.address(),
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
        program: &Path,
        settings: &Settings,
        entities: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let child = ChildServer::start(program, settings.data)?;
        let account = Account::from_connection_string(child.connection_string())?;
        let workload = Workload::create(account, entities, settings.text_bytes).await?;
        println!("filled the other program: {}", child.footprint());
        Ok(Self { child, workload })
    }
}

struct Settings {
    against: Option<PathBuf>,
    connections: Vec<usize>,
    data: bool,
    endpoint: Option<String>,
    pid: Option<u32>,
    program: Option<PathBuf>,
    entities: Vec<usize>,
    operations: Vec<Operation>,
    text_bytes: usize,
    threads: usize,
    time: Duration,
}

impl From<&ArgMatches> for Settings {
    fn from(matches: &ArgMatches) -> Self {
        fn all<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
            matches
                .get_many(name)
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        }
        let expectation = "the flag has a default value";
        Self {
            against: matches.get_one("against").cloned(),
            connections: all(matches, "connections"),
            data: matches.get_flag("data"),
            endpoint: matches.get_one("endpoint").cloned(),
            pid: matches.get_one("pid").copied(),
            program: matches.get_one("program").cloned(),
            entities: all(matches, "entities"),
            operations: all(matches, "operations"),
            text_bytes: *matches.get_one("text-bytes").expect(expectation),
            threads: *matches.get_one("threads").expect(expectation),
            time: Duration::from_millis(*matches.get_one("milliseconds").expect(expectation)),
        }
    }
}

fn command() -> Command {
    let names: Vec<_> = Operation::ALL.map(Operation::name).to_vec();
    let list = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("LIST")
            .value_delimiter(',')
            .default_value(default)
            .help(help)
    };
    Command::new("load")
        // `cargo bench` passes it.
        .arg(Arg::new("bench").long("bench").hide(true).action(ArgAction::SetTrue))
        .about("Measures a table server beside a bare HTTP server that answers the same bytes.")
        .after_help("Without --endpoint it measures tablesdk-server in this process, on threads of its own.")
        .arg(
            Arg::new("endpoint")
                .long("endpoint")
                .value_name("CONNECTION STRING")
                .help("The server to measure: AccountName, AccountKey and an http TableEndpoint"),
        )
        .arg(
            Arg::new("program")
                .long("program")
                .value_name("FILE")
                .conflicts_with("endpoint")
                .value_parser(value_parser!(PathBuf))
                .help("Measure this tablesdk-server as a process of its own, with its memory and its start after it was killed"),
        )
        .arg(
            Arg::new("against")
                .long("against")
                .requires("program")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Compare with this program, such as another version of it, in place of the bare server"),
        )
        .arg(
            Arg::new("data")
                .long("data")
                .requires("program")
                .action(ArgAction::SetTrue)
                .help("Let it keep its tables in a directory, which is made in the working directory and removed in the end"),
        )
        .arg(
            Arg::new("pid")
                .long("pid")
                .requires("endpoint")
                .value_name("NUMBER")
                .value_parser(value_parser!(u32))
                .help("The process of the endpoint, to tell its memory"),
        )
        .arg(
            list("entities", "1000", "How many entities the table has; one table of results each")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if (1..=100_000_000).contains(&number) => Ok::<usize, _>(number),
                    _ => Err("a number from 1 to 100000000"),
                }),
        )
        .arg(
            list("connections", "1,16,64", "How many connections ask at a time")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if (1..=10_000).contains(&number) => Ok::<usize, _>(number),
                    _ => Err("a number from 1 to 10000"),
                }),
        )
        .arg(
            Arg::new("operations")
                .long("operations")
                .value_name("LIST")
                .value_delimiter(',')
                .default_values(names)
                .value_parser(|text: &str| {
                    let mut all = Operation::ALL.into_iter();
                    all.find(|operation| operation.name() == text)
                        .ok_or("no such operation")
                })
                .help("What to measure"),
        )
        .arg(
            Arg::new("milliseconds")
                .long("milliseconds")
                .value_name("NUMBER")
                .default_value("1000")
                .value_parser(value_parser!(u64).range(1..=600_000))
                .help("How long each server is asked for each result"),
        )
        .arg(
            Arg::new("text-bytes")
                .long("text-bytes")
                .value_name("NUMBER")
                .default_value("0")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if number <= 30_000 => Ok::<usize, _>(number),
                    _ => Err("a number from 0 to 30000"),
                })
                .help("How long a text each entity has beside its ten properties, which are 600 bytes of JSON"),
        )
        .arg(
            Arg::new("threads")
                .long("threads")
                .value_name("NUMBER")
                .default_value("1")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if (1..=1024).contains(&number) => Ok::<usize, _>(number),
                    _ => Err("a number from 1 to 1024"),
                })
                .help("How many threads the servers in this process have each"),
        )
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
