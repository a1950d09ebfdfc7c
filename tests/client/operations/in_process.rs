//! Clients of a server in the same process: one line makes one, and it keeps what it needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use harness::Employee;
use http::Request;
use tablesdk::transport::{Clock, Endpoint, InProcessServer, Transport, TransportFuture};
use tablesdk::{
    RetryPolicy, SharedKey, TableClient, TableServiceClient, TableServiceClientBuilder,
};
use tablesdk_server::TableServer;

/// What a test's helper may look like: the server is dropped when it returns.
async fn employees() -> TableClient {
    let server = TableServer::in_process();
    let table = TableServiceClient::in_process(&server).table("Employees");
    table.create_table().await.unwrap();
    table
}

#[tokio::test]
async fn a_client_keeps_a_server_that_is_dropped() {
    let table = employees().await;
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 1);

    let other = employees().await;
    assert_eq!(other.query::<Employee>().count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_client_of_a_server_with_a_socket_needs_no_socket() {
    let server = TableServer::start().await.unwrap();
    let over_http = TableServiceClient::from_connection_string(&server.connection_string());
    let in_process = TableServiceClient::in_process(&server);
    over_http
        .unwrap()
        .table("Employees")
        .create_table()
        .await
        .unwrap();
    drop(server);
    assert_eq!(in_process.tables().collect().await.unwrap(), ["Employees"]);
}

/// The bundled server, with a count of its requests.
struct Counted {
    server: TableServer,
    requests: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Counting(Arc<dyn Transport>, Arc<AtomicUsize>);

impl Transport for Counting {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.send(request)
    }
}

impl InProcessServer for Counted {
    fn endpoint(&self) -> Endpoint {
        InProcessServer::endpoint(&self.server)
    }

    fn credential(&self) -> SharedKey {
        self.server.credential()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(Counting(
            self.server.transport(),
            Arc::clone(&self.requests),
        ))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        InProcessServer::clock(&self.server)
    }
}

#[tokio::test]
async fn a_server_of_a_tests_own_is_one_in_process() {
    let server = Counted {
        server: TableServer::in_process(),
        requests: Arc::default(),
    };
    let service = TableServiceClientBuilder::in_process(&server).retry(RetryPolicy::none());
    let service = service.build().unwrap();
    service.table("Employees").create_table().await.unwrap();
    assert_eq!(service.tables().collect().await.unwrap(), ["Employees"]);
    assert_eq!(server.requests.load(Ordering::Relaxed), 2);
}
