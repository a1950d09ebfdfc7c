//! The standalone server: flags in, [`Builder`](tablesdk_server::Builder) out, then serve until told to stop.
//!
//! Prints one line on standard output once it can be reached, errors on standard error, and nothing else. Ends with 0 when it
//! was told to stop, with 1 when it cannot serve, with 2 when the flags are wrong.

use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_server::TableServer;

fn main() -> ExitCode {
    let flags = Flags::from(&command().get_matches());
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is closed, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), Box<dyn Error>> {
    flags.check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(flags))
}

async fn serve(flags: &Flags) -> Result<(), Box<dyn Error>> {
    // Before anybody is told that the server is there, and may tell it to stop.
    let told_to_stop = told_to_stop()?;
    let server = TableServer::builder()
        .host(flags.host)
        .port(flags.port)
        .account(SharedKey::new(WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY)?)
        .start()
        .await
        .map_err(|error| with_advice(&error))?;
    let mut stdout = io::stdout();
    // Whoever closed standard output does not wait for the line.
    let _ = writeln!(
        stdout,
        "{NAME} listens on {}, connection string: {}",
        server.endpoint(),
        server.connection_string()
    );
    let _ = stdout.flush();
    told_to_stop.await;
    Ok(server.shutdown().await?)
}

struct Flags {
    host: IpAddr,
    port: u16,
    allow_well_known_key: bool,
}

impl Flags {
    fn check(&self) -> Result<(), String> {
        // `is_loopback` knows no IPv4 address in the form of IPv6.
        if self.host.to_canonical().is_loopback() || self.allow_well_known_key {
            return Ok(());
        }
        Err(format!(
            "refuses to listen on {}: the account's key is the well-known one that every emulator uses, so that anybody who \
             reaches this address could read and change everything; if only people you trust can, for instance because it \
             is the inside of a container, repeat with --allow-well-known-key",
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
            allow_well_known_key: matches.get_flag("allow-well-known-key"),
        }
    }
}

fn command() -> Command {
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
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
                .help("The port to listen on; 0 takes a free one"),
        )
        .arg(
            Arg::new("allow-well-known-key")
                .long("allow-well-known-key")
                .action(ArgAction::SetTrue)
                .help("Let an address that others can reach be served with the well-known key"),
        )
}

/// Says which flag helps, where one does.
fn with_advice(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; something listens there already: choose another port with --port, or a free one with --port 0"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; this machine does not have that address: choose another with --host"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 are reserved: choose another with --port"
        }
        _ => "",
    };
    format!("{error}{advice}")
}

/// Registers for the signals at once; the future resolves when one of them has come.
#[cfg(unix)]
fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Registers for Ctrl-C at once; the future resolves when it has come.
#[cfg(windows)]
fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

const NAME: &str = "tablesdk-server";
const WELL_KNOWN_ACCOUNT: &str = "devstoreaccount1";
/// Public: every emulator of the service has it.
/// See <https://learn.microsoft.com/azure/storage/common/storage-connect-azurite>.
const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const ABOUT: &str = "\
An Azure Table storage server for development and tests, for the clients of any language.

It keeps its tables in memory: what it holds is gone when it stops. It serves the
well-known development account devstoreaccount1, prints one line with its address
and connection string once it can be reached, and stops on Ctrl-C or SIGTERM.";

const EXAMPLES: &str = r#"Examples:
  On the default port, every client's development connection string finds it:

    tablesdk-server

    Python  TableServiceClient.from_connection_string("UseDevelopmentStorage=true")
    .NET    new TableServiceClient("UseDevelopmentStorage=true")

  On a free port; the printed line says which:

    tablesdk-server --port 0"#;

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
        ] {
            let error = flags(wrong).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn the_well_known_key_stays_on_this_machine() {
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(flags(&["--host", host]).unwrap().check().is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.1.1"] {
            let refusal = flags(&["--host", host]).unwrap().check().unwrap_err();
            assert!(refusal.contains("--allow-well-known-key"), "{refusal}");
            let allowed = flags(&["--host", host, "--allow-well-known-key"]);
            assert!(allowed.unwrap().check().is_ok(), "{host}");
        }
    }

    #[test]
    fn says_which_flag_helps() {
        let error = io::Error::from(io::ErrorKind::AddrInUse);
        assert!(with_advice(&error).contains("--port 0"));
    }
}
