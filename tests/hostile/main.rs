//! Checks that the client's results are true, on a network with every kind of fault, and with a
//! server that is killed.
//!
//! Many workers operate on tables through a proxy that refuses, resets, drops, delays, cuts,
//! duplicates and reorders requests and responses, and responds in the service's place. Every write
//! bears the number of its operation, the proxy keeps a record of what reached the server, and once
//! everything has arrived, the ledger compares what the client said with what is stored.
//! Differences that the guides announce are counted, all others are lies.
//!
//! There are several [networks](network::Network). The normal run is short, on some of them, and
//! has a fixed seed. `TABLESDK_HOSTILE_OPERATIONS` makes it longer, on the mixed network and with a
//! random seed, which it prints; `TABLESDK_HOSTILE_NETWORK` and `TABLESDK_HOSTILE_SEED` set them.
//! The seed decides what happens to the n-th request, not which request that is.

mod attack;
mod batches;
mod bulk;
mod fault;
mod judge;
mod ledger;
mod network;
mod proxy;
mod reads;
mod record;
mod rows;
mod shared;
mod step;
mod tables;
mod wire;
mod world;

use std::sync::Arc;

use fastrand::Rng;
use harness::setting;

use crate::network::Network;
use crate::shared::Shared;
use crate::world::World;

/// The operations of the short form, on the mixed network and on each of the others.
const OPERATIONS: [u64; 2] = [1_200, 300];
const SEED: u64 = 11;
const WORKERS: usize = 48;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_result_of_the_client_is_true() {
    let operations = setting("TABLESDK_HOSTILE_OPERATIONS");
    let networks = match std::env::var("TABLESDK_HOSTILE_NETWORK") {
        Ok(name) => vec![Network::named(&name)],
        Err(_) if operations.is_some() => vec![Network::Mixed],
        Err(_) => vec![
            Network::Mixed,
            Network::Duplicated,
            Network::Doubled,
            Network::Exchanged,
        ],
    };
    for network in networks {
        let seed = setting("TABLESDK_HOSTILE_SEED");
        let seed = seed.unwrap_or_else(|| operations.map_or(SEED, |_| fastrand::u64(..)));
        let operations = operations.unwrap_or(OPERATIONS[usize::from(network != Network::Mixed)]);
        run(network, seed, operations).await;
    }
}

async fn run(network: Network, seed: u64, operations: u64) {
    let name = network.name();
    let run = format!("TABLESDK_HOSTILE_NETWORK={name} TABLESDK_HOSTILE_SEED={seed}");
    println!("{run}");
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let world = Arc::new(World::start(network, &data, &mut rng, operations).await);
    let table = world.direct.table(rows::TABLE);
    table.create_table().await.unwrap();
    reads::prepare(&world).await;
    let shared = Arc::new(Shared::default());
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (world, shared) = (Arc::clone(&world), Arc::clone(&shared));
            tokio::spawn(work(world, shared, number, rng.fork()))
        })
        .collect();
    let killer = {
        let (world, mut rng) = (Arc::clone(&world), rng.fork());
        let every = (operations / 3).min(10_000);
        tokio::spawn(async move { world.kill_every(every, &data, &mut rng).await })
    };
    for worker in workers {
        worker.await.unwrap();
    }
    killer.abort();
    println!("{}", world.summary());
    let lies = world.ledger.lies();
    assert!(lies.is_empty(), "{run}: {} lies\n{}", lies.len(), lies[0]);
    let (count, unknown) = world.ledger.operations();
    assert!(count >= operations);
    // A client that reports every outcome as ambiguous would pass, and be of no use.
    assert!(
        unknown < count / 2,
        "{unknown} of {count} outcomes are unknown"
    );
}

/// Operates on entities that only this worker has, and on those that all have, until there were
/// operations enough.
async fn work(world: Arc<World>, shared: Arc<Shared>, number: usize, mut rng: Rng) {
    let partition = format!("w{number}");
    while !world.is_over() {
        match rng.u8(..20) {
            0..=6 => rows::sequence(&world, &partition, &mut rng).await,
            7..=9 => batches::sequence(&world, &partition, &mut rng).await,
            10..=12 => bulk::run(&world, &mut rng).await,
            13..=14 => shared.count(&world, &mut rng).await,
            15 => shared.race(&world, &mut rng).await,
            16..=17 => reads::read(&world, &mut rng).await,
            // The service has them once.
            18 if number == 0 => tables::properties(&world, &mut rng).await,
            _ => tables::life(&world, &mut rng).await,
        }
    }
}
