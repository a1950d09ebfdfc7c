//! The state that all workers share: the server as a process, the proxy, clients that use the proxy, a client that bypasses it, and
//! the ledger.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use harness::process::{Process, free_port, program};
use http::Request;
use tablesdk::transport::ReqwestTransport;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{RetryPolicy, SharedKey, TableClient, TableServiceClient};
use tokio::process::Command;
use tokio::sync::watch;

use crate::fault::Faults;
use crate::ledger::{Finding, Ledger};
use crate::proxy::{OPERATION_HEADER, Proxy};
use crate::record::Registry;

tokio::task_local! {
    /// The operation that a request belongs to.
    static OPERATION: u64;
}

/// HTTP, with the operation in a header of each request.
#[derive(Debug)]
struct Marked(ReqwestTransport);

impl Transport for Marked {
    fn send(&self, mut request: Request<Bytes>) -> TransportFuture<'_> {
        if let Ok(id) = OPERATION.try_with(|id| *id) {
            request.headers_mut().insert(OPERATION_HEADER, id.into());
        }
        self.0.send(request)
    }
}

/// What an operation gave, and when.
pub(crate) struct Asked<T> {
    pub(crate) output: T,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

pub(crate) struct World {
    pub(crate) ledger: Ledger,
    pub(crate) registry: Registry,
    /// Not through the proxy, and patient.
    pub(crate) direct: TableServiceClient,
    clients: Vec<TableServiceClient>,
    proxy: Proxy,
    server: tokio::sync::Mutex<Process>,
    next_id: AtomicU64,
    /// How many operations were begun.
    begun: watch::Sender<u64>,
    target: u64,
}

impl World {
    pub(crate) async fn start(directory: &Path, rng: &mut Rng, target: u64) -> Self {
        let port = free_port(rng);
        let server = start_server(directory, port, rng).await;
        let registry = Registry::default();
        // Of requests that a task of the client's own sends: pages that are read ahead.
        registry.open(0);
        let faults = Faults::new(rng.fork());
        let proxy = Proxy::start(faults, registry.clone(), server.address()).await;
        let key = || SharedKey::new(server.part("AccountName"), server.part("AccountKey")).unwrap();
        let client = |address: SocketAddr, retry: RetryPolicy| {
            let account = server.part("AccountName");
            let http = reqwest::Client::builder().no_proxy();
            let http = http.redirect(reqwest::redirect::Policy::none());
            TableServiceClient::builder(format!("http://{address}/{account}"))
                .credential(key())
                .transport(Marked(ReqwestTransport::from_client(http.build().unwrap())))
                .retry(retry.budget(1_000_000))
                .build()
                .unwrap()
        };
        let ms = Duration::from_millis;
        let quick = RetryPolicy::exponential().delay(ms(4)).max_delay(ms(40));
        let clients = [
            quick
                .clone()
                .attempts(4)
                .try_timeout(ms(150))
                .deadline(ms(500)),
            quick
                .clone()
                .attempts(6)
                .try_timeout(ms(300))
                .deadline(ms(1_500)),
            quick
                .clone()
                .attempts(2)
                .try_timeout(ms(250))
                .deadline(ms(600)),
            RetryPolicy::none().try_timeout(ms(300)).deadline(ms(300)),
        ];
        let clients = clients.map(|retry| client(proxy.address(), retry)).to_vec();
        let patient = quick
            .attempts(1_000)
            .try_timeout(ms(20_000))
            .deadline(ms(120_000));
        Self {
            ledger: Ledger::new(),
            registry,
            direct: client(server.address(), patient),
            clients,
            proxy,
            server: tokio::sync::Mutex::new(server),
            next_id: AtomicU64::new(1),
            begun: watch::Sender::new(0),
            target,
        }
    }

    /// A client through the proxy: more or less patient.
    pub(crate) fn client(&self, rng: &mut Rng) -> &TableServiceClient {
        &self.clients[rng.usize(..self.clients.len())]
    }

    /// The table of that name, through the proxy.
    pub(crate) fn table(&self, rng: &mut Rng, name: &str) -> TableClient {
        self.client(rng).table(name)
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.begun.borrow() >= self.target
    }

    /// The number of a new operation.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs an operation under its number. It has to be settled afterwards.
    pub(crate) async fn ask<T>(&self, id: u64, operation: impl Future<Output = T>) -> Asked<T> {
        self.registry.open(id);
        self.begun.send_modify(|begun| *begun += 1);
        let began = Instant::now();
        let output = OPERATION.scope(id, operation).await;
        let ended = Instant::now();
        if ended - began > LONGEST {
            let took = ended - began;
            let lie = Finding::Lie(format!("operation {id} took {took:?}, past its deadline"));
            self.ledger.enter(vec![lie], String::new);
        }
        Asked {
            output,
            began,
            ended,
        }
    }

    /// Kills the server whenever that many operations more were begun, and starts it again; until it is dropped.
    pub(crate) async fn kill_every(&self, operations: u64, directory: &Path, rng: &mut Rng) {
        let mut begun = self.begun.subscribe();
        let mut next = operations;
        loop {
            begun.wait_for(|begun| *begun >= next).await.unwrap();
            next += operations;
            let mut server = self.server.lock().await;
            server.kill();
            server.wait_until_dead().await;
            self.proxy.server_was_killed();
            self.ledger.server_was_killed();
            *server = start_server(directory, server.address().port(), rng).await;
        }
    }

    /// What there is to know at the end.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{}\n", self.ledger);
        text += "requests by what the proxy did to them:\n";
        for (fault, count) in self.proxy.faults().counts() {
            text += &format!("  {count:>8} {fault}\n");
        }
        text
    }
}

async fn start_server(directory: &Path, port: u16, rng: &mut Rng) -> Process {
    // A kill loses nothing either way.
    let durability = if rng.u8(..4) == 0 { "sync" } else { "relaxed" };
    let mut command = Command::new(program());
    command.args(["--durability", durability, "--port", &port.to_string()]);
    command.arg("--data").arg(directory);
    Process::start(command).await.unwrap()
}

/// No operation has a deadline near this.
const LONGEST: Duration = Duration::from_secs(10);
