//! The server's kit for tests, `tablesdk_server::testing`, as the tests of a program use it: over
//! HTTP and without a socket.

mod clock;
mod each_request;
mod faults;
mod flavors;
mod journal;
mod lints;
mod partitions;
mod port;
mod state;
mod storages;
mod test_table;

use std::time::Duration;

pub(crate) use harness::Employee;
use harness::client_with;
use tablesdk::{RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

/// A server, and how its clients reach it.
pub(crate) struct Subject {
    pub(crate) server: TableServer,
    is_over_http: bool,
}

impl Subject {
    async fn over_http() -> Self {
        Self::of(TableServer::start().await.expect("a port is free"))
    }

    /// A server whose clients reach it over HTTP.
    pub(crate) const fn of(server: TableServer) -> Self {
        Self {
            server,
            is_over_http: true,
        }
    }

    fn in_process() -> Self {
        Self {
            server: TableServer::in_process(),
            is_over_http: false,
        }
    }

    /// A client with that policy.
    pub(crate) fn service(&self, retry: RetryPolicy) -> TableServiceClient {
        if self.is_over_http {
            return service_over_http(&self.server, retry);
        }
        client_with(&self.server, |builder| builder.retry(retry))
    }

    /// A new table, and a client of it with that policy.
    pub(crate) async fn table(&self, retry: RetryPolicy) -> TableClient {
        let table = self.service(retry).table("People");
        table.create_table().await.expect("the table is new");
        table
    }

    /// Returns true if the usual entity is stored. Injects no faults.
    pub(crate) async fn has_ada(&self) -> bool {
        self.server.faults().clear();
        let table = harness::client(&self.server).table("People");
        Employee::find(&table).await.is_some()
    }
}

/// A client of the server with that policy.
pub(crate) fn service_over_http(server: &TableServer, retry: RetryPolicy) -> TableServiceClient {
    let builder = TableServiceClient::builder(server.endpoint());
    let service = builder.credential(server.credential()).retry(retry);
    service.build().expect("the server's endpoint is a URL")
}

/// Retries almost at once.
pub(crate) fn eager() -> RetryPolicy {
    RetryPolicy::exponential().delay(Duration::from_millis(1))
}

/// Runs each test over HTTP and without a socket.
macro_rules! over_http_and_in_process {
    ($($(#[$attribute:meta])* async fn $name:ident($subject:ident: Subject) $body:block)*) => {
        $(mod $name {
            #[allow(unused_imports, reason = "not every test uses the imports of its file")]
            use super::*;

            $(#[$attribute])*
            async fn test($subject: crate::Subject) $body

            #[tokio::test]
            async fn over_http() {
                test(crate::Subject::over_http().await).await;
            }

            #[tokio::test]
            async fn in_process() {
                test(crate::Subject::in_process()).await;
            }
        })*
    };
}
pub(crate) use over_http_and_in_process;
