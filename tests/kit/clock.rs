//! The clock of a server: one time for timestamps, signatures and the timers of its client.

use std::time::Duration;

use tablesdk::transport::Clock as _;
use tablesdk::{RetryPolicy, TableClient, TableEntity, TableServiceClient, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;

use crate::{Employee, over_http_and_in_process};

over_http_and_in_process! {
    async fn timestamps_are_of_the_servers_clock(subject: Subject) {
        let clock = subject.server.clock();
        clock.freeze();
        let table = subject.table(RetryPolicy::none()).await;
        let now = clock.now();
        let stored = table.insert(&Employee::ada()).await.unwrap();
        // Each write has its own timestamp nevertheless.
        let since = stored.timestamp().unwrap().abs_diff(now);
        assert!(since < Duration::from_micros(1), "{since:?}");
        clock.advance(Duration::from_secs(60));
        let stored = table.upsert_replace(&Employee::ada()).await.unwrap();
        assert_eq!(stored.timestamp().unwrap().abs_diff(now), Duration::from_secs(60));
    }
}

#[tokio::test]
async fn a_client_in_process_has_the_clock_of_its_server() {
    let server = TableServer::in_process();
    let then: Timestamp = "2001-02-03T04:05:06Z".parse().unwrap();
    server.clock().set(then);
    // A request with the date of today would be refused.
    let table = TableServiceClient::in_process(&server).table("People");
    table.create_table().await.unwrap();
    let stored = table.insert(&Employee::ada()).await.unwrap();
    let since = stored.timestamp().map(|at| at.abs_diff(then).as_secs());
    assert_eq!(since, Some(0));
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_in_tokio_moves_the_clock() {
    let server = TableServer::in_process();
    let clock = server.clock();
    let began = clock.now();
    let day = Duration::from_secs(24 * 3600);
    let patient = RetryPolicy::none().try_timeout(day * 2).deadline(day * 2);
    let service = harness::client_with(&server, |builder| builder.retry(patient));
    let table = service.table("People");
    table.create_table().await.unwrap();
    server
        .faults()
        .on_writes()
        .times(1)
        .inject(Fault::delay(day));
    let stored = table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(stored.timestamp().map(|at| at.abs_diff(began)), Some(day));
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "session", row_key = "{id}")]
struct Session {
    id: u32,
    #[table(expires)]
    until: Timestamp,
}

/// A session of an hour is over as soon as the clock of the server says so, whatever the system
/// says.
async fn assert_expiry_follows_the_clock(server: &TableServer, table: &TableClient) {
    let (clock, hour) = (server.clock(), Duration::from_secs(3600));
    table.create_table().await.unwrap();
    let second = Duration::from_secs(1);
    let almost = clock.now().saturating_add(Duration::from_secs(3599));
    let until = almost.saturating_add(second);
    table.insert(&Session { id: 1, until }).await.unwrap();
    let is_there = async || {
        // The client learns the time by the response to the first request.
        let found = table.get(Session::key(1)).await.unwrap().is_some();
        let count = table.query::<Session>().count().await.unwrap();
        assert_eq!(count, usize::from(found));
        found
    };
    assert!(is_there().await);
    clock.advance(hour * 2);
    assert!(!is_there().await);
    clock.set(almost);
    assert!(is_there().await);
    // The date of a response has no fraction of a second.
    clock.advance(second * 2);
    assert!(!is_there().await);
    // Not what has expired a moment ago.
    clock.advance(hour);
    assert!(!is_there().await);
    let removed = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!(removed.removed, 1);
}

#[tokio::test]
async fn expiry_over_a_socket_follows_the_clock_of_the_server() {
    let server = TableServer::builder().test_kit().start().await.unwrap();
    let service = TableServiceClient::from_connection_string(&server.connection_string()).unwrap();
    assert_expiry_follows_the_clock(&server, &service.table("Sessions")).await;

    let server = TableServer::start().await.unwrap();
    let builder = TableServiceClient::builder(server.endpoint());
    let builder = builder.credential(server.credential());
    let service = builder.clock(server.clock()).build().unwrap();
    assert_expiry_follows_the_clock(&server, &service.table("Sessions")).await;
}
