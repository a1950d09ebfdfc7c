//! Setup of tests that use client and server together: each test has its own server, and a client
//! of it. If the environment names another endpoint, tests that need only a client also run there:
//! [`elsewhere`]. With `TABLESDK_TEST_STORE=postgres` in the environment, the servers of most
//! [`Subject`]s have their tables in a database.

pub mod azurite;
pub mod company;
pub mod cosmos_db;
pub mod directory;
pub mod elsewhere;
pub mod generated;
pub mod log;
pub mod outcome;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod raw;
pub mod tcp;
pub mod written;

use std::any::Any;

use fastrand::Rng;
use tablesdk::transport::{Backend, Transport};
use tablesdk::{RetryPolicy, TableClient, TableServiceClient, TableServiceClientBuilder};
use tablesdk_server::testing::Faults;
use tablesdk_server::{TableServer, TableServerBuilder};

pub use crate::company::Employee;
use crate::postgres::Database;
use crate::proxy::Proxy;

/// A setting of a test from the environment, such as a seed or a number of rounds. `None` if it is
/// not set.
pub fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let value = text.parse();
    Some(value.unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// The seeds of a randomised test, which are the same in each run. `variable` in the environment
/// selects one seed, or with `random` as many random ones.
pub fn seeds(variable: &str, count: u64) -> Vec<u64> {
    if std::env::var(variable).is_ok_and(|text| text == "random") {
        return (0..count).map(|_| fastrand::u64(..)).collect();
    }
    setting(variable).map_or_else(|| (0..count).collect(), |seed| vec![seed])
}

/// The seed of a randomised test, from [`seeds`]. A test that fails shows it.
pub fn seed(variable: &str) -> u64 {
    let seed = seeds(variable, 1)[0];
    println!("{variable}={seed}");
    seed
}

/// A generator of random numbers, whose seed `SEED` in the environment sets: [`seeds`].
pub fn seeded() -> Rng {
    Rng::with_seed(seed("SEED"))
}

/// The text of a panic, which is empty for a value that is no text.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default()
}

/// Runs a test twice: over HTTP, and without a socket. If the environment names another endpoint,
/// the test also runs there: [`elsewhere`].
#[macro_export]
macro_rules! on_both_transports {
    ($($(#[$attribute:meta])* async fn $name:ident($subject:ident: Subject) $body:block)*) => {
        $($(#[$attribute])* mod $name {
            #[allow(unused_imports, reason = "not every test uses the imports of its file")]
            use super::*;

            async fn test($subject: $crate::Subject) $body

            #[tokio::test]
            async fn over_http() {
                test($crate::Subject::over_http().await).await;
            }

            #[tokio::test]
            async fn in_process() {
                test($crate::Subject::in_process()).await;
            }

            #[test]
            #[ignore = "needs another endpoint: tests/interop/run.sh --all"]
            fn elsewhere() {
                $crate::elsewhere::run(module_path!(), &[&$crate::azurite::DIFFERENCES, &$crate::cosmos_db::DIFFERENCES], test);
            }
        })*
    };
}

/// A client of a server, without a socket.
pub fn client(server: &TableServer) -> TableServiceClient {
    TableServiceClient::in_process(server)
}

/// A client of a server, without a socket unless `configure` sets another transport.
pub fn client_with(
    server: &TableServer,
    configure: impl FnOnce(TableServiceClientBuilder) -> TableServiceClientBuilder,
) -> TableServiceClient {
    let service = configure(TableServiceClientBuilder::in_process(server)).build();
    service.expect("the client is configured correctly")
}

/// The builder of a server, and the database for its tables, if the environment demands one.
fn builder() -> (TableServerBuilder, Option<Database>) {
    let builder = TableServer::builder();
    match std::env::var("TABLESDK_TEST_STORE").as_deref() {
        Err(_) => (builder, None),
        Ok("postgres") => {
            let database = postgres::database().expect("there is a PostgreSQL");
            (builder.postgres(database.url()), Some(database))
        }
        Ok(other) => panic!("{other} is no storage for tests"),
    }
}

/// A server, and a client of it. Every test has its own.
#[derive(Debug)]
pub struct Subject {
    /// `None` at an endpoint that is not ours.
    server: Option<TableServer>,
    /// The database of the server. It stands after the server, and so is dropped later.
    _database: Option<Database>,
    /// A client with the server's key.
    pub service: TableServiceClient,
    /// The backend that the client assumes at an endpoint.
    backend: Option<Backend>,
}

impl Subject {
    /// A server on a port of its own, and a client that reaches it over HTTP.
    pub async fn over_http() -> Self {
        let (builder, database) = builder();
        let server = builder.start().await;
        let server = server.expect("a port of this machine is free");
        let text = server.connection_string();
        let service = TableServiceClient::from_connection_string(&text);
        Self {
            server: Some(server),
            _database: database,
            service: service.expect("the server's connection string is one"),
            backend: None,
        }
    }

    /// A server without a socket, and a client that calls it directly.
    pub fn in_process() -> Self {
        let (builder, database) = builder();
        let server = builder.in_process();
        let server = server.expect("a server needs no port here");
        let transport = server.transport();
        Self {
            _database: database,
            ..Self::with_transport(server, transport)
        }
    }

    /// A client of the server with that transport.
    pub fn with_transport(server: TableServer, transport: impl Transport + 'static) -> Self {
        let service = client_with(&server, |builder| builder.transport(transport));
        Self {
            server: Some(server),
            _database: None,
            service,
            backend: None,
        }
    }

    /// A server without a socket, a client with that policy, a table that exists, and the faults of
    /// the server.
    pub async fn with_table(retry: RetryPolicy) -> (Self, TableClient, Faults) {
        let server = TableServer::in_process();
        let (faults, transport) = (server.faults(), server.transport());
        let (subject, table) = Self::with_table_over(server, transport, retry).await;
        (subject, table, faults)
    }

    /// A server without a socket, a client with that policy and a proxy between the two, and a
    /// table that exists.
    pub async fn behind_proxy(retry: RetryPolicy) -> (Self, TableClient, Proxy) {
        let server = TableServer::in_process();
        let proxy = Proxy::new(server.transport());
        let (subject, table) = Self::with_table_over(server, proxy.clone(), retry).await;
        (subject, table, proxy)
    }

    async fn with_table_over(
        server: TableServer,
        transport: impl Transport + 'static,
        retry: RetryPolicy,
    ) -> (Self, TableClient) {
        let service = client_with(&server, |builder| builder.transport(transport).retry(retry));
        let subject = Self {
            server: Some(server),
            _database: None,
            service,
            backend: None,
        };
        let table = subject.table().await;
        (subject, table)
    }

    /// A client of a service that is not ours.
    pub fn elsewhere(service: TableServiceClient, backend: Backend) -> Self {
        Self {
            server: None,
            _database: None,
            service,
            backend: Some(backend),
        }
    }

    /// The server, for tests that need more of it than an endpoint has to offer.
    ///
    /// # Panics
    ///
    /// If the endpoint is not ours: such a test cannot run in [`elsewhere`].
    pub fn server(&self) -> &TableServer {
        let server = self.server.as_ref();
        server.expect("a test of what only our server has runs on our server alone")
    }

    /// Sets the transport or the backend that the client needs to reach the service.
    pub fn reach(&self, builder: TableServiceClientBuilder) -> TableServiceClientBuilder {
        match (&self.server, self.backend) {
            (Some(server), _) if server.local_addr().is_none() => {
                builder.transport(server.transport())
            }
            (None, Some(backend)) => builder.backend(backend),
            _ => builder,
        }
    }

    /// A client of the same server without faults: another program.
    pub fn other(&self) -> TableServiceClient {
        client(self.server())
    }

    /// A new table.
    pub async fn table(&self) -> TableClient {
        let name = match self.server {
            Some(_) => "Tests".to_owned(),
            // Services keep the names of deleted tables for a while.
            None => elsewhere::name(),
        };
        let table = self.service.table(name);
        table
            .create_table()
            .await
            .expect("the table does not exist yet");
        table
    }
}
