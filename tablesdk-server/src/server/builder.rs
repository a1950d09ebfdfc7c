//! The configuration of a server as typed values.
//!
//! The builder reads no environment variables and opens nothing: [`TableServerBuilder::start`] and
//! [`TableServerBuilder::in_process`] pass the values on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
#[cfg(feature = "durable")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tablesdk_protocol::Clock;
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::TableServer;
use crate::engine::Paging;
use crate::flavor::Flavor;
#[cfg(feature = "tls")]
use crate::http::tls_identity::TlsIdentity;
use crate::request::auth::{TokenVerifier, Tokens};
use crate::service::Options;
#[cfg(feature = "durable")]
use crate::storage::Durability;
#[cfg(feature = "postgres")]
use crate::storage::PostgresOptions;
use crate::storage::StorageOptions;
use crate::testing::VirtualClock;
use crate::time::clock::SystemClock;

/// Configures a [`TableServer`]; returned by [`TableServer::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tablesdk_server::{SharedKey, TableServer};
///
/// let server = TableServer::builder()
///     .account(SharedKey::new("orders", "c2VjcmV0")?)
///     .start()
///     .await?;
/// assert!(server.endpoint().ends_with("/orders"));
///
/// // One that a client of pages, and of tables that are deleted, is tested with.
/// let awkward = TableServer::builder()
///     .max_page_entities(3)
///     .empty_pages()
///     .page_per_partition()
///     .max_query_time(Duration::from_millis(100))
///     .deleted_table_name_hold(Duration::from_secs(40))
///     .in_process()?;
/// # drop(awkward);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start` or `in_process`"]
pub struct TableServerBuilder {
    sockets: Sockets,
    options: Options,
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "postgres")]
    max_database_connections: Option<NonZeroUsize>,
}

impl TableServerBuilder {
    pub(super) fn new() -> Self {
        Self {
            sockets: Sockets {
                address: (Ipv4Addr::LOCALHOST, 0).into(),
                max_connections: CONNECTIONS_MAX,
                shutdown_grace: SHUTDOWN_GRACE,
                admin_port: None,
                has_test_port: false,
                #[cfg(feature = "tls")]
                tls: None,
            },
            options: Options {
                accounts: Vec::new(),
                clock: Arc::new(SystemClock),
                client_clock: None,
                socket_clock: None,
                flavor: Flavor::default(),
                logs_entity_keys: true,
                logs_requests_at_info: false,
                paging: Paging::default(),
                storage: StorageOptions::default(),
                table_name_hold: Duration::ZERO,
                tokens: Tokens::default(),
            },
            clock: None,
            #[cfg(feature = "postgres")]
            max_database_connections: None,
        }
    }

    /// The IP address to listen on. Default: `127.0.0.1`. Ignored for a server without a socket.
    pub const fn host(mut self, host: IpAddr) -> Self {
        self.sockets.address.set_ip(host);
        self
    }

    /// The port to listen on. Default: 0, which selects a free port. Ignored for a server without a
    /// socket.
    pub const fn port(mut self, port: u16) -> Self {
        self.sockets.address.set_port(port);
        self
    }

    /// Adds an account. It replaces the default account, which is `devstoreaccount1` with a random
    /// key.
    ///
    /// A name has 3 to 24 lower-case letters and digits, because it can be part of a host name.
    /// [`TableServerBuilder::start`] and [`TableServerBuilder::in_process`] refuse other names. Two
    /// calls with the same name add one account with two keys.
    ///
    /// Call it again for more accounts. [`TableServer::endpoint`], [`TableServer::credential`] and
    /// [`TableServer::connection_string`] are those of the first account.
    pub fn account(mut self, account: SharedKey) -> Self {
        self.options.accounts.push(account);
        self
    }

    /// The clock for the timestamps of entities and for checking the dates of requests.
    /// [`TableServer::clock`] freezes and moves it.
    ///
    /// Default: the system clock; in memory and without a socket, the system's time at the start,
    /// which passes as tokio's time does.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Stores the tables in a data directory, which is created if it does not exist. Without a data
    /// directory, the tables are in memory and are lost when the server stops.
    ///
    /// [`Durability`] determines which failures an acknowledged write survives. Only one server at
    /// a time can open a data directory. The data need not fit in memory.
    #[cfg(feature = "durable")]
    pub fn data(mut self, directory: impl Into<PathBuf>, durability: Durability) -> Self {
        self.options.storage = StorageOptions::Directory(directory.into(), durability);
        self
    }

    /// Stores the tables in a PostgreSQL database, or one that speaks its protocol. Any number of
    /// servers may use it at the same time, and all of them serve the same tables.
    ///
    /// The URL is that of [libpq]: `postgres://user:password@host/database`, with several hosts for
    /// a database that fails over, and with `sslmode` `disable`, `prefer` or `require`. With TLS,
    /// certificate and host are always verified; `sslrootcert` names a file with the certificates
    /// to trust instead of those of the system. The server creates its tables when they do not
    /// exist.
    ///
    /// All servers must have the same accounts and clocks that differ by less than some minutes.
    /// Without a connection to the database, requests get 503 `ServerBusy`. If the connection is
    /// lost while a write is committed, the connection of the client is closed without a response,
    /// because the write may be applied or not.
    ///
    /// [`start`](Self::start) connects at once and fails if the database cannot be used;
    /// [`in_process`](Self::in_process) connects with the first request, which needs a tokio
    /// runtime.
    ///
    /// [libpq]: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
    #[cfg(feature = "postgres")]
    pub fn postgres(mut self, url: impl Into<String>) -> Self {
        self.options.storage = StorageOptions::Postgres(PostgresOptions::new(url.into()));
        self
    }

    /// The maximum number of connections to the database of [`postgres`](Self::postgres). The
    /// default is 16.
    ///
    /// Requests that need one while all are in use wait for it up to five seconds. The database's
    /// `max_connections` bounds the sum over all servers.
    #[cfg(feature = "postgres")]
    pub const fn max_database_connections(mut self, connections: NonZeroUsize) -> Self {
        self.max_database_connections = Some(connections);
        self
    }

    /// How long the name of a deleted table stays reserved. Default: not at all.
    ///
    /// The service needs 40 seconds or more to delete a table. Until then, creating a table with
    /// the same name fails with `TableBeingDeleted`; for all other operations the table does not
    /// exist any more. [`TableServerBuilder::clock`] measures the time.
    pub const fn deleted_table_name_hold(mut self, duration: Duration) -> Self {
        self.options.table_name_hold = duration;
        self
    }

    /// Accepts bearer tokens; the verifier decides what each token permits. Without a verifier,
    /// every token is refused.
    ///
    /// Like the service, the server refuses tokens over unencrypted connections, unless
    /// [`TableServerBuilder::tokens_over_http`] is set. [`TokenVerifier`] has an example.
    pub fn token_verifier(mut self, verifier: impl TokenVerifier + 'static) -> Self {
        self.options.tokens.verifier = Some(Arc::new(verifier));
        self
    }

    /// Accepts tokens over unencrypted connections: for tests, and for a server behind a proxy that
    /// terminates TLS.
    pub const fn tokens_over_http(mut self) -> Self {
        self.options.tokens.over_http = true;
        self
    }

    /// The maximum number of simultaneous connections. Default: 10,000. Ignored for a server
    /// without a socket.
    ///
    /// With the feature `network`, the process's limit of open files (`RLIMIT_NOFILE`) also bounds
    /// the number: each connection is an open file, and some files are reserved for the data
    /// directory. The library does not change that limit; the program `tablesdk-server` raises it
    /// where it is permitted to.
    ///
    /// When the maximum is reached, with the feature `network` a new connection replaces an idle
    /// one, which waits for a request: unauthenticated connections are closed first, then the
    /// connection that has been idle longest. If no connection is idle, and without the feature,
    /// the new connection waits.
    pub const fn max_connections(mut self, connections: NonZeroUsize) -> Self {
        self.sockets.max_connections = connections;
        self
    }

    /// How long [`TableServer::shutdown`] waits for requests in flight before it aborts them.
    /// Default: ten seconds. Ignored for a server without a socket.
    pub const fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.sockets.shutdown_grace = grace;
        self
    }

    /// Serves HTTPS only, with this certificate. [`TableServer::endpoint`] then begins with
    /// `https`; the certificate should be valid for its host. Ignored for a server without a
    /// socket. The [`admin_port`](Self::admin_port) still serves HTTP.
    ///
    /// A client that sends HTTP gets no response. To renew a certificate, restart the server.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.sockets.tls = Some(identity);
        self
    }

    /// Leaves the keys of entities out of the log, which has the target `tablesdk_server::request`:
    /// of the URL of a request, the log then has neither what identifies an entity nor a filter,
    /// and of an error its code without the reason.
    ///
    /// By default, the log has the URLs of requests, and so the keys of entities, but no
    /// signatures. Account keys, signatures and tokens are never logged.
    pub const fn log_without_entity_keys(mut self) -> Self {
        self.options.logs_entity_keys = false;
        self
    }

    /// Logs each request at the level INFO, as the program `tablesdk-server` does. By default, a
    /// request has the level DEBUG, so that it does not appear between the lines of a test. What is
    /// wrong with the server is WARN or ERROR in any case.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk_server::TableServer;
    ///
    /// // A program that serves tables to others.
    /// let server = TableServer::builder().log_requests_at_info().start().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn log_requests_at_info(mut self) -> Self {
        self.options.logs_requests_at_info = true;
        self
    }

    /// Listens for operators on this port of `127.0.0.1`. 0 selects a free port, which
    /// [`TableServer::admin_addr`] returns. By default there is no such listener. Ignored for a
    /// server without a socket.
    ///
    /// * `GET /health` responds as long as the server runs.
    /// * `GET /ready` responds with 503 when writes are not possible any more.
    /// * `GET /metrics` returns metrics in the text format of Prometheus.
    /// * `POST /backup` returns a backup of all data, as `TableServer::backup` writes it.
    ///
    /// There is no authentication: a client that can reach the loopback address of this machine can
    /// read all tables. Web pages cannot, because requests with an origin or for another host are
    /// refused.
    pub const fn admin_port(mut self, port: u16) -> Self {
        self.sockets.admin_port = Some(port);
        self
    }

    /// Opens the kit for tests to other languages: faults, the journal, the clock and snapshots,
    /// with JSON below `/test/` on the [`admin_port`](Self::admin_port), which is a free port
    /// unless it is set. `GET /test/openapi.json` describes it. Ignored for a server without a
    /// socket.
    ///
    /// The requests to the server are recorded from its start on. When a test has moved the clock,
    /// requests may still have the date of the clock that it was moved from: clients in other
    /// languages use that of the system.
    pub const fn test_kit(mut self) -> Self {
        self.sockets.has_test_port = true;
        if self.sockets.admin_port.is_none() {
            self.sockets.admin_port = Some(0);
        }
        self
    }

    /// The service that the server behaves like, where a client can see a difference. Default:
    /// [`Flavor::Storage`]. The tables of a server with [`Flavor::CosmosDb`] are in memory.
    pub const fn flavor(mut self, flavor: Flavor) -> Self {
        self.options.flavor = flavor;
        self
    }

    /// The maximum number of entities in a page. Default: 1,000, as in the service. The value is
    /// clamped to 1 to 1,000.
    ///
    /// With a small page size, a test needs few entities to show whether a client follows
    /// continuation tokens.
    pub fn max_page_entities(mut self, count: usize) -> Self {
        self.options.paging.entities_max = count.clamp(1, PAGE_ITEMS_MAX);
        self
    }

    /// Returns an empty page with a continuation token before each page of entities.
    ///
    /// The service rarely does so, when it has searched for some time without a match. A client
    /// that treats an empty page as the end loses entities.
    pub const fn empty_pages(mut self) -> Self {
        self.options.paging.empty_pages = true;
        self
    }

    /// Ends a page of entities at the end of a partition.
    ///
    /// The service does so where the data of a table continues on another machine. The continuation
    /// token then names a partition and no row: `NextRowKey` is absent, and the client must not
    /// send it back as an empty value.
    pub const fn page_per_partition(mut self) -> Self {
        self.options.paging.page_per_partition = true;
        self
    }

    /// How long a query may search for entities or tables before it returns the results so far with
    /// a continuation token. Default: five seconds, as in the service.
    ///
    /// With [`Duration::ZERO`], a query examines a single entity or table per page, whether it
    /// matches or not.
    pub const fn max_query_time(mut self, duration: Duration) -> Self {
        self.options.paging.max_query_time = duration;
        self
    }

    /// Starts a server that listens on a socket. The port is bound when this returns.
    ///
    /// # Errors
    ///
    /// * The address cannot be bound: the kind is the reason, such as [`io::ErrorKind::AddrInUse`].
    /// * The name of an account is invalid: [`io::ErrorKind::InvalidInput`].
    /// * The data directory or the database cannot be used.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn start(mut self) -> io::Result<TableServer> {
        let clock = self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock));
        if self.sockets.has_test_port {
            // Clients in other languages date their requests by the system clock, also when a test
            // has moved that of the server.
            self.options.client_clock = Some(Arc::clone(&clock));
        }
        // hyper dates the responses that have no date.
        self.options.socket_clock = Some(Arc::new(SystemClock));
        let clock = VirtualClock::over(clock);
        self.options.clock = Arc::new(clock.clone());
        TableServer::listening(self.sockets.clone(), self.options()?, clock).await
    }

    /// Creates a server without a socket. Clients reach it through [`TableServer::transport`].
    ///
    /// # Errors
    ///
    /// When the name of an account is invalid ([`io::ErrorKind::InvalidInput`]), or the data
    /// directory cannot be used.
    pub fn in_process(mut self) -> io::Result<TableServer> {
        let clock = match self.clock.clone() {
            Some(clock) => VirtualClock::over(clock),
            None if self.options.storage.is_memory() => {
                VirtualClock::starting_at(SystemClock.now())
            }
            None => VirtualClock::over(Arc::new(SystemClock)),
        };
        self.options.clock = Arc::new(clock.clone());
        TableServer::without_socket(self.options()?, clock)
    }

    /// Adds the default account if there is none, and refuses invalid names of accounts.
    fn options(mut self) -> io::Result<Options> {
        if self.options.accounts.is_empty() {
            self.options.accounts.push(random_account());
        }
        #[cfg(feature = "postgres")]
        if let (StorageOptions::Postgres(options), Some(connections)) =
            (&mut self.options.storage, self.max_database_connections)
        {
            options.connections_max = connections;
        }
        for account in &self.options.accounts {
            check_account(account.account())?;
        }
        if self.options.flavor.stores_keys() && !self.options.storage.is_memory() {
            let message = "the flavor CosmosDb stores entities in another form, and only in memory";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(self.options)
    }
}

/// The options of the socket layer.
#[derive(Clone, Debug)]
pub(super) struct Sockets {
    pub(super) address: SocketAddr,
    pub(super) max_connections: NonZeroUsize,
    pub(super) shutdown_grace: Duration,
    pub(super) admin_port: Option<u16>,
    pub(super) has_test_port: bool,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<TlsIdentity>,
}

impl Sockets {
    /// The scheme of the server's URL.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, reason = "without TLS there is one scheme")
    )]
    pub(super) const fn scheme(&self) -> &'static str {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return "https";
        }
        "http"
    }
}

/// Refuses a name that cannot be part of a host name, or that would be ambiguous there.
fn check_account(name: &str) -> io::Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if ACCOUNT_NAME_LENGTHS.contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(());
    }
    let message =
        format!("the account name {name:?} is not made of 3 to 24 lower-case letters and digits");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// The name of the development account, because tools expect it, with a random key: a client that
/// connects to the wrong server fails with an authentication error.
fn random_account() -> SharedKey {
    let mut key = vec![0; KEY_BYTES];
    getrandom::fill(&mut key).expect("the operating system gives random bytes");
    SharedKey::from_bytes(DEFAULT_ACCOUNT, key)
}

const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
const DEFAULT_ACCOUNT: &str = "devstoreaccount1";
/// The allowed lengths of an account name.
const ACCOUNT_NAME_LENGTHS: RangeInclusive<usize> = 3..=24;
/// As long as the keys of the service.
const KEY_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_its_own_key() {
        let key = || TableServerBuilder::new().options().unwrap().accounts[0].expose();
        assert_eq!(key().len(), 88);
        assert_ne!(key(), key());
    }

    #[test]
    fn a_chosen_account_replaces_the_default_one() {
        let account = |name| SharedKey::new(name, "c2VjcmV0").unwrap();
        let builder = TableServerBuilder::new();
        let builder = builder.account(account("one")).account(account("two"));
        let options = builder.options().unwrap();
        let names: Vec<&str> = options.accounts.iter().map(SharedKey::account).collect();
        assert_eq!(names, ["one", "two"]);
    }

    #[test]
    fn account_names_are_valid_in_host_names() {
        let start = |name: &str| {
            let account = SharedKey::new(name, "c2VjcmV0").unwrap();
            TableServerBuilder::new().account(account).in_process()
        };
        for name in ["abc", "devstoreaccount1", "123", &"a".repeat(24)] {
            assert!(start(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "ab",
            "Acct",
            "a-b-c",
            "a.b",
            "a/b",
            "é1234",
            &"a".repeat(25),
        ] {
            let error = start(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        }
    }

    #[test]
    fn debug_output_has_no_keys() {
        let builder =
            TableServerBuilder::new().account(SharedKey::new("acct", "c2VjcmV0").unwrap());
        let text = format!("{builder:?} {:?}", builder.clone().options().unwrap());
        assert!(text.contains("acct"), "{text}");
        assert!(
            !text.contains("c2VjcmV0") && !text.contains("secret"),
            "{text}"
        );
    }
}
