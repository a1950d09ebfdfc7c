//! The clients and the checker on a single server in memory: what is correct there is accepted, and
//! what its faults do is found.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use harness::{client_with, seed};
use http::Request;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;

use crate::worker;
use crate::workload::{Size, TABLE, Workload, single_attempts};

const SIZE: Size = Size {
    partitions: 2,
    rows: 3,
    operations: 2_000,
};

async fn start(size: Size) -> (TableServer, Arc<Workload>, Rng) {
    let server = TableServer::start().await.unwrap();
    let service = client_with(&server, |builder| builder.retry(single_attempts()));
    service.table(TABLE).create_table().await.unwrap();
    let workload = Arc::new(Workload::new(vec![service], size));
    let rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    (server, workload, rng)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_memory_is_linearizable() {
    let (_server, workload, mut rng) = start(SIZE).await;
    worker::run(&workload, 16, &mut rng).await;
    assert_eq!(workload.counted("unknown"), 0);
    workload.judge().unwrap_or_else(|it| panic!("{it}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_requests_and_lost_responses_break_no_rule() {
    let (server, workload, mut rng) = start(SIZE).await;
    let faults = server.faults();
    let on_writes = |probability| faults.on_writes().probability(probability);
    on_writes(0.02).inject(Fault::lost_response());
    on_writes(0.02).inject(Fault::reset());
    let late = Duration::from_millis(20);
    on_writes(0.02).inject(Fault::reset().applied_after(late));
    worker::run(&workload, 16, &mut rng).await;
    workload.judge().unwrap_or_else(|it| panic!("{it}"));
    assert!(workload.counted("unknown") > 20);
}

/// Sends some requests twice, the second time while the client goes on.
#[derive(Debug)]
struct Twice(Arc<dyn Transport>, Mutex<Rng>);

impl Transport for Twice {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        let is_repeated = self.1.lock().unwrap().u8(..10) == 0;
        let copy = is_repeated.then(|| (self.0.clone(), request.clone()));
        Box::pin(async move {
            let response = self.0.send(request).await;
            if let Some((server, copy)) = copy {
                tokio::spawn(async move { server.send(copy).await });
            }
            response
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_applies_requests_twice_is_found() {
    let server = TableServer::in_process();
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let twice = Twice(server.transport(), Mutex::new(rng.fork()));
    let service = client_with(&server, |it| it.retry(single_attempts()).transport(twice));
    service.table(TABLE).create_table().await.unwrap();
    let workload = Arc::new(Workload::new(vec![service], SIZE));
    worker::run(&workload, 16, &mut rng).await;
    let violation = workload.judge().expect_err("the violation is found");
    println!("{violation}");
}
