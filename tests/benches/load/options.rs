//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::child::Subject;
use crate::table::{GROUPS, Plan};
use crate::workload::{Operation, Shape};

/// The settings of a detailed measurement.
pub(crate) struct Settings {
    pub(crate) against: Option<Subject>,
    pub(crate) connections: Vec<usize>,
    pub(crate) data: bool,
    pub(crate) endpoint: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) program: Option<Subject>,
    pub(crate) entities: Vec<usize>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) entities_per_partition: usize,
    pub(crate) text_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) time: Duration,
}

impl Settings {
    /// The table with so many entities.
    pub(crate) const fn shape(&self, entities: usize) -> Shape {
        Shape {
            entities,
            entities_per_partition: self.entities_per_partition,
            text_bytes: self.text_bytes,
        }
    }
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
            entities_per_partition: *matches.get_one("partition").expect(expectation),
            operations: all(matches, "operations"),
            text_bytes: *matches.get_one("text-bytes").expect(expectation),
            threads: *matches.get_one("threads").expect(expectation),
            time: Duration::from_millis(*matches.get_one("milliseconds").expect(expectation)),
        }
    }
}

/// The groups of the table, and for how long it measures.
pub(crate) fn plan(matches: &ArgMatches) -> Plan {
    // Not every command has groups.
    let groups: Option<_> = matches.try_get_many("only").ok().flatten();
    Plan {
        program: matches.get_one("program").cloned(),
        groups: groups.map_or_else(
            || GROUPS.map(str::to_owned).to_vec(),
            |groups| groups.cloned().collect(),
        ),
        json: matches.get_one("json").cloned(),
        is_quick: matches.get_flag("quick"),
    }
}

/// The options of commands that measure a table of ratios.
fn with_plan(command: Command, quick: &'static str) -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    command
        .arg(file(
            "program",
            "The tablesdk-server to measure; without it, that of this workspace is built",
        ))
        .arg(file(
            "json",
            "Write the figures of all runs to this file, too",
        ))
        .arg(
            Arg::new("quick")
                .long("quick")
                .action(ArgAction::SetTrue)
                .help(quick),
        )
}

fn table_command() -> Command {
    let command = Command::new("table")
        .about("Measures every path beside its peer, as a ratio: the table of docs/performance.md");
    let quick = "One short run with smaller tables, in less than two minutes";
    with_plan(command, quick).arg(
        Arg::new("only")
            .long("only")
            .value_name("LIST")
            .value_delimiter(',')
            .value_parser(GROUPS)
            .help("The groups of rows to measure"),
    )
}

fn shared_store_command() -> Command {
    let command = Command::new("shared-store").about(
        "Measures one server and three over one PostgreSQL beside the same SQL statements alone",
    );
    with_plan(command, "Few short rounds, in less than a minute")
}

/// The whole command line: the options of a measurement in detail, and the commands.
pub(crate) fn command() -> Command {
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
        .arg(Arg::new("bench").long("bench").hide(true).global(true).action(ArgAction::SetTrue))
        .about("Measures a table server beside a bare HTTP server that answers the same bytes.")
        .subcommand(table_command())
        .subcommand(shared_store_command())
        .subcommand(
            Command::new("plain")
                .about("Serves as the plain server, the peer that an engineer would write in a day")
                .arg(Arg::new("data").long("data").value_name("DIRECTORY").value_parser(value_parser!(PathBuf))),
        )
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
                .value_parser(value_parser!(Subject))
                .help("Measure this tablesdk-server, or `plain` or `azurite`, as a process of its own, with its memory and its start after it was killed"),
        )
        .arg(
            Arg::new("against")
                .long("against")
                .requires("program")
                .value_name("FILE")
                .value_parser(value_parser!(Subject))
                .help("Compare with this program, such as another version of it, or with `plain` or `azurite`, in place of the bare server"),
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
            Arg::new("partition")
                .long("partition")
                .value_name("NUMBER")
                .default_value("1000")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if (100..=100_000_000).contains(&number) => Ok::<usize, _>(number),
                    _ => Err("a number from 100 to 100000000"),
                })
                .help("How many entities a partition has"),
        )
        .arg(
            Arg::new("text-bytes")
                .long("text-bytes")
                .value_name("NUMBER")
                .default_value("0")
                .value_parser(|text: &str| match text.parse() {
                    Ok(number) if number <= 900_000 => Ok::<usize, _>(number),
                    _ => Err("a number from 0 to 900000"),
                })
                .help("How many bytes of strings each entity has in addition to its ten properties, which are 600 bytes of JSON"),
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
