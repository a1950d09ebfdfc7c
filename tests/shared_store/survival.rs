//! Servers that are killed, a database that is restarted or replaced by its standby: nothing
//! acknowledged is lost, nothing is applied twice or in part, and each operation sees the ones
//! before it, through any server.

use std::sync::Arc;

use fastrand::Rng;
use harness::postgres::Postgres;
use harness::{seed, setting};

use crate::cluster::{Cluster, disturb};
use crate::counters;
use crate::relay::Relay;
use crate::worker;
use crate::workload::{Size, TABLE, Workload, single_attempts};

const SERVERS: usize = 3;
const CLIENTS: usize = 64;

/// How many operations a run has. `TABLESDK_SHARED_STORE_OPERATIONS` makes it longer.
fn size(operations: u64) -> Size {
    Size {
        partitions: 6,
        rows: 5,
        operations: setting("TABLESDK_SHARED_STORE_OPERATIONS").unwrap_or(operations),
    }
}

async fn start(url: &str, size: Size) -> (Cluster, Arc<Workload>) {
    let cluster = Cluster::start(url, SERVERS).await;
    let services = cluster.services(&single_attempts());
    services[0].table(TABLE).create_table().await.unwrap();
    (cluster, Arc::new(Workload::new(services, size)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_servers_are_killed_and_the_database_restarts() {
    let Some(database) = Postgres::start().map(Arc::new) else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let size = size(4_000);
    let (cluster, workload) = start(&database.url("postgres"), size).await;
    let mut disturbing = rng.fork();
    let every = (size.operations / 8).min(500);
    let ((), losses) = tokio::join!(
        worker::run(&workload, CLIENTS, &mut rng),
        disturb(&cluster, &database, &workload, every, &mut disturbing),
    );
    println!("{losses:?}");
    workload.judge().unwrap_or_else(|it| panic!("{it}"));
    assert!(losses.servers > 0 && losses.databases > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_primary_is_killed_and_the_standby_promoted() {
    let Some(primary) = Postgres::start() else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let standby = primary.standby();
    // The servers lose all connections to the primary at once, whatever it was doing for them.
    let relay = Relay::start(primary.port()).await;
    let (first, second) = (relay.port(), standby.port());
    let url = primary.url("postgres");
    let (address, name) = url.rsplit_once(&format!(":{}/", primary.port())).unwrap();
    let url = format!("{address}:{first},127.0.0.1:{second}/{name}");
    let size = size(2_000);
    let (cluster, workload) = start(&url, size).await;
    let fail_over = async {
        workload.wait_for(size.operations / 2).await;
        workload.set_available(false);
        relay.close();
        let promoted = tokio::task::spawn_blocking(move || {
            primary.kill();
            standby.promote();
            // Both are needed until the end.
            (primary, standby)
        });
        let databases = promoted.await.expect("the standby is promoted");
        workload.set_available(true);
        databases
    };
    let ((), _databases) = tokio::join!(worker::run(&workload, CLIENTS, &mut rng), fail_over);
    workload.judge().unwrap_or_else(|it| panic!("{it}"));
    assert!(workload.counted("unknown") > 0);
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_increments_are_exact_while_servers_are_killed() {
    let Some(database) = Postgres::start().map(Arc::new) else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let increments = setting("TABLESDK_SHARED_STORE_INCREMENTS").unwrap_or(50);
    let size = Size {
        operations: CLIENTS as u64 * increments,
        ..size(0)
    };
    let (cluster, workload) = start(&database.url("postgres"), size).await;
    let mut disturbing = rng.fork();
    let every = (size.operations / 6).min(1_000);
    let ((), losses) = tokio::join!(
        counters::run(&workload, CLIENTS, increments, &mut rng),
        disturb(&cluster, &database, &workload, every, &mut disturbing),
    );
    println!("{losses:?}");
    assert!(losses.servers > 0 && losses.databases > 0);
}
