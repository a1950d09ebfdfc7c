//! Runs the server with the options of the command line until a signal stops it.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use tablesdk_server::testing::Flavor;
use tablesdk_server::{Durability, Guid, TableServer, TlsIdentity, TokenGrant};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::accounts::{self, Accounts};
use super::log::LOG;
use super::options::{LogFormat, ServeOptions};
use super::{NAME, open_files, signals};

pub(crate) fn run(options: &ServeOptions) -> Result<(), Box<dyn Error>> {
    // Read once, and before signals are caught: a file may be a pipe, which can be read only once
    // and may block.
    let accounts = accounts(options)?;
    let tls = tls(options)?;
    check_host(options, &accounts)?;
    check_endpoints(options, &accounts)?;
    start_log(options)?;
    open_files::raise(options.max_connections);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve(options, accounts, tls));
    // Computations that still run had the time of the shutdown.
    runtime.shutdown_background();
    LOG.finish();
    result
}

/// From here on, events that pass the filter are written to standard error.
fn start_log(options: &ServeOptions) -> Result<(), Box<dyn Error>> {
    LOG.start()?;
    let layer = fmt::layer().with_writer(|| &LOG);
    let layer = match options.log_format {
        LogFormat::Json => layer.json().boxed(),
        LogFormat::Text => layer.boxed(),
    };
    let layer = layer.with_filter(options.log.clone());
    Ok(tracing_subscriber::registry().with(layer).try_init()?)
}

async fn serve(
    options: &ServeOptions,
    accounts: Accounts,
    tls: Option<TlsIdentity>,
) -> Result<(), Box<dyn Error>> {
    // Before the server announces itself: from then on it may get a signal to stop.
    let stop = signals::listen(options.exit_with_stdin)?;
    let mut builder = TableServer::builder()
        .flavor(options.flavor)
        .log_requests_at_info()
        .host(options.host)
        .port(options.port)
        .max_connections(options.max_connections)
        .shutdown_grace(Duration::from_secs(options.shutdown_grace));
    for account in accounts.keys {
        builder = builder.account(account);
    }
    if options.log_without_entity_keys {
        builder = builder.log_without_entity_keys();
    }
    if let Some(port) = options.admin_port {
        builder = builder.admin_port(port);
    }
    if options.test {
        builder = builder.test_kit();
    }
    if options.accept_any_token {
        // A user of zeros, so that clients get user delegation keys.
        let grant = TokenGrant::all().of_user(Guid::default(), Guid::default());
        let accept = move |_: &str, _: &str| Ok(grant);
        builder = builder.token_verifier(accept).tokens_over_http();
    }
    if let Some(identity) = tls {
        builder = builder.tls(identity);
    }
    if let Some(directory) = &options.data {
        builder = builder.data(directory, options.durability);
    }
    let store = store(options)?;
    let has_store = store.is_some();
    if let Some(url) = store {
        builder = builder.postgres(url);
    }
    if let Some(count) = options.store_connections {
        if !has_store {
            return Err("--store-connections is for a database: give its URL with --store".into());
        }
        builder = builder.max_database_connections(count);
    }
    let server = builder.start().await.map_err(|error| with_advice(&error))?;
    if let (Some(path), Some(address)) = (&options.port_file, server.local_addr()) {
        let written = write_port(path, address.port());
        written.map_err(|error| format!("--port-file {}: {error}", path.display()))?;
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        endpoint = %server.endpoint(),
        operators = server.admin_addr().map(tracing::field::display),
        has_store,
        data = options.data.as_deref().map(|data| tracing::field::display(data.display())),
        "started"
    );
    let mut stdout = io::stdout();
    if let (true, Some(operators)) = (options.test, server.admin_addr()) {
        let line = serde_json::json!({
            "endpoint": server.endpoint(),
            "connectionString": connection_string(&server, options),
            "test": format!("http://{operators}/test"),
        });
        let _ = writeln!(stdout, "{line}");
    } else {
        announce(&server, options, accounts.is_default, &mut stdout);
    }
    let _ = stdout.flush();
    // If the sender was dropped, the server stops, too.
    let _ = stop.await;
    tracing::info!("stopping: no new connections");
    let stopped = server.shutdown().await;
    if let Some(path) = &options.port_file {
        // The file may have been removed.
        let _ = std::fs::remove_file(path);
    }
    stopped?;
    tracing::info!("stopped");
    Ok(())
}

/// Prints the addresses of the server.
fn announce(
    server: &TableServer,
    options: &ServeOptions,
    has_default_account: bool,
    stdout: &mut io::Stdout,
) {
    // An error is ignored: if standard output is closed, no program reads the line.
    let _ = if has_default_account {
        let text = connection_string(server, options);
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
}

/// The connection string of the first account, with the other services that the options name.
fn connection_string(server: &TableServer, options: &ServeOptions) -> String {
    let mut text = server.connection_string();
    for (key, url) in others(options) {
        text.extend([key, "Endpoint=", url, ";"]);
    }
    text
}

fn others(options: &ServeOptions) -> impl Iterator<Item = (&'static str, &str)> {
    let others = [
        ("Blob", &options.blob_endpoint),
        ("Queue", &options.queue_endpoint),
    ];
    others
        .into_iter()
        .filter_map(|(key, url)| Some((key, url.as_deref()?)))
}

/// Refuses URLs of other services if no connection string is printed.
fn check_endpoints(options: &ServeOptions, accounts: &Accounts) -> Result<(), String> {
    if accounts.is_default || options.test || others(options).next().is_none() {
        return Ok(());
    }
    Err("--blob-endpoint and --queue-endpoint are for the connection string that is printed, and with accounts of your own none is printed: leave them out".to_owned())
}

/// Writes the port to a file by renaming a draft, so that a program that waits for the file never
/// reads a partial number.
fn write_port(path: &Path, port: u16) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, format!("{port}\n"))?;
    std::fs::rename(draft, path)
}

/// The accounts that are given, or the well-known one.
#[expect(
    clippy::disallowed_methods,
    reason = "the program reads its environment, the library does not"
)]
fn accounts(options: &ServeOptions) -> Result<Accounts, String> {
    let environment = match std::env::var(accounts::VARIABLE) {
        Ok(text) => Some(text),
        Err(std::env::VarError::NotPresent) => None,
        Err(error) => return Err(format!("{}: {error}", accounts::VARIABLE)),
    };
    let keys = accounts::all(
        &options.account,
        options.account_file.as_deref(),
        environment.as_deref(),
    )?;
    Ok(Accounts::new(keys))
}

/// The URL of the database, if there is one.
#[expect(
    clippy::disallowed_methods,
    reason = "the program reads its environment, the library does not"
)]
fn store(options: &ServeOptions) -> Result<Option<String>, String> {
    if options.store.is_some() {
        return Ok(options.store.clone());
    }
    match std::env::var(STORE_VARIABLE) {
        Ok(_) if is_for_one_server(options) => Err(format!(
            "{STORE_VARIABLE} is set: --data, --durability, --flavor and --test are for tables that no other server uses"
        )),
        Ok(url) if url.is_empty() => Err(format!("{STORE_VARIABLE} is empty")),
        Ok(url) => Ok(Some(url)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(format!("{STORE_VARIABLE}: {error}")),
    }
}

fn is_for_one_server(options: &ServeOptions) -> bool {
    options.data.is_some()
        || options.test
        || options.flavor != Flavor::Storage
        || options.durability != Durability::Sync
}

fn tls(options: &ServeOptions) -> Result<Option<TlsIdentity>, String> {
    let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) else {
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

/// Refuses credentials that everybody has on an address that other machines can reach: any token,
/// and the well-known key of any account.
fn check_host(options: &ServeOptions, accounts: &Accounts) -> Result<(), String> {
    // `is_loopback` does not recognize an IPv4 address in the form of IPv6.
    if options.host.to_canonical().is_loopback() {
        return Ok(());
    }
    if options.accept_any_token {
        return Err(format!(
            "refuses to listen on {}: with --accept-any-token, any client that can reach this address could read and change all \
             data; listen on 127.0.0.1, or leave the option out",
            options.host
        ));
    }
    if options.allow_well_known_key {
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
        options.host
    ))
}

/// The environment variable with the URL of a database.
const STORE_VARIABLE: &str = "TABLESDK_SERVER_STORE";

/// Adds the option that helps, if there is one.
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::program::options::Arguments;

    fn options(words: &[&str]) -> ServeOptions {
        let words = [NAME].iter().chain(words);
        Arguments::try_parse_from(words).unwrap().serve
    }

    #[test]
    fn the_well_known_key_is_refused_on_a_public_address() {
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
            let options = options(&["--host", host]);
            for accounts in &well_known {
                assert!(check_host(&options, accounts).is_ok(), "{host}");
            }
        }
        for host in ["0.0.0.0", "::", "192.168.1.1"] {
            let refused = options(&["--host", host]);
            let allowed = options(&["--host", host, "--allow-well-known-key"]);
            for accounts in &well_known {
                let refusal = check_host(&refused, accounts).unwrap_err();
                assert!(refusal.contains("--allow-well-known-key"), "{refusal}");
                assert!(check_host(&allowed, accounts).is_ok(), "{host}");
            }
            assert!(check_host(&refused, &own).is_ok(), "{host}");
        }
    }

    #[test]
    fn any_token_is_refused_on_a_public_address() {
        let own =
            Accounts::new(accounts::all(&["orders:c2VjcmV0".to_owned()], None, None).unwrap());
        let check = |host| check_host(&options(&["--accept-any-token", "--host", host]), &own);
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(check(host).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.1.1"] {
            let refusal = check(host).unwrap_err();
            assert!(refusal.contains("--accept-any-token"), "{refusal}");
        }
        let allowed = options(&[
            "--accept-any-token",
            "--host",
            "::",
            "--allow-well-known-key",
        ]);
        assert!(check_host(&allowed, &own).is_err(), "that is for the key");
    }

    #[test]
    fn errors_name_the_option_that_helps() {
        let error = io::Error::from(io::ErrorKind::AddrInUse);
        assert!(with_advice(&error).contains("--port 0"));
    }
}
