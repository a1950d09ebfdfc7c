//! Everything about a server that can be chosen, in one place and as typed values.
//!
//! Reads no environment and opens nothing: [`Builder::start`] and [`Builder::in_process`] hand the values on.

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

use crate::access::Tokens;
use crate::clock::SystemClock;
use crate::engine::Paging;
#[cfg(feature = "durable")]
use crate::storage::Durability;
use crate::storage::StorageOptions;
#[cfg(feature = "tls")]
use crate::tls::TlsIdentity;
use crate::{TableServer, TokenVerifier};

/// Chooses what a [`TableServer`] is like; made by [`TableServer::builder`].
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
pub struct Builder {
    host: IpAddr,
    port: u16,
    accounts: Vec<SharedKey>,
    clock: Arc<dyn Clock>,
    paging: Paging,
    storage: StorageOptions,
    table_name_hold: Duration,
    tokens: Tokens,
    max_connections: NonZeroUsize,
    shutdown_grace: Duration,
    admin_port: Option<u16>,
    #[cfg(feature = "tls")]
    tls: Option<TlsIdentity>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            accounts: Vec::new(),
            clock: Arc::new(SystemClock),
            paging: Paging::default(),
            storage: StorageOptions::default(),
            table_name_hold: Duration::ZERO,
            tokens: Tokens::default(),
            max_connections: CONNECTIONS_MAX,
            shutdown_grace: SHUTDOWN_GRACE,
            admin_port: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The address to listen on: `127.0.0.1` unless chosen. Without effect on a server without a socket.
    pub const fn host(mut self, host: IpAddr) -> Self {
        self.host = host;
        self
    }

    /// The port to listen on; 0, as it is unless chosen, takes a free one. Without effect on a server without a socket.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Adds an account, in the place of the default one: `devstoreaccount1` with a random key.
    ///
    /// A name is 3 to 24 lower-case letters and digits, as it is part of a host name; another one is refused by
    /// [`Builder::start`] and [`Builder::in_process`]. The same name twice is one account with two keys.
    ///
    /// Repeat it for more accounts. The first one is the account of [`TableServer::endpoint`],
    /// [`TableServer::credential`] and [`TableServer::connection_string`].
    pub fn account(mut self, account: SharedKey) -> Self {
        self.accounts.push(account);
        self
    }

    /// The clock that stamps entities and checks the dates of requests: the system's unless chosen.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Keeps the tables in a folder, which is made if it is not there; without one they are in memory, and gone with the
    /// server.
    ///
    /// A write that was acknowledged survives as much as [`Durability`] says. One server at a time can have a folder open;
    /// what it holds need not fit in memory.
    #[cfg(feature = "durable")]
    pub fn data(mut self, folder: impl Into<PathBuf>, durability: Durability) -> Self {
        self.storage = StorageOptions::Folder(folder.into(), durability);
        self
    }

    /// For how long the name of a deleted table stays taken: not at all unless chosen.
    ///
    /// The service needs 40 seconds or more until a table is gone. Until then, creating one of the same name is refused as
    /// `TableBeingDeleted`; for everything else there is no such table any more. The time is that of [`Builder::clock`].
    pub const fn deleted_table_name_hold(mut self, duration: Duration) -> Self {
        self.table_name_hold = duration;
        self
    }

    /// Takes bearer tokens, and lets this decide what each is good for. Unless chosen, every token is refused.
    ///
    /// Tokens that anybody on their way could read are refused, as the service does, unless the server encrypts or
    /// [`Builder::tokens_over_http`] is chosen. [`TokenVerifier`] has an example.
    pub fn token_verifier(mut self, verifier: impl TokenVerifier + 'static) -> Self {
        self.tokens.verifier = Some(Arc::new(verifier));
        self
    }

    /// Takes tokens over connections that are not encrypted: for tests, and behind a proxy that speaks TLS with the clients.
    pub const fn tokens_over_http(mut self) -> Self {
        self.tokens.over_http = true;
        self
    }

    /// The most connections at a time: 10,000 unless chosen. Without effect on a server without a socket.
    ///
    /// The limit of open files of the process (`RLIMIT_NOFILE`) bounds them as well: each connection is an open file, and some files
    /// are left for the data directory. The library leaves that limit as it is; the program `tablesdk-server` raises it where it may.
    ///
    /// When all connections are taken, a new one takes the place of one that waits for a request: unauthenticated connections are
    /// closed first, then the one that has waited longest. Where none waits, the new one does.
    pub const fn max_connections(mut self, connections: NonZeroUsize) -> Self {
        self.max_connections = connections;
        self
    }

    /// How long [`TableServer::shutdown`] waits for requests under way before it cuts them off: ten seconds unless chosen.
    /// Without effect on a server without a socket.
    pub const fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// Speaks HTTPS, and no HTTP, with this certificate. [`TableServer::endpoint`] then begins with `https`; the certificate should
    /// be one of its host. Without effect on a server without a socket, and on the [`admin_port`](Self::admin_port).
    ///
    /// Whoever sends HTTP is not answered. A certificate is renewed by a new start of the server.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.tls = Some(identity);
        self
    }

    /// Listens for operators on this port of `127.0.0.1`; 0 takes a free one, which [`TableServer::admin_addr`] tells. Unless
    /// chosen, there is none. Without effect on a server without a socket.
    ///
    /// `GET /health` answers while the server does, `GET /ready` with 503 once nothing can be written any more, `GET /metrics`
    /// in the text form of Prometheus, and `POST /backup` with a backup of everything, as
    /// [`TableServer::backup`] writes it. Nobody is asked who they are: whoever can reach the loopback address of this machine
    /// can read all tables there. Web pages cannot.
    pub const fn admin_port(mut self, port: u16) -> Self {
        self.admin_port = Some(port);
        self
    }

    /// The most entities of a page: 1,000 unless chosen, as the service has it. Taken as the nearest number from 1 to 1,000.
    ///
    /// A small number shows with few entities whether a client follows continuation tokens.
    pub fn max_page_entities(mut self, count: usize) -> Self {
        self.paging.entities_max = count.clamp(1, PAGE_ITEMS_MAX);
        self
    }

    /// Puts an empty page with a continuation token before each page of entities.
    ///
    /// The service answers so, rarely, when it has looked for a while and found nothing. A client that takes an empty page for
    /// the end loses entities.
    pub const fn empty_pages(mut self) -> Self {
        self.paging.empty_pages = true;
        self
    }

    /// Ends a page of entities where its partition ends.
    ///
    /// The service does so where the data of a table continues on another machine. The continuation token then names a
    /// partition and no row: `NextRowKey` is absent, and must not be sent back as an empty one.
    pub const fn page_per_partition(mut self) -> Self {
        self.paging.page_per_partition = true;
        self
    }

    /// How long a query may look for entities or tables until it answers with what it has found, and a continuation token:
    /// five seconds unless chosen, as the service has it.
    ///
    /// With [`Duration::ZERO`], a query looks at a single one, wanted or not.
    pub const fn max_query_time(mut self, duration: Duration) -> Self {
        self.paging.max_query_time = duration;
        self
    }

    /// Starts a server that listens on a socket. The port is bound when this returns.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound: the kind says why, such as [`io::ErrorKind::AddrInUse`]. When an account has a name
    /// that none can have, which is [`io::ErrorKind::InvalidInput`]. Or when the folder of the data cannot be used.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn start(self) -> io::Result<TableServer> {
        let sockets = Sockets {
            address: SocketAddr::new(self.host, self.port),
            max_connections: self.max_connections,
            shutdown_grace: self.shutdown_grace,
            admin_port: self.admin_port,
            #[cfg(not(feature = "tls"))]
            scheme: "http",
            #[cfg(feature = "tls")]
            scheme: if self.tls.is_some() { "https" } else { "http" },
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        };
        TableServer::listening(sockets, self.options()?).await
    }

    /// Makes a server without a socket, which is reached through [`TableServer::transport`].
    ///
    /// # Errors
    ///
    /// When an account has a name that none can have ([`io::ErrorKind::InvalidInput`]), or the folder of the data cannot be used.
    pub fn in_process(self) -> io::Result<TableServer> {
        TableServer::without_socket(self.options()?)
    }

    fn options(mut self) -> io::Result<Options> {
        if self.accounts.is_empty() {
            self.accounts.push(random_account());
        }
        for account in &self.accounts {
            check_account(account.account())?;
        }
        Ok(Options {
            accounts: self.accounts,
            clock: self.clock,
            paging: self.paging,
            storage: self.storage,
            table_name_hold: self.table_name_hold,
            tokens: self.tokens,
        })
    }
}

/// What the layer of the sockets gets to know.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    pub(crate) address: SocketAddr,
    pub(crate) max_connections: NonZeroUsize,
    pub(crate) shutdown_grace: Duration,
    pub(crate) admin_port: Option<u16>,
    /// How clients begin the URL of the server.
    pub(crate) scheme: &'static str,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsIdentity>,
}

/// What the layers behind the sockets get to know.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// At least one.
    pub(crate) accounts: Vec<SharedKey>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) paging: Paging,
    pub(crate) storage: StorageOptions,
    /// For how long the name of a deleted table stays taken.
    pub(crate) table_name_hold: Duration,
    pub(crate) tokens: Tokens,
}

/// Refuses a name that could not be part of a host name, or could be taken for something else there.
pub(crate) fn check_account(name: &str) -> io::Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if ACCOUNT_NAME_LENGTHS.contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(());
    }
    let message =
        format!("the account name {name:?} is not made of 3 to 24 lower-case letters and digits");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// The development account's name, since tools expect it, with a key of its own: a client that is aimed at the wrong server
/// fails loudly.
fn random_account() -> SharedKey {
    let mut key = vec![0; KEY_BYTES];
    getrandom::fill(&mut key).expect("the operating system gives random bytes");
    SharedKey::from_bytes(DEFAULT_ACCOUNT, key)
}

const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
const DEFAULT_ACCOUNT: &str = "devstoreaccount1";
/// How long the name of an account may be.
const ACCOUNT_NAME_LENGTHS: RangeInclusive<usize> = 3..=24;
/// As long as the keys of the service.
const KEY_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_its_own_key() {
        let key = || Builder::new().options().unwrap().accounts[0].expose();
        assert_eq!(key().len(), 88);
        assert_ne!(key(), key());
    }

    #[test]
    fn a_chosen_account_replaces_the_default_one() {
        let account = |name| SharedKey::new(name, "c2VjcmV0").unwrap();
        let builder = Builder::new();
        let builder = builder.account(account("one")).account(account("two"));
        let options = builder.options().unwrap();
        let names: Vec<&str> = options.accounts.iter().map(SharedKey::account).collect();
        assert_eq!(names, ["one", "two"]);
    }

    #[test]
    fn an_account_has_a_name_that_a_host_can_have() {
        let start = |name: &str| {
            let account = SharedKey::new(name, "c2VjcmV0").unwrap();
            Builder::new().account(account).in_process()
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
    fn debug_tells_no_key() {
        let builder = Builder::new().account(SharedKey::new("acct", "c2VjcmV0").unwrap());
        let text = format!("{builder:?} {:?}", builder.clone().options().unwrap());
        assert!(text.contains("acct"), "{text}");
        assert!(
            !text.contains("c2VjcmV0") && !text.contains("secret"),
            "{text}"
        );
    }
}
