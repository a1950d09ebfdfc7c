//! The outbox: workers, and how they find what is left.

use std::time::Duration;

use harness::{client, client_with};
use tablesdk::outbox::{Outbox, Received, Step};
use tablesdk::{DynamicEntity, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::{
    Renamed, by_number, commit, company, drain, leave, outbox_rows, renamed, report, set_title,
    stored_title, title, write,
};

#[tokio::test(start_paused = true)]
async fn a_step_for_later_is_applied_by_a_worker() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    leave(&table, [set_title(&titles, "Sales")]).await;
    assert_eq!(journal.requests().count(), 3);
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(drain(&table).await, report(1, 0, 0, 0));
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(drain(&table).await, report(0, 0, 0, 0));
}

/// The service may end a page after any entity, also after the head of the log.
#[tokio::test(start_paused = true)]
async fn a_worker_applies_steps_on_a_page_of_their_own() {
    let server = TableServer::builder().max_page_entities(1);
    let server = server.start().await.unwrap();
    let service = client(&server);
    let (table, titles) = (service.table("Company"), service.table("Titles"));
    for table in [&table, &titles] {
        table.create_table().await.unwrap();
    }
    for n in [1, 2] {
        leave(&table, [by_number(&titles, n)]).await;
    }
    assert_eq!(drain(&table).await.applied, 2);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 2);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// By the outbox of a worker of one partition, without the search for others.
#[tokio::test(start_paused = true)]
async fn a_worker_drains_one_partition() {
    let (server, table, titles) = company().await;
    for (department, n) in [("Sales", 1), ("Legal", 2)] {
        let batch = table.batch(department).step(by_number(&titles, n));
        batch.leave_steps().await.unwrap();
    }
    let journal = server.journal();
    let of_legal = Outbox::new(&table).drain().partition("Legal");
    assert_eq!(of_legal.await.unwrap(), report(1, 0, 0, 0));
    // The log, the attempt, the entity twice, the log, and the pointer.
    assert_eq!(journal.requests().count(), 6);
    let of_legal = titles.get::<DynamicEntity>(("Titles", "2")).await;
    assert!(of_legal.unwrap().is_some());
    assert_eq!(drain(&table).await.applied, 1);
}

#[tokio::test(start_paused = true)]
async fn the_program_does_not_see_the_outbox() {
    let (server, table, _titles) = company().await;
    commit(&table, [renamed("a")]).await;
    assert_eq!(outbox_rows(&server).len(), 3);
    let query = || table.query::<DynamicEntity>();
    assert_eq!(query().count().await.unwrap(), 1);
    assert_eq!(query().collect().await.unwrap().len(), 1);
    let deleted = query().delete_all().await.unwrap();
    assert_eq!(deleted.progress().written, 1);
    assert_eq!(outbox_rows(&server).len(), 3);
    assert_eq!(query().count().await.unwrap(), 0);
}

/// The worker that applied it has the log of the table that was deleted since.
#[tokio::test(start_paused = true)]
async fn a_late_delete_does_not_remove_a_step_of_a_table_made_again() {
    for is_message in [false, true] {
        let (server, table, titles) = company().await;
        let written = titles.clone();
        let step = |name| {
            if is_message {
                renamed(name)
            } else {
                set_title(&titles, name)
            }
        };
        leave(&table, [step("old")]).await;
        let deletes = server.faults().on(Op::DeleteEntity).times(1);
        let late = Fault::reset().applied_after(Duration::from_secs(60));
        let injected = deletes.inject(late);
        let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
            let written = written.clone();
            async move {
                written.upsert_replace(&title(&message.title)).await?;
                Ok(())
            }
        });
        let once = outbox.drain().retry(RetryPolicy::none());
        drop(once.await);
        assert_eq!(injected.hits(), 1);
        table.delete_table().await.unwrap();
        table.create_table().await.unwrap();
        leave(&table, [step("new")]).await;
        sleep(Duration::from_secs(90)).await;
        assert_eq!(outbox.drain().await.unwrap().applied, 1);
        assert_eq!(stored_title(&titles).await.as_deref(), Some("new"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pointer_without_entries_is_deleted_when_no_commit_can_follow() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let (table, titles) = (service.table("Company"), service.table("Titles"));
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    let batches = server.faults().on(Op::Batch);
    let late = Fault::reset().applied_after(Duration::from_secs(180));
    let injected = batches.times(1).inject(late);
    let written = write(&table, [set_title(&titles, "a")]).await;
    let error = written.unwrap_err();
    assert_eq!((error.is_outcome_unknown(), injected.hits()), (true, 1));
    drain(&table).await;
    assert_eq!(outbox_rows(&server).len(), 1, "the commit may be in flight");
    sleep(Duration::from_secs(61)).await;
    drain(&table).await;
    assert_eq!(outbox_rows(&server), ["head"]);
    // The commit arrives now, and is refused.
    sleep(Duration::from_secs(180)).await;
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
}

/// More entries than fit into a page.
#[tokio::test(start_paused = true)]
async fn a_long_log_is_applied_in_its_order() {
    let (server, table, titles) = company().await;
    let text = "x".repeat(30_000);
    for round in 0..8 {
        let steps = (0..12).map(|n| {
            let entity = title(&format!("{round}-{n}"));
            let entity = entity.with("A", text.as_str()).with("B", text.as_str());
            Step::upsert_merge(&titles, &entity)
        });
        leave(&table, steps).await;
    }
    assert_eq!(drain(&table).await, report(96, 0, 0, 0));
    assert_eq!(stored_title(&titles).await.as_deref(), Some("7-11"));
    sleep(Duration::from_secs(61)).await;
    drain(&table).await;
    assert_eq!(outbox_rows(&server), ["head"]);
}
