//! Everything about a server that can be chosen, in one place and as typed values.
//!
//! Reads no environment and opens nothing: [`Builder::start`] and [`Builder::in_process`] hand the values on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tablesdk_protocol::Clock;
use tablesdk_protocol::auth::SharedKey;

use crate::TableServer;
use crate::clock::SystemClock;

/// Chooses what a [`TableServer`] is like; made by [`TableServer::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tablesdk_protocol::auth::SharedKey;
/// use tablesdk_server::TableServer;
///
/// let server = TableServer::builder()
///     .account(SharedKey::new("orders", "c2VjcmV0")?)
///     .start()
///     .await?;
/// assert!(server.endpoint().ends_with("/orders"));
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
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            accounts: Vec::new(),
            clock: Arc::new(SystemClock),
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

    /// Starts a server that listens on a socket. The port is bound when this returns.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound. The kind says why, such as [`io::ErrorKind::AddrInUse`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn start(self) -> io::Result<TableServer> {
        let address = SocketAddr::new(self.host, self.port);
        TableServer::listening(address, self.options()).await
    }

    /// Makes a server without a socket, which is reached through [`TableServer::transport`].
    pub fn in_process(self) -> TableServer {
        TableServer::without_socket(self.options())
    }

    fn options(mut self) -> Options {
        if self.accounts.is_empty() {
            self.accounts.push(random_account());
        }
        Options {
            accounts: self.accounts,
            clock: self.clock,
        }
    }
}

/// What the layers behind the sockets get to know.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// At least one.
    pub(crate) accounts: Vec<SharedKey>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The development account's name, since tools expect it, with a key of its own: a client that is aimed at the wrong server
/// fails loudly.
fn random_account() -> SharedKey {
    let mut key = vec![0; KEY_BYTES];
    getrandom::fill(&mut key).expect("the operating system gives random bytes");
    SharedKey::from_bytes(DEFAULT_ACCOUNT, key)
}

const DEFAULT_ACCOUNT: &str = "devstoreaccount1";
/// As long as the keys of the service.
const KEY_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_its_own_key() {
        let key = || Builder::new().options().accounts[0].expose();
        assert_eq!(key().len(), 88);
        assert_ne!(key(), key());
    }

    #[test]
    fn a_chosen_account_replaces_the_default_one() {
        let account = |name| SharedKey::new(name, "c2VjcmV0").unwrap();
        let builder = Builder::new().account(account("a")).account(account("b"));
        let options = builder.options();
        let names: Vec<&str> = options.accounts.iter().map(SharedKey::account).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn debug_tells_no_key() {
        let builder = Builder::new().account(SharedKey::new("acct", "c2VjcmV0").unwrap());
        let text = format!("{builder:?} {:?}", builder.clone().options());
        assert!(text.contains("acct"), "{text}");
        assert!(
            !text.contains("c2VjcmV0") && !text.contains("secret"),
            "{text}"
        );
    }
}
