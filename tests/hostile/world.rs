//! The state that all workers share: the server as a process, the proxy, clients that use the
//! proxy, a client that bypasses it, and the ledger.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use harness::process::{Process, free_port, program};
use http::Request;
use tablesdk::transport::{ReqwestTransport, Transport, TransportFuture};
use tablesdk::{RetryPolicy, SharedKey, TableClient, TableServiceClient};
use tokio::process::Command;
use tokio::sync::watch;

use crate::fault::Faults;
use crate::ledger::{Finding, Ledger, Said};
use crate::network::Network;
use crate::proxy::{OPERATION_HEADER, Proxy};
use crate::record::{Record, Registry};
use crate::step::{Call, Step};

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

pub(crate) struct World {
    pub(crate) ledger: Ledger,
    pub(crate) registry: Registry,
    /// Not through the proxy, and patient.
    pub(crate) direct: TableServiceClient,
    clients: Vec<TableServiceClient>,
    proxy: Proxy,
    server: tokio::sync::Mutex<Process>,
    pub(crate) network: Network,
    next_id: AtomicU64,
    /// How many operations were begun.
    begun: watch::Sender<u64>,
    target: u64,
}

impl World {
    pub(crate) async fn start(
        network: Network,
        directory: &Path,
        rng: &mut Rng,
        target: u64,
    ) -> Self {
        let port = free_port(rng);
        let server = start_server(directory, port, 0, rng).await;
        let registry = Registry::default();
        // Of requests that a task of the client's own sends: pages that are read ahead.
        registry.open(0);
        let faults = Faults::new(network, rng.fork());
        let proxy = Proxy::start(faults, registry.clone(), server.address()).await;
        let client = |address: SocketAddr, retry: RetryPolicy| {
            let http = reqwest::Client::builder().no_proxy();
            let http = http.redirect(reqwest::redirect::Policy::none());
            let http = ReqwestTransport::from_client(http.build().unwrap());
            TableServiceClient::builder(format!("http://{address}/{ACCOUNT}"))
                .credential(SharedKey::new(ACCOUNT, &key(0)).unwrap())
                .transport(Marked(http))
                .retry(retry.budget(1_000_000))
                .build()
                .unwrap()
        };
        let ms = Duration::from_millis;
        let quick = RetryPolicy::exponential().delay(ms(4)).max_delay(ms(40));
        let clients = [(4, 150, 500), (6, 300, 1_500), (2, 250, 600), (1, 300, 300)];
        let patience = network.patience();
        let clients = clients.map(|(attempts, one, all)| {
            let policy = quick.clone().attempts(attempts);
            let policy = policy.try_timeout(ms(one) * patience);
            policy.deadline(ms(all) * patience)
        });
        let clients = clients.map(|retry| client(proxy.address(), retry));
        let patient = quick.attempts(1_000).try_timeout(ms(20_000));
        let patient = patient.deadline(ms(120_000));
        Self {
            ledger: Ledger::new(),
            registry,
            direct: client(server.address(), patient),
            clients: clients.into(),
            proxy,
            server: tokio::sync::Mutex::new(server),
            network,
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

    /// A new operation.
    pub(crate) fn call(&self, verb: &str, is_once: bool) -> Call {
        let suffix = if is_once { ", exactly once" } else { "" };
        Call {
            id: self.next_id(),
            verb: format!("{verb}{suffix}"),
            is_once,
        }
    }

    /// Runs an operation under its number. It has to be settled afterwards.
    pub(crate) async fn ask<T: Debug>(
        &self,
        call: Call,
        said: impl FnOnce(&T) -> Said,
        operation: impl IntoFuture<Output = T>,
    ) -> (Step, T) {
        let Call { id, verb, is_once } = call;
        self.registry.open(id);
        self.begun.send_modify(|begun| *begun += 1);
        let began = Instant::now();
        let output = OPERATION.scope(id, operation.into_future()).await;
        let step = Step {
            id,
            verb,
            in_batches: is_once,
            is_once,
            targets: Vec::new(),
            said: said(&output),
            words: format!("{output:?}"),
            began,
            ended: Instant::now(),
            record: Record::default(),
        };
        let took = step.ended - began;
        let is_late = took > LONGEST * self.network.patience();
        let lie = is_late.then(|| step.lie(&format!("took {took:?}, past its deadline")));
        self.enter(lie, [], String::new);
        (step, output)
    }

    /// Waits until everything of an operation has arrived, and counts it.
    pub(crate) async fn settle(&self, step: &mut Step) {
        step.record = self.registry.settle(step.id).await;
        self.ledger.count(&step.verb, &step.said);
    }

    /// Runs an operation, and settles it.
    pub(crate) async fn run<T: Debug>(
        &self,
        call: Call,
        said: impl FnOnce(&T) -> Said,
        operation: impl IntoFuture<Output = T>,
    ) -> (Step, T) {
        let (mut step, output) = self.ask(call, said, operation).await;
        self.settle(&mut step).await;
        (step, output)
    }

    /// Enters what a judge found of operations. A lie is shown with them and `details`.
    pub(crate) fn enter<'s>(
        &self,
        findings: impl IntoIterator<Item = Finding>,
        steps: impl IntoIterator<Item = &'s Step>,
        details: impl Fn() -> String,
    ) {
        let steps: Vec<_> = steps.into_iter().collect();
        self.ledger.enter(findings, || {
            let steps = steps.iter().map(|step| step.show(self.ledger.origin()));
            steps.collect::<String>() + "  " + &details()
        });
    }

    /// Kills the server whenever that many operations more were begun, and starts it again; until
    /// it is dropped.
    pub(crate) async fn kill_every(&self, operations: u64, directory: &Path, rng: &mut Rng) {
        let mut begun = self.begun.subscribe();
        for number in 1.. {
            let next = operations * number;
            begun.wait_for(|begun| *begun >= next).await.unwrap();
            // The clients use the second key before the first one ends.
            let is_rotated = self.network == Network::Rotated;
            let generation = if is_rotated { number } else { 0 };
            for client in self.clients.iter().chain([&self.direct]) {
                let key = SharedKey::new(ACCOUNT, &key(generation)).unwrap();
                client.update_credential(key).unwrap();
            }
            let mut server = self.server.lock().await;
            server.kill();
            server.wait_until_dead().await;
            self.proxy.server_was_killed();
            self.ledger.server_was_killed();
            let port = server.address().port();
            *server = start_server(directory, port, generation, rng).await;
        }
    }

    /// The results at the end.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{}\n", self.ledger);
        text += "requests by what the proxy did to them:\n";
        for (fault, count) in self.proxy.faults().counts() {
            text += &format!("  {count:>8} {fault}\n");
        }
        text
    }
}

/// Starts a server whose account has two keys.
async fn start_server(directory: &Path, port: u16, generation: u64, rng: &mut Rng) -> Process {
    // A kill loses nothing either way.
    let durability = if rng.u8(..4) == 0 { "sync" } else { "relaxed" };
    let mut command = Command::new(program());
    command.args(["--durability", durability, "--port", &port.to_string()]);
    for number in [generation, generation + 1] {
        command.args(["--account", &format!("{ACCOUNT}:{}", key(number))]);
    }
    command.arg("--data").arg(directory);
    Process::start(command).await.unwrap()
}

/// The account key of that number.
fn key(number: u64) -> String {
    format!("a2V5{number:04}")
}

const ACCOUNT: &str = "hostile";
/// No operation has a deadline near this.
const LONGEST: Duration = Duration::from_secs(10);
