//! The outbox: what a writer does, and what it leaves to workers.

use std::future::IntoFuture as _;
use std::time::Duration;

use harness::client_with;
use harness::company::indexed::{Employee, checked};
use tablesdk::action::Batch;
use tablesdk::outbox::{Outbox, Step};
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::{sleep, timeout};

use super::{
    HOUR, by_number, commit, company, department, drain, leave, outbox_rows, renamed, report,
    set_title, stored_title, title, write,
};

#[tokio::test(start_paused = true)]
async fn a_step_is_applied_at_once_and_leaves_nothing_but_the_head() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    let batch = table.batch("Sales").insert(&department("Sales"));
    let result = batch.step(set_title(&titles, "Sales")).await;
    assert_eq!(result.unwrap().etags().len(), 1);
    // The head, the pointer, the batch, the log, the entity twice, the log, and the pointer.
    assert_eq!(journal.requests().count(), 8);
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn entities_have_their_new_etags_before_steps_are_applied() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let key = ("Sales", "dept");
    let mut sales = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let old = sales.etag().clone();
    let slow = server.faults().on_writes().table("Titles");
    let injected = slow.inject(Fault::delay(HOUR));
    let step = set_title(&titles, "a");
    let batch = table.batch("Sales").replace(&mut sales).step(step);
    let limited = timeout(Duration::from_secs(1), batch.into_future()).await;
    assert!(limited.is_err());
    assert_eq!(injected.hits(), 1);
    assert_ne!(*sales.etag(), old);
    table.replace(&mut sales).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_writer_does_not_apply_a_long_log_of_others() {
    let (server, table, titles) = company().await;
    for round in 0..3 {
        let steps = (0..99).map(|n| by_number(&titles, round * 99 + n));
        let batch = steps.fold(table.batch("Sales"), Batch::step);
        batch.leave_steps().await.unwrap();
    }
    let journal = server.journal();
    commit(&table, [by_number(&titles, 297)]).await;
    // The head, the pointer, the batch, the log, 100 steps, their deletes, and the pointer of the
    // first batch.
    assert_eq!(journal.requests().count(), 206);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 100);
    assert_eq!(drain(&table).await, report(198, 0, 0, 0));
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The other writer commits after this one, and before this one reads the log.
#[tokio::test(start_paused = true)]
async fn a_writer_does_not_apply_the_steps_behind_its_own() {
    let (server, table, titles) = company().await;
    let reads = server.faults().on(Op::QueryEntities).nth(2);
    let injected = reads.inject(Fault::delay(Duration::from_secs(10)));
    let own = commit(&table, [by_number(&titles, 1)]);
    let other = async {
        sleep(Duration::from_secs(5)).await;
        leave(&table, [by_number(&titles, 2)]).await;
    };
    tokio::join!(own, other);
    assert_eq!(injected.hits(), 1);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
    assert_eq!(drain(&table).await.applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_batch_limits_its_steps() {
    let (server, table, titles) = company().await;
    let slow = server.faults().on_any().table("Titles");
    slow.inject(Fault::delay(Duration::from_secs(2)));
    let batch = write(&table, (0..20).map(|n| by_number(&titles, n)));
    // One step takes 4 seconds.
    let limit = Duration::from_secs(5);
    let limited = timeout(limit * 2, batch.deadline(limit).into_future());
    limited.await.unwrap().unwrap();
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
    assert_eq!(drain(&table).await.applied, 20);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_has_steps() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let rename = || {
        table.transaction("Sales", async |tx| {
            let found = tx.get::<DynamicEntity>(("Sales", "dept")).await?;
            let mut found = found.ok_or("none")?;
            found.properties_mut().set("Title", "b");
            tx.replace(found).step(set_title(&titles, "b"));
            Ok(())
        })
    };
    rename().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("b"));
    titles.delete(("Titles", "Sales")).await.unwrap();
    rename().leave_steps().exactly_once().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(drain(&table).await.applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
    // Steps alone: what was read is checked all the same.
    let mirror = table.transaction("Sales", async |tx| {
        let found = tx.get::<DynamicEntity>(("Sales", "dept")).await?;
        let name: String = found.ok_or("none")?.properties().read("Title")?;
        tx.step(Step::upsert_replace(&titles, &title(&name)));
        Ok(())
    });
    mirror.await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn steps_and_indexes_are_committed_together() {
    let (server, table, titles) = company().await;
    let ada = Employee::new(1, "Lovelace", Some("ada@contoso.com"));
    for (id, name) in [(1, "one"), (2, "two")] {
        let employee = Employee { id, ..ada.clone() };
        let step = set_title(&titles, name);
        let batch = table.batch("Sales").insert(&employee).step(step);
        let result = if id == 1 {
            batch.await
        } else {
            batch.exactly_once().await
        };
        // The second one has the entry of the first one.
        assert_eq!(result.is_ok(), id == 1);
        if let Err(error) = result {
            let entry = (error.index(), error.batch_index());
            assert_eq!(entry, (Some("ByEmail"), Some(0)), "{error}");
        }
        checked(&table).await;
    }
    assert_eq!(stored_title(&titles).await.as_deref(), Some("one"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_keeps_its_index_and_stores_no_step() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let batch = table
        .batch("Sales")
        .insert(&DynamicEntity::new("Sales", "other"))
        .insert(&department("b"))
        .step(set_title(&titles, "b"));
    let error = batch.await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.batch_index(), Some(1));
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(stored_title(&titles).await, None);
}

/// Nothing of the program was sent when the pointer fails.
#[tokio::test(start_paused = true)]
async fn a_write_whose_pointer_is_lost_is_not_of_unknown_outcome() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let table = service.table("Company");
    table.create_table().await.unwrap();
    let pointers = server.faults().on(Op::InsertOrMergeEntity);
    let injected = pointers.inject(Fault::lost_response());
    let error = write(&table, [renamed("a")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    assert_eq!(injected.hits(), 1);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    sleep(Duration::from_secs(61)).await;
    drain(&table).await;
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A worker has moved the head to delete the pointer, which the writer then has to write again,
/// under another ETag.
#[tokio::test(start_paused = true)]
async fn a_writer_that_was_taken_for_lost_writes_its_pointer_again() {
    let (server, table, titles) = company().await;
    let batches = server.faults().on(Op::Batch);
    let slow = Fault::delay(Duration::from_secs(25));
    let slow = batches.times(1).inject(slow);
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let late = Fault::delay(Duration::from_secs(20));
    let late = deletes.times(1).inject(late);
    let write = leave(&table, [set_title(&titles, "a")]);
    let worker = async {
        sleep(Duration::from_secs(1)).await;
        server.clock().advance(Duration::from_secs(61));
        Outbox::new(&table).drain().await
    };
    let ((), drained) = tokio::join!(write, worker);
    assert_eq!(drained.unwrap(), report(0, 0, 0, 0));
    assert_eq!((slow.hits(), late.hits()), (1, 1));
    assert_eq!(drain(&table).await.applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// Both writers read the head before either of them commits.
#[tokio::test(start_paused = true)]
async fn two_writers_of_a_partition_both_succeed() {
    let (server, table, titles) = company().await;
    let slow = Fault::delay(Duration::from_secs(1));
    server.faults().on(Op::Batch).times(2).inject(slow);
    let write = |n| leave(&table, [by_number(&titles, n)]);
    tokio::join!(write(1), write(2), write(3));
    assert_eq!(drain(&table).await.applied, 3);
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test]
async fn bad_steps_are_refused_before_anything_is_sent() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    let wide = (0..245).fold(title("wide"), |entity, n| entity.with(format!("P{n}"), n));
    for (step, expected) in [
        (
            Step::upsert_replace(&titles, &title("a").with("TablesdkBody", 1)),
            "reserved for the outbox",
        ),
        (
            Step::delete(&titles, ("Titles", "Sales")).create_table(),
            "a delete step does not create a table",
        ),
        (
            renamed("a").create_table(),
            "a message step does not create a table",
        ),
        (Step::upsert_merge(&titles, &wide), "properties"),
        (Step::delete(&titles, ("a/b", "1")), "'/'"),
        (renamed(&"x".repeat(40_000)), "32768"),
    ] {
        let error = write(&table, [step]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let many = write(&table, (0..99).map(|_| renamed("a")));
    let error = many.await.unwrap_err().to_string();
    assert!(error.contains("99 steps and the head"), "{error}");
    // More than 4 MiB together.
    let large = write(&table, (0..50).map(|_| renamed(&"€".repeat(32_000))));
    let error = large.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert_eq!(journal.requests().count(), 0);
    table.batch("Sales").insert(&department("a")).await.unwrap();
    assert_eq!(journal.requests().count(), 1);
}
