//! The clock of a server: one time for timestamps, signatures and the timers of its client.

use std::time::Duration;

use tablesdk::transport::Clock as _;
use tablesdk::{RetryPolicy, TableServiceClient, Timestamp};
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
    assert_eq!(
        stored.timestamp().map(|at| at.abs_diff(then).as_secs()),
        Some(0)
    );
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
