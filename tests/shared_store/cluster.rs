//! Several servers over one database, as processes that are killed and started again, and what
//! makes them fail.

use std::sync::Arc;

use fastrand::Rng;
use harness::postgres::Postgres;
use harness::process::{Process, free_port, program};
use tablesdk::{RetryPolicy, SharedKey, TableServiceClient};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::workload::Workload;

/// The account that all servers serve.
const ACCOUNT: &str = "shared";
const KEY: &str = "c2hhcmVkIGJ5IGFsbCBzZXJ2ZXJz";

/// Servers on ports that they keep.
pub(crate) struct Cluster {
    url: String,
    ports: Vec<u16>,
    processes: Vec<Mutex<Process>>,
}

impl Cluster {
    /// Starts that many servers over the database with this URL.
    pub(crate) async fn start(url: &str, count: usize) -> Self {
        // Not of the seed, which other tests that run at the same time have, too.
        let mut rng = Rng::new();
        let mut cluster = Self {
            url: url.to_owned(),
            ports: (0..count).map(|_| free_port(&mut rng)).collect(),
            processes: Vec::new(),
        };
        // At the same time, on an empty database.
        let starts = cluster.ports.iter().map(|port| cluster.start_at(*port));
        let processes = futures::future::join_all(starts).await;
        cluster.processes = processes.into_iter().map(Mutex::new).collect();
        cluster
    }

    async fn start_at(&self, port: u16) -> Process {
        let mut command = Command::new(program());
        command.env("TABLESDK_SERVER_STORE", &self.url);
        command.args(["--account", &format!("{ACCOUNT}:{KEY}")]);
        command.args(["--log", "off", "--port", &port.to_string()]);
        Process::start(command).await.expect("the server starts")
    }

    /// A client of each server. It stays of use when the server is started again.
    pub(crate) fn services(&self, retry: &RetryPolicy) -> Vec<TableServiceClient> {
        let clients = self.ports.iter().map(|port| {
            let key = SharedKey::new(ACCOUNT, KEY).expect("the key is base64");
            TableServiceClient::builder(format!("http://127.0.0.1:{port}/{ACCOUNT}"))
                .credential(key)
                .retry(retry.clone())
                .build()
                .expect("the client is configured correctly")
        });
        clients.collect()
    }

    /// Kills a server at any point of its work, and starts it again.
    async fn kill_one(&self, rng: &mut Rng) {
        let index = rng.usize(..self.processes.len());
        let mut process = self.processes[index].lock().await;
        process.kill();
        process.wait_until_dead().await;
        *process = self.start_at(self.ports[index]).await;
    }
}

/// The losses of a cluster so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) servers: usize,
    pub(crate) databases: usize,
}

/// Kills a server or restarts the database, again and again, each after so many operations, until
/// the operations are done.
pub(crate) async fn disturb(
    cluster: &Cluster,
    database: &Arc<Postgres>,
    workload: &Workload,
    every: u64,
    rng: &mut Rng,
) -> Losses {
    let mut losses = Losses::default();
    let mut next = every;
    while next < workload.size.operations {
        workload.wait_for(next).await;
        // Both kinds in each run.
        if (losses.servers + losses.databases) % 3 == 1 {
            losses.databases += 1;
            let is_killed = rng.bool();
            workload.set_available(false);
            let database = Arc::clone(database);
            let restart = move || {
                if is_killed {
                    database.kill();
                } else {
                    database.stop();
                }
                database.start_again();
            };
            let restarted = tokio::task::spawn_blocking(restart).await;
            restarted.expect("the database starts again");
            workload.set_available(true);
        } else {
            losses.servers += 1;
            cluster.kill_one(rng).await;
        }
        next += every;
    }
    losses
}
