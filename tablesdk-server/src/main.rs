//! The standalone server: turns flags into a [`Builder`](tablesdk_server::Builder) and serves until a signal stops it. It also has
//! the subcommands for the data directory.
//!
//! The server prints one line on standard output when it accepts connections, errors and the log on standard error, and nothing
//! else. The exit code is 0 after a signal to stop; 1 if it cannot serve, could not complete all requests before it stopped, or got
//! a second signal; and 2 if the flags are invalid.

mod program;

use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tablesdk_server::{Durability, TableServer, TlsIdentity};
use tokio::sync::oneshot;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::program::accounts::{self, Accounts};
use crate::program::{open_files, tools};

/// Gives memory back to the system some seconds after it was freed; the system's own allocator may keep what it ever had.
#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some((name, matches)) => tools::run(name, matches),
        None => run(&Flags::from(&matches)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the error cannot be reported.
            let _ = writeln!(io::stderr(), "{NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), Box<dyn Error>> {
    // Once, and before signals are caught: a file may be a pipe, which can be read only once and may keep the program waiting.
    let accounts = flags.accounts()?;
    let tls = flags.tls()?;
    flags.check_host(&accounts)?;
    start_log(flags)?;
    open_files::raise(flags.max_connections);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve(flags, accounts, tls));
    // What computes still was given its time.
    runtime.shutdown_background();
    result
}

/// From here on, what happens is written to standard error, as far as it passes the filter.
fn start_log(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let layer = fmt::layer().with_writer(io::stderr);
    let layer = match flags.log_format {
        LogFormat::Json => layer.json().boxed(),
        LogFormat::Text => layer.boxed(),
    };
    let layer = layer.with_filter(flags.log.clone());
    Ok(tracing_subscriber::registry().with(layer).try_init()?)
}

async fn serve(
    flags: &Flags,
    accounts: Accounts,
    tls: Option<TlsIdentity>,
) -> Result<(), Box<dyn Error>> {
    // Before the server announces itself: from then on it may get a signal to stop.
    let told_to_stop = listen_for_signals()?;
    let mut builder = TableServer::builder()
        .host(flags.host)
        .port(flags.port)
        .max_connections(flags.max_connections)
        .shutdown_grace(flags.shutdown_grace);
    for account in accounts.keys {
        builder = builder.account(account);
    }
    if let Some(port) = flags.admin_port {
        builder = builder.admin_port(port);
    }
    if let Some(identity) = tls {
        builder = builder.tls(identity);
    }
    if let Some(folder) = &flags.data {
        builder = builder.data(folder, flags.durability);
    }
    let server = builder.start().await.map_err(|error| with_advice(&error))?;
    if let (Some(path), Some(address)) = (&flags.port_file, server.local_addr()) {
        let written = write_port(path, address.port());
        written.map_err(|error| format!("--port-file {}: {error}", path.display()))?;
    }
    let mut stdout = io::stdout();
    // An error is ignored: if standard output is closed, no program reads the line.
    let _ = if accounts.is_default {
        let text = server.connection_string();
        let endpoint = server.endpoint();
        writeln!(
            stdout,
            "{NAME} listens on {endpoint}, connection string: {text}"
        )
    } else {
        // The operator who configured the key has it already, and standard output may be stored.
        writeln!(stdout, "{NAME} listens on {}", server.endpoint())
    };
    if let Some(address) = server.admin_addr() {
        let _ = writeln!(stdout, "{NAME} listens for operators on http://{address}");
    }
    let _ = stdout.flush();
    // If the sender was dropped, the server stops, too.
    let _ = told_to_stop.await;
    let stopped = server.shutdown().await;
    if let Some(path) = &flags.port_file {
        // It may be gone.
        let _ = std::fs::remove_file(path);
    }
    Ok(stopped?)
}

/// Writes the port to a file by renaming a draft, so that a program that waits for the file never reads a partial number.
fn write_port(path: &Path, port: u16) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, format!("{port}\n"))?;
    std::fs::rename(draft, path)
}

struct Flags {
    host: IpAddr,
    port: u16,
    account: Vec<String>,
    account_file: Option<PathBuf>,
    admin_port: Option<u16>,
    port_file: Option<PathBuf>,
    allow_well_known_key: bool,
    data: Option<PathBuf>,
    durability: Durability,
    log: Targets,
    log_format: LogFormat,
    max_connections: NonZeroUsize,
    shutdown_grace: Duration,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFormat {
    /// An object of JSON on each line.
    Json,
    /// A line for people.
    Text,
}

impl Flags {
    /// The accounts that are given, or the well-known one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program reads its environment, the library does not"
    )]
    fn accounts(&self) -> Result<Accounts, String> {
        let environment = match std::env::var(accounts::VARIABLE) {
            Ok(text) => Some(text),
            Err(std::env::VarError::NotPresent) => None,
            Err(error) => return Err(format!("{}: {error}", accounts::VARIABLE)),
        };
        let keys = accounts::all(
            &self.account,
            self.account_file.as_deref(),
            environment.as_deref(),
        )?;
        Ok(Accounts::new(keys))
    }

    fn tls(&self) -> Result<Option<TlsIdentity>, String> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let read = |flag: &str, path: &Path| {
            std::fs::read(path)
                .map_err(|error| format!("{flag} {} cannot be read: {error}", path.display()))
        };
        let identity =
            TlsIdentity::from_pem(&read("--tls-cert", certificate)?, &read("--tls-key", key)?);
        identity.map(Some).map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            format!("--tls-cert {certificate}, --tls-key {key}: {error}")
        })
    }

    /// Refuses the well-known key, of whichever account, on an address that other machines can reach.
    fn check_host(&self, accounts: &Accounts) -> Result<(), String> {
        // `is_loopback` knows no IPv4 address in the form of IPv6.
        if self.host.to_canonical().is_loopback() || self.allow_well_known_key {
            return Ok(());
        }
        let Some(account) = accounts.with_well_known_key() else {
            return Ok(());
        };
        Err(format!(
            "refuses to listen on {}: the key of the account {account:?} is the well-known key of every storage emulator, so \
             any client that can reach this address could read and change all data; give the account its own key with \
             --account or --account-file, or, if only trusted clients can reach the address (inside a container), add \
             --allow-well-known-key",
            self.host
        ))
    }
}

impl From<&ArgMatches> for Flags {
    fn from(matches: &ArgMatches) -> Self {
        let expectation = "the flag has a default value";
        Self {
            host: *matches.get_one("host").expect(expectation),
            port: *matches.get_one("port").expect(expectation),
            account: matches
                .get_many("account")
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            account_file: matches.get_one("account-file").cloned(),
            admin_port: matches.get_one("admin-port").copied(),
            port_file: matches.get_one("port-file").cloned(),
            allow_well_known_key: matches.get_flag("allow-well-known-key"),
            log: matches
                .get_one::<Targets>("log")
                .expect(expectation)
                .clone(),
            log_format: match matches.get_one::<String>("log-format").map(String::as_str) {
                Some("json") => LogFormat::Json,
                _ => LogFormat::Text,
            },
            max_connections: *matches.get_one("max-connections").expect(expectation),
            shutdown_grace: Duration::from_secs(
                *matches.get_one("shutdown-grace").expect(expectation),
            ),
            tls_cert: matches.get_one("tls-cert").cloned(),
            tls_key: matches.get_one("tls-key").cloned(),
            data: matches.get_one("data").cloned(),
            durability: match matches.get_one::<String>("durability").map(String::as_str) {
                Some("relaxed") => Durability::Relaxed,
                _ => Durability::Sync,
            },
        }
    }
}

fn command() -> Command {
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
        .args_conflicts_with_subcommands(true)
        .subcommands(tools::commands())
        .arg(
            Arg::new("account")
                .long("account")
                .value_name("NAME:KEY")
                .action(ArgAction::Append)
                .help("Serve this account instead of the well-known one; repeat the option for more accounts. Other users of this machine can see the key in the list of processes: see --account-file"),
        )
        .arg(
            Arg::new("account-file")
                .long("account-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Serve the accounts in this file, one NAME:KEY on each line. Alternative: set TABLESDK_SERVER_ACCOUNTS to NAME:KEY,NAME:KEY"),
        )
        .arg(
            Arg::new("admin-port")
                .long("admin-port")
                .value_name("PORT")
                .value_parser(value_parser!(u16))
                .help("Serve /health, /ready, /metrics and the subcommand `backup` on this port of 127.0.0.1, to all clients on this machine, without authentication; 0 selects a free port"),
        )
        .arg(
            Arg::new("port-file")
                .long("port-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the port to this file when the server accepts connections, and remove the file when the server stops"),
        )
        .arg(
            Arg::new("host")
                .long("host")
                .value_name("ADDRESS")
                .default_value("127.0.0.1")
                .value_parser(value_parser!(IpAddr))
                .help("The IP address to listen on"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .default_value("10002")
                .value_parser(value_parser!(u16))
                .help("The port to listen on; 0 selects a free port"),
        )
        .arg(
            Arg::new("data")
                .long("data")
                .value_name("DIRECTORY")
                .value_parser(value_parser!(PathBuf))
                .help("Store the tables in this data directory, which is created if it does not exist; without this option they are in memory"),
        )
        .arg(
            Arg::new("durability")
                .long("durability")
                .value_name("LEVEL")
                .requires("data")
                .default_value("sync")
                .value_parser(["relaxed", "sync"])
                .help("Durability of acknowledged writes: sync survives a loss of power, relaxed only the end of the process"),
        )
        .args(tls_args())
        .arg(
            Arg::new("allow-well-known-key")
                .long("allow-well-known-key")
                .action(ArgAction::SetTrue)
                .help("Allow the well-known key on an address that other machines can reach"),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_name("FILTER")
                .default_value("warn")
                .value_parser(|text: &str| text.parse::<Targets>())
                .help("Log filter: off, error, warn, info (each request), debug or trace; or per target, for example warn,tablesdk_server::request=info"),
        )
        .arg(
            Arg::new("log-format")
                .long("log-format")
                .value_name("FORMAT")
                .default_value("text")
                .value_parser(["text", "json"])
                .help("Log format: plain text, or one JSON object on each line"),
        )
        .args(limit_args())
}

fn limit_args() -> [Arg; 2] {
    [
        Arg::new("max-connections")
            .long("max-connections")
            .value_name("COUNT")
            .default_value("10000")
            .value_parser(value_parser!(NonZeroUsize))
            .help("Maximum number of connections; the limit of open files may lower it. When all connections are in use, the server closes idle ones to accept new ones"),
        Arg::new("shutdown-grace")
            .long("shutdown-grace")
            .value_name("SECONDS")
            .default_value("10")
            .value_parser(value_parser!(u64).range(..=3600))
            .help("How long requests in flight may take after a stop signal"),
    ]
}

fn tls_args() -> [Arg; 2] {
    let file = |name: &'static str| {
        let arg = Arg::new(name).long(name).value_name("FILE");
        arg.value_parser(value_parser!(PathBuf))
    };
    [
        file("tls-cert").requires("tls-key").help(
            "Serve HTTPS with the certificate in this PEM file, which is followed by its intermediate certificates",
        ),
        file("tls-key")
            .requires("tls-cert")
            .help("The private key of the certificate, in a PEM file without a password"),
    ]
}

/// Says which flag helps, where one does.
fn with_advice(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; the port is already in use: choose another port with --port, or a free port with --port 0"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; this machine does not have that address: choose another address with --host"
        }
        io::ErrorKind::PermissionDenied if error.to_string().contains("listen") => {
            "; ports below 1024 are reserved: choose another port with --port"
        }
        _ => "",
    };
    format!("{error}{advice}")
}

/// Registers for the signals at once. The first one resolves what this returns, the second one ends the program.
///
/// They are waited for on a thread of their own: threads that answer requests may all be busy.
fn listen_for_signals() -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let guard = runtime.enter();
    let mut signals = Signals::new()?;
    drop(guard);
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                signals.next().await;
                // Fails if the server has stopped on its own.
                let _ = tell.send(());
                signals.next().await;
            });
            end();
        })?;
    Ok(told)
}

/// Ends the program at once, whatever it does.
#[expect(
    clippy::exit,
    reason = "somebody has asked twice, and answers are not waited for"
)]
fn end() -> ! {
    let _ = writeln!(
        io::stderr(),
        "{NAME}: second stop signal, exits without responding to requests in flight"
    );
    std::process::exit(1)
}

/// The signals that stop a program.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signals that stop a program.
#[cfg(windows)]
struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
        })
    }

    async fn next(&mut self) {
        self.interrupt.recv().await;
    }
}

const NAME: &str = "tablesdk-server";

const ABOUT: &str = "\
An Azure Table storage server for development and tests, for clients in any language.

The server stores its tables in memory, where they are lost when it stops, or in a
data directory, where every acknowledged write survives a crash and, by default, a
loss of power. It serves the well-known development account devstoreaccount1, unless
other accounts are given. When it accepts connections, it prints one line with its
address and, for the well-known account, the connection string. It stops on Ctrl-C or
SIGTERM: on the first signal when the requests in flight are complete, on the second
signal at once.";

const EXAMPLES: &str = r#"Examples:
  On the default port, which the development connection string of every client uses:

    tablesdk-server

    Python  TableServiceClient.from_connection_string("UseDevelopmentStorage=true")
    .NET    new TableServiceClient("UseDevelopmentStorage=true")

  On a free port, which the printed line contains:

    tablesdk-server --port 0

  With tables that survive a restart:

    tablesdk-server --data ./tables

  For other machines on the network, with its own accounts and HTTPS:

    tablesdk-server --host 0.0.0.0 --data ./tables --account-file ./accounts \
      --tls-cert cert.pem --tls-key key.pem

  With one line on standard error for each request, without keys and signatures:

    tablesdk-server --log info"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(flags: &[&str]) -> Result<Flags, clap::Error> {
        let words = [NAME].iter().chain(flags);
        Ok(Flags::from(&command().try_get_matches_from(words)?))
    }

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn listens_where_emulators_do() {
        let flags = flags(&[]).unwrap();
        assert_eq!(
            (flags.host.to_string(), flags.port),
            ("127.0.0.1".to_owned(), 10002)
        );
    }

    #[test]
    fn names_the_flag_that_is_wrong() {
        for (wrong, named) in [
            (&["--port", "65536"], "--port"),
            (&["--host", "localhost"], "--host"),
            (&["--log", "tablesdk_server=loud"], "--log"),
            (&["--log-format", "xml"], "--log-format"),
            (&["--shutdown-grace", "3601"], "--shutdown-grace"),
            (&["--durability", "full"], "--durability"),
        ] {
            let error = flags(wrong).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn logs_what_it_is_told_to() {
        use tracing::Level;

        let request = "tablesdk_server::request";
        let logs = |words: &[&str], level| {
            let flags = flags(words).unwrap();
            flags.log.would_enable(request, &level)
        };
        assert!(logs(&[], Level::WARN));
        assert!(!logs(&[], Level::INFO));
        assert!(!logs(&["--log", "off"], Level::ERROR));
        assert!(logs(&["--log", "info"], Level::INFO));
        let by_part = ["--log", "error,tablesdk_server::request=info"];
        assert!(logs(&by_part, Level::INFO));
    }

    #[test]
    fn the_well_known_key_is_refused_on_a_public_address_whatever_account_has_it() {
        let accounts = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
            Accounts::new(accounts::all(&texts, None, None).unwrap())
        };
        let renamed = format!("orders:{}", accounts::WELL_KNOWN_KEY);
        let well_known = [
            accounts(&[]),
            accounts(&[&renamed]),
            accounts(&["other:c2VjcmV0", &renamed]),
        ];
        let own = accounts(&["devstoreaccount1:c2VjcmV0"]);
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            let flags = flags(&["--host", host]).unwrap();
            for accounts in &well_known {
                assert!(flags.check_host(accounts).is_ok(), "{host}");
            }
        }
        for host in ["0.0.0.0", "::", "192.168.1.1"] {
            let refused = flags(&["--host", host]).unwrap();
            let allowed = flags(&["--host", host, "--allow-well-known-key"]).unwrap();
            for accounts in &well_known {
                let refusal = refused.check_host(accounts).unwrap_err();
                assert!(refusal.contains("--allow-well-known-key"), "{refusal}");
                assert!(allowed.check_host(accounts).is_ok(), "{host}");
            }
            assert!(refused.check_host(&own).is_ok(), "{host}");
        }
    }

    #[test]
    fn is_durable_only_when_told_where() {
        let data = |words: &[&str]| {
            let flags = flags(words).unwrap();
            (flags.data, flags.durability)
        };
        assert_eq!(data(&[]), (None, Durability::Sync));
        let folder = || Some(PathBuf::from("x"));
        assert_eq!(data(&["--data", "x"]), (folder(), Durability::Sync));
        let relaxed = ["--data", "x", "--durability", "relaxed"];
        assert_eq!(data(&relaxed), (folder(), Durability::Relaxed));
        assert!(flags(&["--durability", "relaxed"]).is_err());
    }

    #[test]
    fn says_which_flag_helps() {
        let error = io::Error::from(io::ErrorKind::AddrInUse);
        assert!(with_advice(&error).contains("--port 0"));
    }
}
