//! The command line: its options, their defaults and their help.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use tablesdk_protocol::Endpoint;
use tablesdk_server::Durability;
use tablesdk_server::testing::Flavor;
use tracing_subscriber::filter::Targets;

#[derive(Parser)]
#[command(name = super::NAME, version, about = ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
}

#[derive(Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct ServeOptions {
    /// Serve this account instead of the well-known one; repeat the option for more accounts. Other
    /// users of this machine can see the key in the list of processes: see --account-file
    #[arg(long, value_name = "NAME:KEY")]
    pub(crate) account: Vec<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "Serve the accounts in this file, one NAME:KEY on each line. Alternative: set TABLESDK_SERVER_ACCOUNTS to NAME:KEY,NAME:KEY"
    )]
    pub(crate) account_file: Option<PathBuf>,
    /// Serve /health, /ready, /metrics and the subcommands `backup` and `check` on this port of
    /// 127.0.0.1, to all clients on this machine, without authentication; 0 selects a free port
    #[arg(long, value_name = "PORT")]
    pub(crate) admin_port: Option<u16>,
    /// Open the kit for tests to other languages, next to /health on the port for operators, which
    /// is a free port unless it is set: faults, recorded requests, the clock and snapshots, with
    /// JSON. GET /test/openapi.json describes it. Standard output has one line of JSON with the
    /// endpoint, the connection string and the URL of the kit
    #[arg(long, conflicts_with = "data")]
    pub(crate) test: bool,
    /// Stop when standard input ends, as on SIGTERM. If it is a pipe from the program that starts
    /// the server, the server ends with that program, even if it is killed
    #[arg(long)]
    pub(crate) exit_with_stdin: bool,
    /// The service whose behavior clients see, with the tables in memory: storage is Azure Table
    /// storage, cosmos-db is Azure Cosmos DB for Table, azurite is the emulator of the Azure tools
    #[arg(long, value_name = "FLAVOR", conflicts_with = "data", default_value = "storage", value_parser = flavor())]
    pub(crate) flavor: Flavor,
    /// Write the port to this file when the server accepts connections, and remove the file when
    /// the server stops
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// The IP address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port to listen on; 0 selects a free port, and so does --test without this option
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 10002,
        default_value_if("test", "true", "0")
    )]
    pub(crate) port: u16,
    #[arg(
        long,
        value_name = "URL",
        value_parser = blob_endpoint,
        help = "Add this URL of a blob service to the connection string that is printed, for programs that have one string for all \
            services; azurite is the emulator's, http://127.0.0.1:10000/devstoreaccount1"
    )]
    pub(crate) blob_endpoint: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        value_parser = queue_endpoint,
        help = "The same for a queue service; azurite is http://127.0.0.1:10001/devstoreaccount1"
    )]
    pub(crate) queue_endpoint: Option<String>,
    /// Store the tables in this data directory, which is created if it does not exist; without this
    /// option they are in memory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["data", "test", "flavor", "durability"],
        help = "Store the tables in this PostgreSQL database, which other servers may use at the same time: \
            postgres://user:password@host/database. Alternative, which other users of this machine cannot see: set \
            TABLESDK_SERVER_STORE to the URL"
    )]
    pub(crate) store: Option<String>,
    /// Maximum number of connections to the database; without this option, 16
    #[arg(long, value_name = "COUNT", value_parser = connections)]
    pub(crate) store_connections: Option<NonZeroUsize>,
    /// Durability of acknowledged writes: sync survives a loss of power, relaxed only the end of
    /// the process
    #[arg(long, value_name = "LEVEL", requires = "data", default_value = "sync", value_parser = durability())]
    pub(crate) durability: Durability,
    /// Serve HTTPS with the certificate in this PEM file, which is followed by its intermediate
    /// certificates
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in a PEM file without a password
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Accept every bearer token, with all permissions, with and without HTTPS: for tests of
    /// clients with credentials of Microsoft Entra ID. Only on a loopback address. Without this
    /// option, every token is refused
    #[arg(long)]
    pub(crate) accept_any_token: bool,
    /// Allow the well-known key on an address that other machines can reach
    #[arg(long)]
    pub(crate) allow_well_known_key: bool,
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "warn",
        default_value_if("test", "true", "warn,tablesdk_server::request=off"),
        help = "Log filter: off, error, warn, info (each request), debug or trace; or per target, for example \
            warn,tablesdk_server::request=info. With --test, the default omits requests: a test causes failures on purpose"
    )]
    pub(crate) log: Targets,
    /// Log format: plain text, or one JSON object on each line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Leave partition and row keys, filters and the reasons of errors out of the log
    #[arg(long)]
    pub(crate) log_without_entity_keys: bool,
    /// Maximum number of connections; the limit of open files may lower it. When all connections
    /// are in use, the server closes idle ones to accept new ones
    #[arg(long, value_name = "COUNT", default_value = "10000")]
    pub(crate) max_connections: NonZeroUsize,
    /// How long requests in flight may take after a stop signal
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = value_parser!(u64).range(..=3600))]
    pub(crate) shutdown_grace: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Read a data directory completely, and report damage; or ask a server that runs whether it is
    /// ready
    #[command(long_about = CHECK)]
    Check {
        #[command(flatten)]
        source: Source,
    },
    /// Write all data to one file, from a server that runs or from a data directory
    #[command(long_about = BACKUP)]
    Backup {
        #[command(flatten)]
        source: Source,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
        /// The file to write, or - for standard output
        file: PathBuf,
    },
    /// Create a data directory from a backup
    #[command(long_about = RESTORE)]
    Restore {
        /// The data directory to create; it must not exist, or must be empty
        #[arg(long, value_name = "DIRECTORY")]
        data: PathBuf,
        /// The backup, or - for standard input
        file: PathBuf,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Source {
    /// The data directory of a stopped server
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
    /// The --admin-port of a running server on this machine
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    pub(crate) admin_port: Option<u16>,
}

fn durability() -> impl clap::builder::TypedValueParser<Value = Durability> {
    PossibleValuesParser::new(["relaxed", "sync"]).map(|level| match level.as_str() {
        "relaxed" => Durability::Relaxed,
        _ => Durability::Sync,
    })
}

fn blob_endpoint(text: &str) -> Result<String, String> {
    endpoint(text, "http://127.0.0.1:10000/devstoreaccount1")
}

fn queue_endpoint(text: &str) -> Result<String, String> {
    endpoint(text, "http://127.0.0.1:10001/devstoreaccount1")
}

/// A URL that may be in a connection string, or that of the emulator.
fn endpoint(text: &str, azurite: &str) -> Result<String, String> {
    if text == "azurite" {
        return Ok(azurite.to_owned());
    }
    if text.contains(';') {
        return Err("a connection string cannot contain it: it has a semicolon".to_owned());
    }
    let endpoint: Result<Endpoint, _> = text.parse();
    endpoint
        .map(|endpoint| endpoint.to_string())
        .map_err(|error| error.to_string())
}

fn connections(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().and_then(NonZeroUsize::new);
    let count = count.filter(|count| count.get() <= CONNECTIONS_MAX);
    count.ok_or_else(|| format!("it must be a number from 1 to {CONNECTIONS_MAX}"))
}

/// More than a database accepts.
const CONNECTIONS_MAX: usize = 10_000;

fn flavor() -> impl clap::builder::TypedValueParser<Value = Flavor> {
    PossibleValuesParser::new(["azurite", "cosmos-db", "storage"]).map(|flavor| {
        match flavor.as_str() {
            "azurite" => Flavor::Azurite,
            "cosmos-db" => Flavor::CosmosDb,
            _ => Flavor::Storage,
        }
    })
}

const ABOUT: &str = "\
An Azure Table storage server for development and tests, for clients in any language.

The server stores its tables in memory, where they are lost when it stops, or in a
data directory, where every acknowledged write survives a crash and, by default, a
loss of power, or in a PostgreSQL database that several servers share. It serves the well-known development account devstoreaccount1, unless
other accounts are given. When it accepts connections, it prints one line with its
address and, for the well-known account, the connection string. It stops on Ctrl-C or
SIGTERM: on the first signal when the requests in flight are complete, on the second
signal at once.";

const EXAMPLES: &str = r#"Examples:
  On the default port, which the development connection string of every client uses:

    tablesdk-server

    Python  TableServiceClient.from_connection_string("UseDevelopmentStorage=true")
    .NET    new TableServiceClient("UseDevelopmentStorage=true")

  UseDevelopmentStorage=true is the account devstoreaccount1 at 127.0.0.1, with blobs at
  port 10000, queues at 10001 and tables at 10002: it needs this server at its default
  port, without other accounts. Azurite's programs azurite-blob and azurite-queue serve
  the other two.

  With a connection string for all three services, also at another port:

    tablesdk-server --port 0 --blob-endpoint azurite --queue-endpoint azurite

  On a free port, which the printed line contains:

    tablesdk-server --port 0

  With tables that survive a restart:

    tablesdk-server --data ./tables

  With tables in a database, for any number of servers:

    TABLESDK_SERVER_STORE=postgres://tables:PASSWORD@db.example.com/tables tablesdk-server

  For other machines on the network, with its own accounts and HTTPS:

    tablesdk-server --host 0.0.0.0 --data ./tables --account-file ./accounts \
      --tls-cert cert.pem --tls-key key.pem

  With one line on standard error for each request, without account keys and signatures:

    tablesdk-server --log info"#;

const CHECK: &str = "\
Read a data directory completely, and report damage; or ask a server that runs
whether it is ready

With --data, no server may have the data directory open. The command reads every record, whose
checksum the store verifies, and compares data that is stored twice. It reports each
damage on one line, and exits with 1 if there is damage, else with 0. Incomplete
writes of a crash that were never acknowledged are not damage, and are cut off: copy
a damaged directory before you check it.

With --admin-port, the command asks a server on this machine, and exits with 0 if the
server takes requests and its storage takes writes, else with 1 and the reason. It is
the health check of the container image. It waits up to 10 seconds for the response.

  tablesdk-server check --admin-port 10012";

const BACKUP: &str = "\
Write all data to one file, from a server that runs or from a data directory

The backup of a server that runs with --admin-port contains all data as of one moment;
the server continues to serve requests. The file gets its name only when it is
complete. `restore` creates a data directory from it, on a machine of any kind.

  tablesdk-server --data tables --admin-port 10012 &
  tablesdk-server backup --admin-port 10012 monday.backup";

const RESTORE: &str = "\
Create a data directory from a backup

The data directory gets its name only after the whole backup has been read, verified
and written. A truncated or damaged backup creates no data directory.

  tablesdk-server restore monday.backup --data tables
  tablesdk-server --data tables";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(options: &[&str]) -> Result<ServeOptions, clap::Error> {
        let words = [super::super::NAME].iter().chain(options);
        Ok(Arguments::try_parse_from(words)?.serve)
    }

    #[test]
    fn the_options_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_default_address_is_that_of_emulators() {
        let options = parse(&[]).unwrap();
        assert_eq!(
            (options.host.to_string(), options.port),
            ("127.0.0.1".to_owned(), 10002)
        );
    }

    #[test]
    fn errors_name_the_invalid_option() {
        for (wrong, named) in [
            (&["--port", "65536"], "--port"),
            (&["--host", "localhost"], "--host"),
            (&["--log", "tablesdk_server=loud"], "--log"),
            (&["--log-format", "xml"], "--log-format"),
            (&["--shutdown-grace", "3601"], "--shutdown-grace"),
            (&["--durability", "full"], "--durability"),
            (&["--flavor", "cosmos"], "--flavor"),
            (&["--blob-endpoint", "azure"], "--blob-endpoint"),
            (&["--blob-endpoint", "http://a/?sig=x"], "--blob-endpoint"),
            (&["--queue-endpoint", "http://a/b;c"], "--queue-endpoint"),
        ] {
            let error = parse(wrong).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn the_log_filter_selects_levels_and_targets() {
        use tracing::Level;

        let request = "tablesdk_server::request";
        let logs = |words: &[&str], level| {
            let options = parse(words).unwrap();
            options.log.would_enable(request, &level)
        };
        assert!(logs(&[], Level::WARN));
        assert!(!logs(&[], Level::INFO));
        assert!(!logs(&["--log", "off"], Level::ERROR));
        assert!(logs(&["--log", "info"], Level::INFO));
        assert!(!logs(&["--test"], Level::ERROR));
        assert!(logs(&["--test", "--log", "info"], Level::INFO));
        let by_part = ["--log", "error,tablesdk_server::request=info"];
        assert!(logs(&by_part, Level::INFO));
    }

    #[test]
    fn a_flavor_has_no_data_directory() {
        let flavor = |words: &[&str]| parse(words).map(|options| options.flavor);
        assert_eq!(flavor(&[]).unwrap(), Flavor::Storage);
        assert_eq!(flavor(&["--data", "x"]).unwrap(), Flavor::Storage);
        let cosmos_db = ["--flavor", "cosmos-db"];
        assert_eq!(flavor(&cosmos_db).unwrap(), Flavor::CosmosDb);
        assert_eq!(
            flavor(&["--flavor", "azurite", "--test"]).unwrap(),
            Flavor::Azurite
        );
        assert!(flavor(&["--flavor", "azurite", "--data", "x"]).is_err());
    }

    #[test]
    fn durability_requires_a_data_directory() {
        let data = |words: &[&str]| {
            let options = parse(words).unwrap();
            (options.data, options.durability)
        };
        assert_eq!(data(&[]), (None, Durability::Sync));
        let directory = || Some(PathBuf::from("x"));
        assert_eq!(data(&["--data", "x"]), (directory(), Durability::Sync));
        let relaxed = ["--data", "x", "--durability", "relaxed"];
        assert_eq!(data(&relaxed), (directory(), Durability::Relaxed));
        assert!(parse(&["--durability", "relaxed"]).is_err());
    }
}
