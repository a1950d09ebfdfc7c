//! Tens of thousands of malformed requests, over TCP, most of them with valid credentials: none
//! causes a server error, a panic or a memory leak, and none reveals a secret. A tenth of them goes
//! to a server with its tables in a database.
//!
//! They are valid requests of every operation, garbled before or after they are signed. The seed is
//! fixed and printed; `TABLESDK_ROBUSTNESS_SEED` sets it, or makes it `random`, and
//! `TABLESDK_ROBUSTNESS_REQUESTS` sends more requests.

mod connection;
mod garble;
mod request;
mod witness;

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use harness::{postgres, seed, setting};
use tablesdk::TableServiceClient;
use tablesdk_server::TableServer;

use connection::Connection;
use request::Sender;
use witness::Witness;

const REQUESTS: usize = 20_000;
/// The tables are reset after so many requests.
const ROUND: usize = 1000;
const CONNECTIONS: usize = 4;
/// The most bytes by which the process may grow after the first round.
const GROWTH_MAX: usize = 20 * 1024 * 1024;

/// The number of responses with each status; 0 stands for no response.
type Statuses = BTreeMap<u16, usize>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_do_no_harm() {
    let seed = seed("TABLESDK_ROBUSTNESS_SEED");
    let requests = setting("TABLESDK_ROBUSTNESS_REQUESTS").unwrap_or(REQUESTS);

    let server = TableServer::start().await.unwrap();
    let witness = Witness::install(&server.credential());
    send_all(server, seed, requests, &witness).await;
    if let Some(database) = postgres::database() {
        let server = TableServer::builder().postgres(database.url());
        let server = server.start().await.unwrap();
        send_all(server, seed, requests / 10, &witness).await;
    }
}

async fn send_all(server: TableServer, seed: u64, requests: usize, witness: &Arc<Witness>) {
    let lines = witness.lines();
    let mut statuses = Statuses::new();
    let mut after_first_round = None;
    for round in 0..requests.div_ceil(ROUND) {
        prepare(&server).await;
        let senders = (0..CONNECTIONS).map(|index| {
            let stream = (round * CONNECTIONS + index) as u64;
            let rng = Rng::with_seed(seed.wrapping_add(stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            tokio::spawn(send_some(Sender::new(&server, rng), Arc::clone(witness)))
        });
        for sender in senders.collect::<Vec<_>>() {
            for (status, count) in sender.await.unwrap() {
                *statuses.entry(status).or_default() += count;
            }
        }
        witness.assert_no_problems();
        if after_first_round.is_none() {
            after_first_round = witness::resident_bytes();
        }
    }
    println!("{statuses:?}");
    let count = |wanted: fn(u16) -> bool| -> usize {
        let wanted = statuses.iter().filter(|(status, _)| wanted(**status));
        wanted.map(|(_, count)| count).sum()
    };
    let sent: usize = statuses.values().sum();
    // Otherwise, too few requests passed authentication.
    let unknown = count(|status| matches!(status, 0 | 401 | 403 | 414 | 431));
    assert!(unknown < sent / 2, "{statuses:?}");
    assert!(count(|status| status < 300) > sent / 50, "{statuses:?}");
    // An empty log would show no secret.
    assert!(witness.lines() - lines >= sent / 2);
    if let (Some(before), Some(after)) = (after_first_round, witness::resident_bytes()) {
        println!("{before} bytes after the first round, {after} bytes in the end");
        assert!(after <= before + GROWTH_MAX, "{before} became {after}");
    }
    // The server still works.
    prepare(&server).await;
    server.shutdown().await.unwrap();
}

/// Leaves the account with nothing but the one table that requests are about.
async fn prepare(server: &TableServer) {
    use futures::TryStreamExt as _;

    let text = server.connection_string();
    let client = TableServiceClient::from_connection_string(&text).unwrap();
    let tables: Vec<_> = client.tables().stream().try_collect().await.unwrap();
    for table in tables {
        client.table(&table).delete_table().await.unwrap();
    }
    client.table(request::TABLE).create_table().await.unwrap();
}

async fn send_some(mut sender: Sender, witness: Arc<Witness>) -> Statuses {
    let mut statuses = Statuses::new();
    let mut connection = None;
    for _ in 0..ROUND / CONNECTIONS {
        let request = sender.next();
        for signature in &request.signatures {
            witness.must_not_see(signature);
        }
        let mut open = match connection.take() {
            Some(open) => open,
            None => Connection::open(sender.address()).await,
        };
        let response = open.exchange(&request).await;
        for status in witness.check_response(&request, &response.bytes) {
            *statuses.entry(status).or_default() += 1;
        }
        connection = response.stays_open.then_some(open);
    }
    statuses
}
