//! A server whose connections to its database go through a relay.

use harness::postgres::{Database, database};
use harness::written::Row;
use tablesdk::{ETag, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use crate::relay::Relay;
use crate::workload::TABLE;

/// A server behind a relay, and a client of the same database that sees what is stored.
pub(crate) struct Subject {
    pub(crate) server: TableServer,
    pub(crate) relay: Relay,
    pub(crate) direct: TableClient,
    _other: TableServer,
    _database: Database,
}

impl Subject {
    pub(crate) async fn start() -> Option<Self> {
        let database = database()?;
        let (address, name) = database.url().rsplit_once('/').unwrap();
        let (user, port) = address.rsplit_once(':').unwrap();
        let relay = Relay::start(port.parse().unwrap()).await;
        let url = format!("{user}:{}/{name}", relay.port());
        let server = TableServer::builder().postgres(url).start().await.unwrap();
        let other = TableServer::builder().account(server.credential());
        let other = other.postgres(database.url()).start().await.unwrap();
        let direct = client(&other, RetryPolicy::default()).table(TABLE);
        direct.create_table().await.unwrap();
        // The server knows the table, so that each write of a kind takes the same statements.
        let warm = client(&server, RetryPolicy::default()).table(TABLE);
        warm.insert(&Row::whole("p", "warm", OLD)).await.unwrap();
        Some(Self {
            server,
            relay,
            direct,
            _other: other,
            _database: database,
        })
    }

    pub(crate) fn table(&self, retry: RetryPolicy) -> TableClient {
        client(&self.server, retry).table(TABLE)
    }

    pub(crate) async fn stored(&self, row: &str) -> Option<(i64, ETag)> {
        let stored = self.direct.get::<Row>(Row::key("p", row)).await.unwrap();
        stored.map(|stored| (stored.token, stored.etag().clone()))
    }

    /// An entity that is there before.
    pub(crate) async fn put(&self, row: &str) -> ETag {
        let old = Row::whole("p", row, OLD);
        self.direct.upsert_replace(&old).await.unwrap()
    }
}

pub(crate) fn client(server: &TableServer, retry: RetryPolicy) -> TableServiceClient {
    harness::client_with(server, |builder| builder.retry(retry))
}

/// The content of entities before a test writes them.
pub(crate) const OLD: i64 = 1;
/// The content that a test writes.
pub(crate) const NEW: i64 = 2;
