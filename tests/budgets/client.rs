//! How often the client allocates memory for a change of a batch that it builds, sends and reads
//! the response to.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use harness::Employee;
use http::{Request, Response};
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::runtime::Builder;

use crate::assert_within;

/// Passes requests to a server, or responds with the last response of the server.
#[derive(Clone, Debug)]
struct Recorder {
    server: Arc<dyn Transport>,
    last: Arc<Mutex<Option<Response<Bytes>>>>,
    replays: Arc<AtomicBool>,
}

impl Transport for Recorder {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let last = self.last.lock().unwrap().clone();
            if let Some(response) = last.filter(|_| self.replays.load(Relaxed)) {
                return Ok(response);
            }
            let mut response = self.server.send(request).await?;
            // It will be the response to other requests, too.
            response.headers_mut().remove("x-ms-client-request-id");
            *self.last.lock().unwrap() = Some(response.clone());
            Ok(response)
        })
    }
}

async fn insert_all(table: &TableClient, employees: &[Employee]) {
    let mut batch = table.batch("Sales");
    for employee in employees {
        batch = batch.insert(employee);
    }
    assert_eq!(batch.await.unwrap().etags().len(), employees.len());
}

#[test]
fn a_change_of_a_batch_has_a_budget_in_the_client() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let server = TableServer::in_process();
    let recorder = Recorder {
        server: server.transport(),
        last: Arc::default(),
        replays: Arc::default(),
    };
    let client = TableServiceClient::builder(server.endpoint())
        .credential(server.credential())
        .transport(recorder.clone())
        .build()
        .unwrap();
    let table = client.table("people");
    runtime.block_on(async { table.create_table().await.unwrap() });
    let count = |changes: u32| {
        let employee = |number| Employee::new(&format!("{changes}-{number:04}"), "Ada", 36);
        let employees: Vec<_> = (0..changes).map(employee).collect();
        recorder.replays.store(false, Relaxed);
        runtime.block_on(insert_all(&table, &employees));
        recorder.replays.store(true, Relaxed);
        let counted =
            allocation_counter::measure(|| runtime.block_on(insert_all(&table, &employees)));
        counted.count_total
    };
    // What the client needs once is not counted.
    count(10);
    let (few, many) = (count(20), count(60));
    assert_within(
        "change of a batch in the client",
        (many - few) / 40,
        CLIENT_CHANGE,
    );
}

const CLIENT_CHANGE: u64 = 4;
