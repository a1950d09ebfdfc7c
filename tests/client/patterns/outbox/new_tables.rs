//! The outbox: steps that create the tables of their entities.

use std::time::Duration;

use tablesdk::outbox::{Outbox, Step};
use tablesdk::rolling::{Period, RollingTable};
use tablesdk::{DynamicEntity, Timestamp};
use tablesdk_server::testing::{Fault, Op};
use tablesdk_server::{ErrorCode, TableServer};

use super::{commit, company, drain, leave, report, tables, title};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_creates_the_table_of_its_period() {
    let server = TableServer::in_process();
    let (table, _) = tables(&server);
    table.create_table().await.unwrap();
    let service = harness::client(&server);
    let log = RollingTable::new(&service, "TitlesOf", Period::Month);
    let journal = server.journal();
    for (day, creations) in [("2024-03-01", 1), ("2024-03-31", 0), ("2024-04-01", 1)] {
        journal.clear();
        let of_month = log.at(at(&format!("{day}T00:00:00Z")));
        commit(
            &table,
            [Step::upsert_replace(&of_month, &title(day)).create_table()],
        )
        .await;
        let stored = of_month.get::<DynamicEntity>(("Titles", "Sales")).await;
        let stored = stored.unwrap().unwrap();
        assert_eq!(stored.properties().read::<String>("Title").unwrap(), day);
        let created = journal.requests().op(Op::CreateTable).count();
        assert_eq!(created, creations, "{day}");
    }
    assert_eq!(drain(&table).await, report(0, 0, 0, 0));
}

/// The response to the creation is lost, and the worker ends: another one goes on.
#[tokio::test(start_paused = true)]
async fn a_creation_without_a_response_is_no_obstacle() {
    let (server, table, _) = company().await;
    let service = harness::client(&server);
    let missing = service.table("Missing");
    leave(
        &table,
        [Step::upsert_merge(&missing, &title("a")).create_table()],
    )
    .await;
    let lost = server
        .faults()
        .on(Op::CreateTable)
        .inject(Fault::lost_response());
    let failed = drain(&table).await;
    lost.remove();
    assert!(failed.applied == 1 || failed.failed == 1, "{failed:?}");
    server.clock().advance(Duration::from_secs(60));
    drain(&table).await;
    let stored = missing.get::<DynamicEntity>(("Titles", "Sales")).await;
    assert!(stored.unwrap().is_some());
}

/// A creation that is refused is the error of the step.
#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_created_is_the_error_of_its_step() {
    let (server, table, _) = company().await;
    let missing = harness::client(&server).table("Missing");
    leave(
        &table,
        [Step::upsert_merge(&missing, &title("a")).create_table()],
    )
    .await;
    let rule = server
        .faults()
        .on(Op::CreateTable)
        .inject(Fault::error(ErrorCode::AuthorizationFailure));
    assert_eq!(drain(&table).await, report(0, 1, 1, 0));
    rule.remove();
    server.clock().advance(Duration::from_secs(60));
    assert_eq!(
        Outbox::new(&table).drain().await.unwrap(),
        report(1, 0, 0, 0)
    );
}
