//! The writes of one server, which all others see with the next request: tables, stored access
//! policies, the properties of the service, and ETags that increase although the servers' clocks
//! differ.

use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use harness::postgres::{Database, database};
use harness::raw::RawClient;
use harness::written::Row;
use harness::{client, seed};
use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::service_properties::{CorsRule, ServiceProperties};
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use crate::workload::{TABLE, version};

const SERVERS: usize = 3;

/// Servers over one database, and a client of each.
struct Subject {
    servers: Vec<TableServer>,
    services: Vec<TableServiceClient>,
    _database: Database,
}

impl Subject {
    async fn start() -> Option<Self> {
        let database = database()?;
        let first = TableServer::builder().postgres(database.url());
        let mut servers = vec![first.start().await.unwrap()];
        while servers.len() < SERVERS {
            let next = TableServer::builder().account(servers[0].credential());
            servers.push(next.postgres(database.url()).start().await.unwrap());
        }
        Some(Self {
            services: servers.iter().map(client).collect(),
            servers,
            _database: database,
        })
    }

    /// A table through each server.
    fn tables(&self, name: &str) -> Vec<TableClient> {
        let tables = self.services.iter().map(|service| service.table(name));
        tables.collect()
    }
}

#[tokio::test]
async fn every_server_refuses_a_revoked_policy_with_the_next_request() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let tables = subject.tables(TABLE);
    tables[0].create_table().await.unwrap();
    tables[0].insert(&Row::whole("p", "r", 1)).await.unwrap();
    let guests: Vec<TableClient> = tables
        .iter()
        .map(|table| {
            let url = table.sas().with_policy("guests").sign().unwrap();
            TableClient::from_sas_url(&url.expose()).unwrap()
        })
        .collect();
    let get = |guest: &TableClient| {
        let get = guest.get::<Row>(Row::key("p", "r"));
        async { get.await }
    };
    for _ in 0..20 {
        let policy = StoredAccessPolicy::new("guests").allow(Permissions::READ);
        let expires = policy.expires_at("2100-01-01".parse::<tablesdk::Timestamp>().unwrap());
        let any = |rng: &mut Rng| &tables[rng.usize(..SERVERS)];
        any(&mut rng).set_access_policy([expires]).await.unwrap();
        for read in join_all(guests.iter().map(get)).await {
            assert_eq!(read.unwrap().unwrap().token, 1);
        }
        any(&mut rng).set_access_policy([]).await.unwrap();
        for read in join_all(guests.iter().map(get)).await {
            assert!(read.unwrap_err().is_denied());
        }
    }
}

#[tokio::test]
async fn every_server_sees_tables_that_another_one_creates_and_deletes() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    let tables = subject.tables(TABLE);
    for token in 0..20 {
        let any = |rng: &mut Rng| &tables[rng.usize(..SERVERS)];
        any(&mut rng).create_table().await.unwrap();
        for (number, service) in subject.services.iter().enumerate() {
            assert_eq!(service.tables().collect().await.unwrap(), [TABLE]);
            // Nothing of the table that had the name before.
            let row = number.to_string();
            let found = tables[number].query::<Row>().collect().await.unwrap();
            assert_eq!(found.len(), number);
            let new = Row::whole("p", &row, token);
            tables[number].insert(&new).await.unwrap();
        }
        let again = any(&mut rng).create_table().await;
        assert!(again.unwrap_err().is_conflict());
        assert!(any(&mut rng).delete_table().await.unwrap());
        for (table, service) in tables.iter().zip(&subject.services) {
            assert!(service.tables().collect().await.unwrap().is_empty());
            let read = table.get::<Row>(Row::key("p", "0")).await;
            assert!(read.unwrap_err().is_table_not_found());
            let written = table.upsert_replace(&Row::whole("p", "0", token)).await;
            assert!(written.unwrap_err().is_table_not_found());
        }
    }
}

/// A write that a server has decided on must not be applied to a table that another server deletes
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_outlives_the_table_that_another_server_deletes() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let tables = subject.tables(TABLE);
    for round in 0..15 {
        tables[0].create_table().await.unwrap();
        let writers = (0..12).map(|writer| {
            let table = tables[writer % SERVERS].clone();
            tokio::spawn(async move {
                let mut written = 0;
                loop {
                    let row = Row::whole("p", &format!("{writer}-{written}"), round);
                    match table.insert(&row).await {
                        Ok(_) => written += 1,
                        Err(error) if error.is_table_not_found() => return written,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        // Until there is something to delete.
        let first = || tables[1].query::<Row>().take(1).collect();
        while first().await.unwrap().is_empty() {}
        tables[1].delete_table().await.unwrap();
        let written = join_all(writers).await;
        let written: usize = written.into_iter().map(Result::unwrap).sum();
        assert!(written > 0);
        tables[2].create_table().await.unwrap();
        for table in &tables {
            let found = table.query::<Row>().collect().await.unwrap();
            assert!(found.is_empty(), "{found:?}");
        }
        tables[2].delete_table().await.unwrap();
    }
}

#[tokio::test]
async fn every_server_follows_the_cors_rules_that_another_one_sets() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    for round in 0..10 {
        let origin = format!("https://{round}.example");
        let rule = CorsRule::new(&origin).allow_method("GET");
        let properties = ServiceProperties::default().with_cors([rule]);
        let any = &subject.services[rng.usize(..SERVERS)];
        any.set_properties(properties).await.unwrap();
        for (server, service) in subject.servers.iter().zip(&subject.services) {
            let found = service.properties().await.unwrap().cors.unwrap();
            assert_eq!(found[0].allowed_origins, [&*origin]);
            let raw = RawClient::of(server);
            for (asks, status) in [(&*origin, 200), ("https://old.example", 403)] {
                let origin = format!("Origin: {asks}");
                let headers = [&*origin, "Access-Control-Request-Method: GET"];
                let preflight = raw.send(false, "OPTIONS /Any", &headers, "").await;
                assert_eq!(preflight.unwrap().status, status, "{asks}");
            }
        }
    }
}

#[tokio::test]
async fn etags_increase_although_the_clocks_of_the_servers_differ() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let mut rng = Rng::with_seed(seed("TABLESDK_SHARED_STORE_SEED"));
    // The first is the slowest.
    for (server, minutes) in subject.servers.iter().zip([0, 4, 9]) {
        server.clock().advance(Duration::from_secs(60 * minutes));
    }
    let tables = subject.tables(TABLE);
    tables[2].create_table().await.unwrap();
    let mut newest = i64::MIN;
    for token in 0..150 {
        let table = &tables[rng.usize(..SERVERS)];
        let other = &tables[rng.usize(..SERVERS)];
        let key = || Row::key("p", "r");
        let whole = Row::whole("p", "r", token);
        let etag = match rng.u8(..6) {
            0 => table.upsert_replace(&whole).await.unwrap(),
            1 => table.upsert_merge(&whole).await.unwrap(),
            2 => {
                table.delete(key()).await.unwrap();
                other.insert(&whole).await.unwrap().etag().clone()
            }
            3 => {
                table.delete(key()).await.unwrap();
                let inserted = other.batch("p").insert(&whole).await.unwrap();
                inserted.etags()[0].clone().unwrap()
            }
            _ => {
                let Some(mut stored) = other.get::<Row>(key()).await.unwrap() else {
                    continue;
                };
                *stored = whole;
                table.replace(&mut stored).await.unwrap();
                stored.etag().clone()
            }
        };
        assert!(version(&etag) > newest, "{etag} after {newest}");
        newest = version(&etag);
        for table in &tables {
            let stored = table.get::<Row>(key()).await.unwrap().unwrap();
            assert_eq!((stored.etag(), stored.token), (&etag, token));
            assert_eq!(stored.timestamp(), etag.timestamp());
        }
    }
}
