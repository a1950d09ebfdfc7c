//! [`TableServer`]: the handle to a running server, its listening socket and its shutdown.
//!
//! This module accepts connections and passes each to `http/mod.rs`; the service processes the
//! requests. All tasks run on the caller's runtime and belong to the handle: no task outlives it.

mod admin;
mod builder;
mod each_request;
#[cfg_attr(not(feature = "network"), path = "open_files_unlimited.rs")]
mod open_files;
mod state;
mod test_port;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, StatusCode};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::{
    Clock, Endpoint, ErrorCode, InProcessServer, Transport, TransportError, TransportFuture,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use self::admin::Admin;
use self::builder::Sockets;
pub use self::builder::TableServerBuilder;
pub use self::each_request::{EachRequest, RunWithFault};
use self::open_files::ConnectionLimit;
pub use self::state::ServerSnapshot;
use self::test_port::TestPort;
use crate::http::{ConnectionShared, exceeds_limit, serve, stopped, to_origin_form};
use crate::request::connection::{Broken, Connection};
use crate::request::handler::Handler;
use crate::service::{Options, Service};
use crate::testing::{Faults, Journal, Partitions, VirtualClock};
use crate::time::time_limit::Timer;

/// A table server in this process, with a listening socket or without one.
///
/// Dropping it closes the server's connections at once and frees its port;
/// [`TableServer::shutdown`] first completes the requests in flight. Tables in a data directory are
/// then available to the next server that opens it. Tables in memory are lost after a shutdown.
/// After a drop, they are lost with the last [transport](TableServer::transport) of the server: a
/// client without a socket keeps its server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use tablesdk_server::TableServer;
///
/// let server = TableServer::start().await?;
/// assert!(server.endpoint().starts_with("http://127.0.0.1:"));
/// server.shutdown().await
/// # }
/// ```
#[must_use = "a server stops when it is dropped"]
pub struct TableServer {
    account: SharedKey,
    clock: VirtualClock,
    endpoint: String,
    service: Arc<Service>,
    /// The state that the transports of this server share.
    in_process: Arc<InProcess>,
    stopping: watch::Sender<bool>,
    listener: Option<Listener>,
    admin: Option<Admin>,
}

impl TableServer {
    /// Starts a server on a free port of `127.0.0.1`, with the account `devstoreaccount1` and a
    /// random key. Because of the random key, a client that is configured for another server fails
    /// with an error.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    /// Creates a server without a socket. Clients reach it through [`TableServer::transport`]. It
    /// needs no runtime, and works while tokio's time is paused.
    pub fn in_process() -> Self {
        Self::builder()
            .in_process()
            .expect("the default account has a name as they are, and memory needs no opening")
    }

    /// Returns a builder, which configures for instance address, port, accounts and clock.
    pub fn builder() -> TableServerBuilder {
        TableServerBuilder::new()
    }

    /// The URL of the first account, for instance `http://127.0.0.1:41234/devstoreaccount1`.
    ///
    /// Without a socket, its host is one that never resolves ([RFC 2606]). A client without the
    /// transport of this server then fails to connect, and its error names this host.
    ///
    /// [RFC 2606]: https://www.rfc-editor.org/rfc/rfc2606#section-2
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The connection string of the first account, for clients over a socket: those of a server [in
    /// process](Self::in_process) need its transport. It contains the account's key.
    pub fn connection_string(&self) -> String {
        format!(
            "DefaultEndpointsProtocol={};AccountName={};AccountKey={};TableEndpoint={};",
            self.endpoint.split(':').next().unwrap_or_default(),
            self.account.account(),
            self.account.expose().as_str(),
            self.endpoint
        )
    }

    /// Name and key of the first account.
    pub fn credential(&self) -> SharedKey {
        self.account.clone()
    }

    /// A transport that sends requests to this server without a socket. It works for servers with
    /// and without a socket.
    ///
    /// The server receives the same requests as over a socket. A request to an `https` URL counts
    /// as encrypted. The transport keeps the server's tables in memory, also when the `TableServer`
    /// is dropped. After a [shutdown](Self::shutdown), and after the drop of a server with a data
    /// directory, every request fails as not sent.
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::<InProcess>::clone(&self.in_process)
    }

    /// The clock of the server: of timestamps, of the dates of requests, and of the expiry of
    /// signatures and tokens. A test can freeze and move it.
    ///
    /// A client in process uses this clock. A client over a socket uses that of the system, and if
    /// the two differ by more than 15 minutes, its requests are refused with
    /// `AuthenticationFailed`. `TableServiceClient::builder(…).clock(server.clock())` gives it this
    /// clock, and a server with [`TableServerBuilder::test_kit`] accepts both dates.
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// Injects faults into the requests to this server.
    pub fn faults(&self) -> Faults {
        self.service.kit().faults().clone()
    }

    /// Starts to record the requests to this server, until the returned value and its clones are
    /// dropped.
    pub fn journal(&self) -> Journal {
        self.service.kit().journal()
    }

    /// The partition map of a table of the first account: its ranges, which a test splits, merges
    /// and moves. The table need not exist yet. The server has no map, and ends no page because of
    /// one, until this is called.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the name is not a valid table name;
    /// [`io::ErrorKind::Unsupported`] with the flavor
    /// [`CosmosDb`](crate::testing::Flavor::CosmosDb), which has no ranges of keys.
    pub fn partitions(&self, table: &str) -> io::Result<Partitions> {
        let (faults, flavor) = (self.service.kit().faults(), self.service.flavor());
        Partitions::new(faults, &self.clock, flavor, self.account.account(), table)
    }

    /// The address the server listens on, `None` without a socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|listener| listener.local_addr)
    }

    /// The address of the listener for operators, `None` without an
    /// [`admin_port`](TableServerBuilder::admin_port).
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.local_addr)
    }

    /// Writes a backup of all durable data at this moment to a writer, such as a file, and returns
    /// the number of records. Requests continue in the meantime; their later writes are not in the
    /// backup.
    ///
    /// [`DataDirectory::restore`](crate::DataDirectory::restore) creates a data directory from it.
    /// This method blocks the thread and can take long: within an async runtime, call it in
    /// `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// When a record cannot be read, or the writer returns an error. The bytes written until then
    /// are not a usable backup.
    #[cfg(feature = "durable")]
    pub fn backup(&self, to: impl io::Write) -> io::Result<u64> {
        self.service.engine().back_up(to, |_| {})
    }

    /// Stops accepting connections, frees the port and completes the requests in flight. It returns
    /// when all connections are closed, all writes are durable, and the data directory, if there is
    /// one, is free for another server.
    ///
    /// It removes all [faults](Self::faults). Delayed requests are carried out at once, and those
    /// that were to be carried out later are dropped.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] in two cases:
    ///
    /// * Requests were not complete after the [grace period](TableServerBuilder::shutdown_grace),
    ///   ten seconds by default. They were aborted.
    /// * A request through a [`TableServer::transport`], which runs on the task of its caller,
    ///   still uses the data directory some seconds later. The data directory is then closed when
    ///   that request ends.
    pub async fn shutdown(mut self) -> io::Result<()> {
        self.stopping.send_replace(true);
        self.in_process.close();
        self.service.kit().stop();
        let drained = match self.listener.take() {
            Some(listener) => listener.drained().await,
            None => Ok(()),
        };
        if let Some(admin) = self.admin.take() {
            admin.end().await;
        }
        let closed = self.service.closed();
        match Handle::try_current() {
            Ok(runtime) if !closed.is_now() => {
                // The last writes and their sync block for a moment, so they run on a thread for
                // blocking work.
                runtime.spawn_blocking(move || drop(self));
                // A request that was aborted while it computed releases the service at the end of
                // its step.
                let _ = timeout(CLOSE_MAX, closed.clone().wait()).await;
            }
            // Without a runtime there are no other tasks to block, and there is no timer.
            _ => drop(self),
        }
        if closed.is_now() {
            return drained;
        }
        // The next program that opens the data directory would fail, so this is reported together
        // with any other error.
        let held = "a request in this process still holds the data directory, which is closed when it ends";
        let message = match drained {
            Ok(()) => held.to_owned(),
            Err(error) => format!("{error}, and {held}"),
        };
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }

    async fn listening(
        sockets: Sockets,
        options: Options,
        clock: VirtualClock,
    ) -> io::Result<Self> {
        let address = sockets.address;
        let in_context = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
        };
        let listener = bind(address).map_err(in_context)?;
        let local_addr = listener.local_addr()?;
        let authority = reachable(local_addr).to_string();
        let scheme = sockets.scheme();
        let account = first_account(&options);
        let host = HeaderValue::try_from(&authority).map_err(io::Error::other)?;

        // Opening a data directory blocks for a moment, so it runs on a thread for blocking work.
        let opening = spawn_blocking(move || {
            let service = Service::new(options)?.resumed(Timer::Runs);
            Ok::<_, io::Error>(Self::new(scheme, &authority, account, service, clock))
        });
        let mut server = opening.await.map_err(io::Error::other)??;
        let usable = server.service.reach_storage().await;
        usable.map_err(io::Error::other)?;
        let shared = ConnectionShared::new(Arc::clone(&server.service), host);
        #[cfg(feature = "tls")]
        let shared = shared.encrypted(sockets.tls.clone());
        let admin_port = sockets.admin_port;
        let test_port = sockets.has_test_port.then(|| {
            let service = Arc::clone(&server.service);
            TestPort::new(service, server.account.account(), server.clock.clone())
        });
        let listener = Listener::new(listener, local_addr, sockets, shared, &server.stopping);
        server.listener = Some(listener);
        if let Some(port) = admin_port {
            let stopping = server.stopping.subscribe();
            let admin = Admin::start(port, Arc::clone(&server.service), test_port, stopping);
            server.admin = Some(admin.await?);
        }
        Ok(server)
    }

    fn without_socket(options: Options, clock: VirtualClock) -> io::Result<Self> {
        let account = first_account(&options);
        Ok(Self::new(
            "http",
            IN_PROCESS_HOST,
            account,
            Service::new(options)?.resumed(Timer::Unknown),
            clock,
        ))
    }

    fn new(
        scheme: &str,
        authority: &str,
        account: SharedKey,
        service: Service,
        clock: VirtualClock,
    ) -> Self {
        let service = Arc::new(service);
        Self {
            endpoint: format!("{scheme}://{authority}/{}", account.account()),
            account,
            clock,
            in_process: Arc::new(InProcess::new(&service)),
            service,
            stopping: watch::Sender::new(false),
            listener: None,
            admin: None,
        }
    }
}

fn first_account(options: &Options) -> SharedKey {
    let account = options.accounts.first().cloned();
    account.expect("the builder gives at least one account")
}

impl Drop for TableServer {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        // The listener stops itself. A data directory must be free for the next server, even if a
        // transport lives on.
        if self.service.is_persistent() {
            self.in_process.close();
            self.service.kit().drop_held();
        }
    }
}

/// A client of this server needs no socket: see `TableServiceClient::in_process` of `tablesdk`.
impl InProcessServer for TableServer {
    fn endpoint(&self) -> Endpoint {
        let endpoint = self.endpoint.parse();
        endpoint.expect("the account's name was checked, and the authority is that of an address")
    }

    fn credential(&self) -> SharedKey {
        self.credential()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        self.transport()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock())
    }

    fn is_cosmos_db(&self) -> bool {
        self.service.flavor().is_cosmos_db()
    }
}

impl fmt::Debug for TableServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableServer")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The transport that calls the service, until transports must not use it any more.
struct InProcess(Mutex<Option<Arc<Service>>>);

impl InProcess {
    fn new(service: &Arc<Service>) -> Self {
        Self(Mutex::new(Some(Arc::clone(service))))
    }

    fn get(&self) -> Option<Arc<Service>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn close(&self) {
        let service = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the lock: closing the storage takes a moment.
        drop(service);
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let Some(service) = self.get() else {
                return Err(TransportError::not_sent(
                    "the server in this process has stopped: it was shut down, or it has a data directory and was dropped",
                ));
            };
            let (mut head, body) = request.into_parts();
            let is_head = head.method == Method::HEAD;
            let connection = Connection {
                is_encrypted: head.uri.scheme() == Some(&Scheme::HTTPS),
                ..Connection::default()
            };
            let mut response = match to_origin_form(&mut head, None) {
                Err(error) => service.refuse_head(&head, &connection, &error).await,
                Ok(()) => match service.admit(head, &connection).await {
                    Err(response) => *response,
                    Ok(admitted) if exceeds_limit(body.len()) => {
                        service.refuse(admitted, &ErrorCode::RequestBodyTooLarge.into())
                    }
                    Ok(admitted) => service.respond(admitted, body).await,
                },
            };
            if let Some(broken) = response.extensions().get::<Broken>() {
                return Err(TransportError::maybe_sent(*broken));
            }
            if is_head || response.status() == StatusCode::NO_CONTENT {
                // As on the wire, where such a response has no body.
                *response.body_mut() = Bytes::new();
            }
            Ok(response)
        })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

/// A listening socket and the task that serves its connections. Dropping it ends both.
struct Listener {
    local_addr: SocketAddr,
    socket: Arc<ClosableListener>,
    /// Returns the number of connections that were aborted.
    task: JoinHandle<usize>,
}

impl Listener {
    fn new<H: Handler>(
        listener: TcpListener,
        local_addr: SocketAddr,
        sockets: Sockets,
        shared: ConnectionShared<H>,
        stopping: &watch::Sender<bool>,
    ) -> Self {
        let socket = Arc::new(ClosableListener(Mutex::new(Some(listener))));
        let shared = Arc::new(shared);
        let accepting = accept_all(Arc::clone(&socket), sockets, shared, stopping.subscribe());
        Self {
            local_addr,
            socket,
            task: tokio::spawn(accepting),
        }
    }

    /// Waits until the listener has stopped, after `stopping` was set.
    async fn drained(mut self) -> io::Result<()> {
        self.socket.close();
        match (&mut self.task).await {
            Ok(0) => Ok(()),
            Ok(cut) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("requests on {cut} connections were cut off unanswered"),
            )),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.socket.close();
        // The connections belong to the task.
        self.task.abort();
    }
}

/// Like `TcpListener::bind`, but with a longer queue: a client whose connection does not fit into
/// the queue retries only after a second.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Elsewhere, it would let two programs listen on one port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE_LENGTH)
}

/// A listener that can be closed from outside the task that accepts from it. An aborted task drops
/// its values only when the runtime next polls it, but the port must be free when the server is
/// dropped.
struct ClosableListener(Mutex<Option<TcpListener>>);

impl ClosableListener {
    /// The next connection, `None` once the listener is closed.
    async fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        std::future::poll_fn(|context| match &*self.lock() {
            Some(listener) => listener.poll_accept(context).map(Some),
            None => std::task::Poll::Ready(None),
        })
        .await
    }

    fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TcpListener>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts until `stopping`, then waits for the connections. Returns the number of aborted
/// connections.
async fn accept_all<H: Handler>(
    listener: Arc<ClosableListener>,
    sockets: Sockets,
    shared: Arc<ConnectionShared<H>>,
    mut stopping: watch::Receiver<bool>,
) -> usize {
    let mut connections = JoinSet::new();
    let mut limit = ConnectionLimit::new(sockets.max_connections);
    let stopping_of_connection = stopping.clone();
    let serve = |(stream, peer): (TcpStream, SocketAddr)| {
        // A failure means that the client has closed the connection already; reading will return
        // that.
        let _ = stream.set_nodelay(true);
        let stopping = stopping_of_connection.clone();
        serve(stream, peer.ip(), Arc::clone(&shared), stopping)
    };
    // The accepted connection that waits for a free slot.
    let mut waiting = None;
    // Whether an idle connection was asked to close for it and may not have closed yet.
    let mut evicting = false;
    loop {
        if connections.len() < limit.max_connections
            && let Some(accepted) = waiting.take()
        {
            connections.spawn(serve(accepted));
        }
        let accepted = tokio::select! {
            () = stopped(&mut stopping) => break,
            // Takes in the ends of connections.
            Some(ended) = connections.join_next() => {
                log_panic(ended);
                evicting = false;
                continue;
            }
            () = shared.evict(), if waiting.is_some() && !evicting => {
                limit.log_reached();
                evicting = true;
                continue;
            }
            // No connection was idle, or the idle one has received a request and completes it
            // first. So another one is closed.
            () = sleep(EVICTION_RETRY_DELAY), if waiting.is_some() => {
                if !std::mem::take(&mut evicting) {
                    limit.log_reached();
                    shared.cut_stalled();
                }
                continue;
            }
            accepted = listener.accept(), if waiting.is_none() => accepted,
        };
        match accepted {
            None => break,
            Some(Ok(accepted)) => waiting = Some(accepted),
            Some(Err(error)) if concerns_one_connection(&error) => {}
            // Most likely there are too many open files. The connection is still queued, and
            // accepting it would fail at once again: an idle one has to end first.
            Some(Err(error)) => {
                limit.log_failure(&error);
                let ended = async {
                    shared.evict().await;
                    connections.join_next().await
                };
                tokio::select! {
                    () = stopped(&mut stopping) => break,
                    ended = timeout(ACCEPT_RETRY_DELAY, ended) => {
                        match ended {
                            Ok(ended) => ended.into_iter().for_each(log_panic),
                            Err(_) => shared.cut_stalled(),
                        }
                    }
                }
            }
        }
    }
    drop(waiting);
    let drained = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    let _ = timeout(sockets.shutdown_grace, drained).await;
    let cut = connections.len();
    // A request that computes does not notice the abort: its task is detached.
    let _ = timeout(CUT_OFF_MAX, connections.shutdown()).await;
    connections.detach_all();
    cut
}

/// Logs a panic of a connection's task. A panic closes only its own connection.
fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("a request made the server panic; its connection is closed");
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// The address at which a client on this machine reaches a listener. The unspecified address, on
/// which a server listens on all interfaces, is replaced by the loopback address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Never resolves, by RFC 2606. In error messages, it names the intended server.
const IN_PROCESS_HOST: &str = "in-process.invalid";
/// The maximum number of connections that the system queues until they are accepted.
const QUEUE_LENGTH: u32 = 1024;
/// How long an evicted connection may take to close before another one is evicted.
const EVICTION_RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long to wait after accepting failed because of missing resources.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long aborted connections may take to end.
const CUT_OFF_MAX: Duration = Duration::from_secs(1);
/// How long closing the storage may take.
const CLOSE_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
