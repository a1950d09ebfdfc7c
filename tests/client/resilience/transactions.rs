//! `transaction` under faults: lost responses, deadlines, and futures that are dropped. In process,
//! on virtual time.

use harness::Subject;
use harness::outcome::{Found, found};
use harness::proxy::{Reply, batch_refusal};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use tablesdk::{ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::{Instant, sleep, timeout};

use crate::observability::Observed;
use crate::{Employee, secs, start};

const BATCH: Op = Op::Batch;

/// Makes Ada a year older, and counts the rounds.
async fn grow_older(
    table: &TableClient,
    rounds: &AtomicU32,
    exactly_once: bool,
) -> tablesdk::Result<i32> {
    let run = table.transaction("Sales", async |tx| {
        rounds.fetch_add(1, Ordering::Relaxed);
        let ada = tx.get(Employee::key("Sales", "1")).await?;
        let mut ada = ada.ok_or("she was inserted")?;
        ada.age += 1;
        let age = ada.age;
        tx.replace(ada)
            .upsert_merge(&Employee::new("2", "Grace", age));
        Ok(age)
    });
    if exactly_once {
        run.exactly_once().await
    } else {
        run.await
    }
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_check_shows_the_entity_of_the_first_change() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.next(BATCH, Fault::lost_response());
    let rounds = AtomicU32::new(0);
    let error = table.transaction("Sales", async |tx| {
        rounds.fetch_add(1, Ordering::Relaxed);
        tx.get(Employee::key("Sales", "1")).await?;
        tx.upsert_merge(&Employee::new("2", "Grace", 50));
        Ok(())
    });
    let error = error.await.unwrap_err();
    assert_eq!(found(&error), Found::Equal, "{error:?}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "2");
    assert_eq!((error.batch_index(), rounds.into_inner()), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn an_exactly_once_transaction_starts_over_after_its_outcome_is_known() {
    let (subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let other = subject.other().table("Tests");
    // The request is lost, and another client writes before the retry.
    faults.next(BATCH, Fault::no_response());
    let rounds = AtomicU32::new(0);
    let (age, ()) = tokio::join!(grow_older(&table, &rounds, true), async {
        sleep(secs(1)).await;
        let mut ada = Employee::find(&other).await.unwrap();
        ada.age = 60;
        other.replace(&mut ada).await.unwrap();
    });
    assert_eq!(age.unwrap(), 61);
    assert_eq!(rounds.into_inner(), 2);
    assert_eq!(Employee::find(&table).await.unwrap().age, 61);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_that_names_no_change_is_a_conflict_if_only_a_read_can_cause_it() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let changed = "UpdateConditionNotSatisfied";
    let exists = "EntityAlreadyExists";
    for (status, code, starts_over) in [(412, changed, true), (409, exists, false)] {
        // The index is that of an insert that was not read.
        let refused = batch_refusal(0, status, code);
        proxy.plan(BATCH, [Reply::Respond(refused)]);
        let rounds = AtomicU32::new(0);
        let hired = table.transaction("Sales", async |tx| {
            rounds.fetch_add(1, Ordering::Relaxed);
            tx.get(Employee::key("Sales", "1")).await?;
            tx.insert(&Employee::new("2", "Grace", 50));
            Ok(())
        });
        assert_eq!(hired.await.is_ok(), starts_over, "{status}");
        assert_eq!(rounds.into_inner(), if starts_over { 2 } else { 1 });
        table.delete(Employee::key("Sales", "2")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn all_rounds_and_the_closure_have_one_deadline() {
    let (subject, table, _) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let (other, journal) = (subject.other().table("Tests"), subject.server().journal());
    let age = AtomicI64::new(0);
    let rounds = AtomicU32::new(0);
    let started = Instant::now();
    let error = table.transaction("Sales", async |tx| {
        rounds.fetch_add(1, Ordering::Relaxed);
        let ada = tx.get(Employee::key("Sales", "1")).await?;
        sleep(secs(10)).await;
        let age = age.fetch_add(1, Ordering::Relaxed);
        let age = i32::try_from(age)?;
        other.upsert_merge(&Employee::new("1", "Ada", age)).await?;
        tx.replace(ada.ok_or("she was inserted")?);
        Ok(())
    });
    let error = error.deadline(secs(25)).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Transport, "nothing was written");
    assert_eq!(started.elapsed().as_secs(), 25);
    assert_eq!(error.elapsed().as_secs(), 25);
    assert_eq!((rounds.into_inner(), error.attempts()), (3, 5));
    assert_eq!(journal.requests().op(BATCH).count(), 2);

    let never = table.transaction("Sales", async |_| {
        std::future::pending::<()>().await;
        Ok(())
    });
    let error = never.deadline(secs(3)).await.unwrap_err();
    assert!(error.is_timeout() && error.attempts() == 0, "{error:?}");
    assert!(error.to_string().contains("closure"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_read_without_a_response_is_named_at_the_deadline() {
    let (_subject, table, faults) = start().await;
    faults.next(Op::QueryEntity, Fault::delay(secs(60)));
    let read = table.transaction("Sales", async |tx| {
        Ok(tx.get(Employee::key("Sales", "1")).await?.is_some())
    });
    let error = read.deadline(secs(3)).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(!error.to_string().contains("closure"), "{error}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_ignores_a_failed_read_cannot_write() {
    let (subject, table, faults) = start().await;
    let journal = subject.server().journal();
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    faults.next(Op::QueryEntity, denied);
    let write = table.transaction("Sales", async |tx| {
        let _ = tx.get(Employee::key("Sales", "1")).await;
        tx.upsert_replace(&Employee::ada());
        Ok(())
    });
    let error = write.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    assert_eq!(journal.requests().op(BATCH).count(), 0);

    faults.on(Op::QueryEntity).inject(Fault::delay(secs(10)));
    let impatient = table.transaction("Sales", async |tx| {
        let read = timeout(secs(1), tx.get(Employee::key("Sales", "1")));
        assert!(read.await.is_err());
        tx.upsert_replace(&Employee::ada());
        Ok(())
    });
    assert_eq!(impatient.await.unwrap_err().kind(), ErrorKind::Input);
    let other = subject.other().table("Tests");
    assert_eq!(other.query::<Employee>().count().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_read_counts_the_attempts_of_all_rounds() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let changed = batch_refusal(0, 412, "UpdateConditionNotSatisfied");
    proxy.plan(BATCH, [Reply::Respond(changed)]);
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    let reads = subject.server().faults().on(Op::QueryEntity);
    reads.skip(1).inject_each([Fault::reset(), denied]);
    let rounds = AtomicU32::new(0);
    let error = grow_older(&table, &rounds, false).await.unwrap_err();
    assert!(error.is_denied(), "{error:?}");
    assert_eq!((error.attempts(), rounds.into_inner()), (4, 2));
    assert_eq!(error.operation(), Some("transaction"));
    assert_eq!(error.key().unwrap().row_key().as_str(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_is_dropped_has_written_all_changes_or_none() {
    let observed = Observed::start(RetryPolicy::exponential()).await;
    let table = &observed.table;
    table.insert(&Employee::ada()).await.unwrap();
    for (op, fault, age) in [
        (Op::QueryEntity, Fault::no_response().applied(), 36),
        (BATCH, Fault::no_response(), 36),
        (BATCH, Fault::no_response().applied(), 37),
    ] {
        observed.take();
        observed.faults.next(op, fault);
        let rounds = AtomicU32::new(0);
        let dropped = timeout(secs(1), grow_older(table, &rounds, false)).await;
        assert!(dropped.is_err());
        let report = observed.only();
        assert_eq!(report.operation, "transaction");
        assert_eq!(report.error.as_deref(), Some("cancelled"));
        assert_eq!(Employee::find(table).await.unwrap().age, age);
        let second = table.get(Employee::key("Sales", "2")).await.unwrap();
        assert_eq!(second.map(|it| it.age), (age > 36).then_some(age));
    }
}
