//! `at_each_request`: which runs it makes, what each finds, and what it says of one that fails.

use std::cell::RefCell;
use std::time::Duration;

use harness::{Employee, client_with, panic_message};
use tablesdk::transport::Clock as _;
use tablesdk::{RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;

/// A server with an employee, and a client that does not try again.
async fn company() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let table = service.table("Company");
    table.create_table().await.unwrap();
    table.insert(&Employee::ada()).await.unwrap();
    (server, table)
}

/// Inserts two employees by two requests, and ends if the first one fails.
async fn insert_two(table: &TableClient) -> Result<(), tablesdk::Error> {
    for id in ["2", "3"] {
        table.insert(&Employee::new(id, "Grace", 50)).await?;
    }
    Ok(())
}

async fn count(table: &TableClient) -> usize {
    table.query::<Employee>().count().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_fault_hits_each_request_once() {
    let (server, table) = company().await;
    let stored = RefCell::new(Vec::new());
    let faults = [Fault::reset(), Fault::lost_response()];
    let runs = server.at_each_request().faults(faults.clone()).run(
        async || insert_two(&table).await,
        async |run| {
            let is_faulty = run.outcome.is_some_and(|outcome| outcome.is_err());
            assert_eq!(is_faulty, run.fault.is_some());
            let which = |fault| faults.iter().position(|it| *it == fault);
            let which = run.fault.and_then(which);
            let found = (which, run.request, count(&table).await);
            stored.borrow_mut().push(found);
        },
    );
    assert_eq!(runs.await, 4);
    let expected = [
        (Some(0), 1, 1),
        (Some(0), 2, 2),
        (None, 3, 3),
        (Some(1), 1, 2),
        (Some(1), 2, 3),
        (None, 3, 3),
    ];
    assert_eq!(stored.into_inner(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_usual_faults_are_those_of_networks_and_of_the_service() {
    let (server, table) = company().await;
    let faults = RefCell::new(Vec::new());
    let runs = server.at_each_request().run(
        async || drop(insert_two(&table).await),
        async |run| {
            let shown = run.fault.filter(|_| run.request == 1);
            let shown = shown.map(|fault| fault.to_string());
            faults.borrow_mut().extend(shown);
        },
    );
    assert_eq!(runs.await, (8 + 2) * 2);
    assert_eq!(
        faults.into_inner(),
        [
            "not carried out, response ServerBusy",
            "not carried out, response InternalError",
            "carried out, response OperationTimedOut",
            "not carried out, connection reset",
            "carried out, connection reset",
            "carried out 2s later, connection reset",
            "carried out twice, response sent",
            "carried out, response cut off after 100 bytes of its body",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_ends_before_and_after_each_request_is_carried_out() {
    let (server, table) = company().await;
    let stored = RefCell::new(Vec::new());
    let runs = server.at_each_request().client_ends().run(
        async || insert_two(&table).await.unwrap(),
        async |run| {
            assert!(run.fault.is_none());
            let found = (run.outcome.is_some(), count(&table).await);
            stored.borrow_mut().push(found);
        },
    );
    assert_eq!(runs.await, 4);
    let expected = [
        (false, 1),
        (false, 2),
        (true, 3),
        (false, 2),
        (false, 3),
        (true, 3),
    ];
    assert_eq!(stored.into_inner(), expected);
}

#[tokio::test(start_paused = true)]
async fn each_run_begins_and_ends_with_the_same_tables_and_clock() {
    let (server, table) = company().await;
    let before = (server.dump().unwrap(), server.clock().now());
    let runs = server.at_each_request().faults([Fault::reset()]).run(
        async || {
            assert_eq!((server.dump().unwrap(), server.clock().now()), before);
            drop(insert_two(&table).await);
        },
        async |_| server.clock().advance(Duration::from_secs(3600)),
    );
    assert_eq!(runs.await, 2);
    assert_eq!((server.dump().unwrap(), server.clock().now()), before);
    assert!(!server.clock().is_frozen());
}

#[tokio::test(start_paused = true)]
async fn a_late_request_has_arrived_before_the_check() {
    let (server, table) = company().await;
    let late = Fault::reset().applied_after(Duration::from_secs(600));
    let runs = server.at_each_request().faults([late]).run(
        async || drop(insert_two(&table).await),
        async |run| {
            let expected = if run.request == 1 { 2 } else { 3 };
            assert_eq!(count(&table).await, expected);
        },
    );
    assert_eq!(runs.await, 2);
}

#[tokio::test(start_paused = true)]
async fn every_third_request_is_another_one_for_each_fault() {
    let (server, table) = company().await;
    let hit = RefCell::new(Vec::new());
    let faults = [Fault::duplicate(), Fault::delayed_response(Duration::ZERO)];
    let runs = server.at_each_request().faults(faults).every(3).run(
        async || {
            for _ in 0..7 {
                count(&table).await;
            }
        },
        async |run| hit.borrow_mut().extend(run.fault.map(|_| run.request)),
    );
    assert_eq!(runs.await, 5);
    assert_eq!(hit.into_inner(), [1, 4, 7, 2, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_fails_is_reported_with_the_fault_and_the_requests() {
    let (server, table) = company().await;
    let broken = tokio::task::LocalSet::new();
    let run = broken.run_until(async {
        let both = async move {
            let faults = [Fault::lost_response(), Fault::reset()];
            let runs = server.at_each_request().faults(faults);
            let action = async || insert_two(&table).await;
            let check = async |_| assert_ne!(count(&table).await, 2, "one without the other");
            runs.run(action, check).await;
        };
        tokio::task::spawn_local(both).await.unwrap_err()
    });
    let panic = run.await.into_panic();
    let text = panic_message(&*panic);
    let lines: Vec<_> = text.lines().collect();
    let first = "request 1 of the action: carried out, connection reset";
    assert_eq!(lines[0], first);
    assert!(text.contains("one without the other"), "{text}");
    let of_action = r#"InsertEntity Company("Sales", "2"): 204, with a fault"#;
    assert!(lines.contains(&of_action), "{text}");
}

#[tokio::test]
#[should_panic(expected = "at_each_request needs a server in memory")]
async fn a_data_directory_has_no_snapshots() {
    let directory = tempfile::tempdir().unwrap();
    let durability = tablesdk_server::Durability::Sync;
    let builder = TableServer::builder().data(directory.path(), durability);
    let server = builder.in_process().unwrap();
    let runs = server.at_each_request();
    runs.run(async || (), async |_| ()).await;
}
