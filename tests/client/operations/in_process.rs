//! Clients of a server in the same process: one line makes one, and it keeps what it needs.

use std::sync::Arc;

use harness::Employee;
use harness::proxy::Proxy;
use tablesdk::transport::{Clock, Endpoint, InProcessServer, Transport};
use tablesdk::{
    RetryPolicy, SharedKey, TableClient, TableServiceClient, TableServiceClientBuilder,
};
use tablesdk_server::TableServer;

/// A helper as a test may have it: the server is dropped when it returns.
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
    let over_http = over_http.unwrap().table("Employees");
    over_http.create_table().await.unwrap();
    drop(server);
    assert_eq!(in_process.tables().collect().await.unwrap(), ["Employees"]);
}

/// The bundled server, behind a proxy.
struct Recorded(TableServer, Proxy);

impl InProcessServer for Recorded {
    fn endpoint(&self) -> Endpoint {
        InProcessServer::endpoint(&self.0)
    }

    fn credential(&self) -> SharedKey {
        self.0.credential()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.1.clone())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        InProcessServer::clock(&self.0)
    }
}

#[tokio::test]
async fn a_server_of_a_tests_own_is_one_in_process() {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let server = Recorded(server, proxy.clone());
    let service = TableServiceClientBuilder::in_process(&server).retry(RetryPolicy::none());
    let service = service.build().unwrap();
    service.table("Employees").create_table().await.unwrap();
    assert_eq!(service.tables().collect().await.unwrap(), ["Employees"]);
    assert_eq!(proxy.sent().len(), 2);
}
