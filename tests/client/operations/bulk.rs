//! Bulk runs: every item arrives, the items of one entity keep their order, batches are full, and
//! each failed item is reported.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness::proxy::Reply;
use harness::{Subject, seeded};
use tablesdk::action::{BulkFailure, BulkProgress};
use tablesdk::key::EntityKey;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, Stored, TableClient, Value};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

fn row(partition: &str, row: &str, value: i32) -> DynamicEntity {
    DynamicEntity::new(partition, row).with("Value", value)
}

async fn insert_all(
    table: &TableClient,
    rows: impl Iterator<Item = DynamicEntity> + Send + 'static,
) {
    let inserted = table.bulk().insert(stream::iter(rows)).await;
    assert!(inserted.unwrap().is_success());
}

async fn values(table: &TableClient) -> BTreeMap<(String, String), i32> {
    let rows = table.query::<DynamicEntity>().collect().await.unwrap();
    let value = |row: &DynamicEntity| row.properties().read::<i32>("Value").unwrap();
    let key = |row: &DynamicEntity| (row.partition_key().to_owned(), row.row_key().to_owned());
    rows.iter().map(|row| (key(row), value(row))).collect()
}

on_both_transports! {
    async fn bulk_verbs_take_references(subject: Subject) {
        let table = subject.table().await;
        let rows: Vec<_> = (0..150).map(|id| row("a", &id.to_string(), 1)).collect();
        let report = table.bulk().insert(stream::iter(&rows)).await.unwrap();
        assert_eq!(report.progress().written, 150);
        // A reference in a result: the input may fail.
        let input = rows.iter().map(Ok).chain([Err("the file is damaged")]);
        let error = table.bulk().upsert_replace(stream::iter(input)).await.unwrap_err();
        assert_eq!(error.report().progress().written, 150);
        let found = rows.iter().filter(|row| row.row_key().starts_with('1'));
        let report = table.bulk().upsert_merge(stream::iter(found)).await.unwrap();
        assert_eq!(report.progress().written, 61);
        assert_eq!(values(&table).await.len(), rows.len());
    }

    async fn every_bulk_verb_changes_all_entities(subject: Subject) {
        let table = subject.table().await;
        let rows = || (0..450).map(|id| row(["a", "b", "c"][id % 3], &id.to_string(), 1));
        let mut told = Vec::new();
        let run = table.bulk().insert(stream::iter(rows())).progress(|progress| told.push(progress.clone()));
        let report = run.await.unwrap();
        assert!(report.is_success());
        let BulkProgress { read, written, failed, requests, resume_at, .. } = *report.progress();
        assert_eq!((read, written, failed, requests, resume_at), (450, 450, 0, 6, 450));
        assert_eq!(told.len(), 6, "one report for each batch");
        assert!(told.is_sorted_by_key(|progress| progress.written));
        assert_eq!(values(&table).await.len(), 450);

        let report = table.bulk().insert(stream::iter(rows())).await.unwrap();
        assert_eq!((report.progress().written, report.failures().len()), (0, 450));
        assert!(report.failures().iter().all(|failure| failure.error().is_conflict()));

        let changed = rows().map(|row| row.with_properties([("Other", Value::Int32(2))].into_iter().collect()));
        assert!(table.bulk().upsert_merge(stream::iter(changed.clone())).await.unwrap().is_success());
        let both = table.get::<DynamicEntity>(("a", "0")).await.unwrap().unwrap();
        assert_eq!(both.properties().len(), 2);
        assert!(table.bulk().upsert_replace(stream::iter(changed)).await.unwrap().is_success());
        let one = table.get::<DynamicEntity>(("a", "0")).await.unwrap().unwrap();
        assert_eq!(one.properties().len(), 1);

        let keys = (0..460).map(|id| (["a", "b", "c"][id % 3], id.to_string()));
        let report = table.bulk().delete(stream::iter(keys)).await.unwrap();
        assert_eq!((report.progress().written, report.progress().missing), (450, 10));
        assert!(report.is_success());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_random_bulk_run_equals_single_writes(subject: Subject) {
        let table = subject.table().await;
        let mut random = seeded();
        let mut expected = BTreeMap::new();
        let rows: Vec<_> = (0..2_000).map(|value| {
            let (partition, id) = (random.u8(..7).to_string(), random.u8(..60).to_string());
            expected.insert((partition.clone(), id.clone()), value);
            row(&partition, &id, value)
        }).collect();
        let buffer = random.usize(1..300);
        let run = table.bulk().upsert_replace(stream::iter(rows)).concurrency(random.usize(1..20)).buffer(buffer);
        assert_eq!(run.await.unwrap().progress().written, 2_000);
        assert_eq!(values(&table).await, expected);
    }

    async fn an_entity_that_fails_does_not_stop_the_others(subject: Subject) {
        let table = subject.table().await;
        for taken in ["7", "50", "120", "121", "122", "123", "124"] {
            table.insert(&Employee::new(taken, "Taken", 1)).await.unwrap();
        }
        let employees = (0..200).map(|id| {
            let name = if id == 33 { "x".repeat(40_000) } else { "Ada".to_owned() };
            let key = if id == 44 { "a/b".to_owned() } else { id.to_string() };
            Employee { name, ..Employee::new(&key, "", 1) }
        });
        let report = table.bulk().insert(stream::iter(employees)).await.unwrap();
        let mut failed: Vec<_> = report.failures().iter().map(|failure| {
            let row = failure.key().map(|key| key.row_key().as_str().to_owned());
            (failure.index(), row, failure.error().kind())
        }).collect();
        failed.sort_by_key(|(index, ..)| *index);
        let taken = |id: u64| (id, Some(id.to_string()), ErrorKind::Service);
        let expected = [
            taken(7), (33, Some("33".to_owned()), ErrorKind::Input), (44, None, ErrorKind::Input), taken(50),
            taken(120), taken(121), taken(122), taken(123), taken(124),
        ];
        assert_eq!(failed, expected);
        let service = |failure: &&BulkFailure| failure.error().kind() == ErrorKind::Service;
        assert!(report.failures().iter().filter(service).all(|failure| failure.error().is_conflict()));
        assert_eq!((report.progress().written, report.progress().resume_at), (191, 200));
        assert_eq!(table.query::<Employee>().filter(|e| e.name.eq("Ada")).count().await.unwrap(), 191);
    }

    async fn a_missing_table_ends_the_run(subject: Subject) {
        let table = subject.service.table("Missing");
        let endless = (0..).map(|id: u64| row("a", &id.to_string(), 1));
        let error = table.bulk().insert(stream::iter(endless)).await.unwrap_err();
        assert_eq!(error.error().unwrap().code().unwrap().as_str(), "TableNotFound");
        assert_eq!((error.report().progress().written, error.report().progress().resume_at), (0, 0));
        let error = table.query::<Employee>().delete_all().await.unwrap_err();
        assert_eq!(error.error().unwrap().code().unwrap().as_str(), "TableNotFound");
    }

    async fn delete_all_deletes_what_the_query_finds(subject: Subject) {
        let table = subject.table().await;
        let rows = (0..900).map(|id| row(["a", "b"][id % 2], &format!("{id:04}"), i32::try_from(id).unwrap()));
        insert_all(&table, rows).await;
        let query = || table.query::<DynamicEntity>().odata("Value lt 600").page_size(70);
        let report = query().delete_all().dry_run().await.unwrap();
        assert_eq!((report.progress().read, report.progress().written), (600, 0));
        assert_eq!(query().count().await.unwrap(), 600);
        let mut told = 0;
        let report = query().partition("a").take(150).delete_all().concurrency(2).progress(|_| told += 1).await.unwrap();
        assert_eq!((report.progress().read, report.progress().written, told > 0), (150, 150, true));
        let report = query().delete_all().if_unchanged().await.unwrap();
        assert_eq!(report.progress().written, 450);
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 300);
    }
}

#[tokio::test]
async fn concurrent_changes_do_not_fail_delete_all() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let rows = (0..100).map(|id| row("a", &format!("{id:03}"), 1));
    insert_all(&table, rows).await;
    for conditional in [false, true] {
        // Found, and gone or changed when the batch comes.
        let mut found = table.query::<DynamicEntity>().collect().await.unwrap();
        let (gone, changed) = (found.remove(3), found.remove(7));
        let direct = table.clone();
        let meddle = async move {
            direct.delete_stored(&gone).await.unwrap();
            let changed = row("a", changed.row_key(), 2);
            direct.upsert_replace(&changed).await.unwrap();
        };
        let page = table.query::<DynamicEntity>().page(None).await.unwrap();
        let slow = Fault::delay(Duration::from_millis(50));
        let mut delayed = faults.next(Op::Batch, slow);
        let delete = table.query::<DynamicEntity>().delete_all();
        let delete = if conditional {
            delete.if_unchanged()
        } else {
            delete
        };
        let meddle = async {
            // The query ends before a batch is sent, and the batch waits.
            delayed.wait_for_hits(1).await;
            meddle.await;
        };
        let (report, ()) = futures::join!(delete.into_future(), meddle);
        let report = report.unwrap();
        let progress = report.progress();
        assert!(report.is_success(), "{report:?}");
        let left = table.query::<DynamicEntity>().count().await.unwrap();
        let all = page.items.len() as u64;
        if conditional {
            assert_eq!(
                (progress.written, progress.missing, progress.changed, left),
                (all - 2, 1, 1, 1)
            );
        } else {
            assert_eq!((progress.written, progress.missing, left), (all - 1, 1, 0));
            let rows = (0..100).map(|id| row("a", &format!("{id:03}"), 1));
            insert_all(&table, rows).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_is_reported_for_each_entity() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let batch = Op::Batch;
    proxy.plan(batch, [Reply::Forward, Reply::Forward, Reply::Refuse]);
    let busy = Fault::error(ErrorCode::ServerBusy);
    let faults = subject.server().faults();
    let faults = faults.on(batch).skip(1);
    faults.inject_each([Fault::lost_response(), busy]);
    let rows = || stream::iter((0..500).map(|id| row("a", &id.to_string(), 1)));
    let mut resume_at = 0;
    let run = table.bulk().insert(rows()).concurrency(1);
    let run = run.progress(|progress| resume_at = progress.resume_at);
    let report = run.await.unwrap();
    assert_eq!(report.progress().written, 200);
    assert_eq!(report.failures().len(), 300);
    for failure in report.failures() {
        let index = failure.index();
        assert_eq!(failure.is_outcome_unknown(), index / 100 == 1, "{failure}");
        let row_key = failure.key().unwrap().row_key().to_string();
        assert_eq!(row_key, index.to_string());
    }
    // The first that should be tried again, although later ones are written.
    assert_eq!((report.progress().resume_at, resume_at), (100, 100));
    let run = table.bulk().upsert_replace(rows()).resume_at(resume_at);
    let report = run.await.unwrap();
    let BulkProgress {
        read,
        written,
        resume_at,
        ..
    } = *report.progress();
    assert_eq!((read, written, resume_at), (400, 400, 500));
    assert_eq!(values(&table).await.len(), 500);
}

/// Four entities are deleted, but the response is lost: each is deleted again by itself.
#[tokio::test(start_paused = true)]
async fn a_lost_delete_batch_is_ambiguous_where_a_single_delete_fails() {
    let busy = Fault::error(ErrorCode::ServerBusy);
    let refused = Fault::error(ErrorCode::AuthorizationFailure);
    let denied = Fault::error(ErrorCode::AuthenticationFailed);
    for (name, skip, singles, unknown, ends) in [
        ("all are missing", 0, vec![], 0..0, false),
        ("a busy service", 0, vec![busy; 7], 0..4, false),
        ("one is refused", 1, vec![refused], 1..2, false),
        ("no credential", 0, vec![denied], 0..4, true),
    ] {
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
        let rows = (0..4).map(|id| row("a", &id.to_string(), 1));
        insert_all(&table, rows).await;
        faults.next(Op::Batch, Fault::lost_response());
        faults.on(Op::DeleteEntity).skip(skip).inject_each(singles);
        let keys = (0..4).map(|id| ("a", id.to_string()));
        let result = table.bulk().delete(stream::iter(keys)).await;
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
        assert_eq!(result.is_err(), ends, "{name}: {result:?}");
        let report = match &result {
            Ok(report) => report,
            Err(error) => {
                assert!(error.error().unwrap().is_denied(), "{error:?}");
                error.report()
            }
        };
        let failures = report.failures();
        assert!(failures.iter().all(BulkFailure::is_outcome_unknown));
        let failed = failures.iter().map(BulkFailure::index);
        assert!(failed.eq(unknown.clone()), "{name}: {failures:?}");
        let BulkProgress {
            written,
            missing,
            resume_at,
            ..
        } = *report.progress();
        assert_eq!((written, missing), (0, 4 - failures.len() as u64), "{name}");
        let first = if unknown.is_empty() { 4 } else { unknown.start };
        assert_eq!(resume_at, first, "{name}: it should be tried again");
    }
}

#[tokio::test]
async fn a_dropped_run_can_be_resumed() {
    let mut random = seeded();
    let rows = (0..1_500).map(|value| {
        let (partition, id) = (random.u8(..5), random.u16(..400));
        row(&partition.to_string(), &id.to_string(), value)
    });
    let rows: Vec<_> = rows.collect();
    let whole = {
        let subject = Subject::in_process();
        let table = subject.table().await;
        let run = table.bulk().upsert_replace(stream::iter(rows.clone()));
        assert_eq!(run.await.unwrap().progress().written, 1_500);
        values(&table).await
    };
    for _ in 0..5 {
        let subject = Subject::in_process();
        let table = subject.table().await;
        let stop_after = random.u64(1..25);
        let checkpoint = Arc::new(AtomicU64::new(0));
        let told = AtomicU64::new(0);
        let stopped = tokio::sync::Notify::new();
        let run = table
            .bulk()
            .upsert_replace(stream::iter(rows.clone()))
            .concurrency(4)
            .buffer(200)
            .progress(|progress| {
                checkpoint.store(progress.resume_at, Ordering::Relaxed);
                if told.fetch_add(1, Ordering::Relaxed) + 1 == stop_after {
                    stopped.notify_one();
                }
            });
        tokio::select! {
            biased;
            () = stopped.notified() => {}
            report = run.into_future() => assert!(report.unwrap().is_success()),
        }
        let resume_at = checkpoint.load(Ordering::Relaxed);
        let run = table.bulk().upsert_replace(stream::iter(rows.clone()));
        let report = run.resume_at(resume_at).await.unwrap();
        assert_eq!(report.progress().read, 1_500 - resume_at);
        let values = values(&table).await;
        assert_eq!(values, whole, "{stop_after}, resumed at {resume_at}");
    }
}

#[tokio::test]
async fn a_failed_input_ends_the_run() {
    let (_subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let rows = (0..10).map(|id| match id {
        7 => Err("the disk is gone"),
        _ => Ok(row("a", &id.to_string(), 1)),
    });
    let run = table.bulk().upsert_replace(stream::iter(rows));
    let error = run.await.unwrap_err();
    let message = "with 7 entities written and 0 failed: the disk is gone";
    assert!(format!("{error:?}").ends_with(message), "{error:?}");
    assert!(error.error().is_none());
    assert_eq!(error.report().progress().resume_at, 7);
    assert_eq!(error.into_report().progress().written, 7);

    // A query is such an input.
    let copy = table.query::<DynamicEntity>().stream().map_ok(|found| {
        let copy = DynamicEntity::new("b", found.row_key());
        copy.with_properties(found.properties().clone())
    });
    let report = table.bulk().upsert_replace(copy).await.unwrap();
    assert_eq!(report.progress().written, 7);
    let missing = table.query::<Employee>().odata("no filter").stream();
    let missing = missing.map_ok(Stored::into_inner);
    let error = table.bulk().upsert_replace(missing).await.unwrap_err();
    assert_eq!(error.error().unwrap().kind(), ErrorKind::Input);
}

#[tokio::test]
async fn failures_are_limited_and_bad_settings_rejected() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let endless = (0..).map(|id: u64| row("a/b", &id.to_string(), 1));
    let run = table.bulk().insert(stream::iter(endless));
    let error = run.max_failures(20).await.unwrap_err();
    assert_eq!(error.report().failures().len(), 20);
    assert_eq!(error.error().unwrap().kind(), ErrorKind::Input);
    // The bound is reached, or it is not; 0 stands no failure, as 1 does.
    for (count, max_failures, ends) in [
        (2, 3, false),
        (3, 3, true),
        (0, 0, false),
        (1, 0, true),
        (1, 1, true),
    ] {
        let bad = (0..count).map(|id: u64| row("a/b", &id.to_string(), 1));
        let run = table.bulk().insert(stream::iter(bad));
        let ended = run.max_failures(max_failures).await;
        assert_eq!(ended.is_err(), ends, "{count} of {max_failures}");
    }
    let rows = || [row("a", "1", 1)];
    let none = || table.query::<Employee>().delete_all().concurrency(0);
    let run = || table.bulk().insert(stream::iter(rows()));
    let bad_name = subject.service.table("x").bulk();
    for error in [
        none().await.unwrap_err(),
        none().dry_run().await.unwrap_err(),
        run().concurrency(0).await.unwrap_err(),
        run().buffer(0).await.unwrap_err(),
        run().batch_size(0).await.unwrap_err(),
        run().batch_size(101).await.unwrap_err(),
        bad_name.insert(stream::iter(rows())).await.unwrap_err(),
    ] {
        assert_eq!(error.error().unwrap().kind(), ErrorKind::Input, "{error:?}");
    }
    assert_eq!(journal.requests().op(Op::Batch).count(), 0);
    let none = stream::iter(Vec::<EntityKey>::new());
    let none = table.bulk().delete(none).await.unwrap();
    assert_eq!(*none.progress(), BulkProgress::default());
}

#[tokio::test]
async fn a_batch_size_of_1_sends_no_batches() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let rows = || stream::iter((0..10).map(|id| row("a", &id.to_string(), id)));
    let run = || table.bulk().batch_size(1);
    assert!(run().insert(rows()).await.unwrap().is_success());
    let report = run().insert(rows()).await.unwrap();
    assert_eq!(report.failures().len(), 10, "conflicts");
    assert!(run().upsert_merge(rows()).await.unwrap().is_success());
    let report = run().upsert_replace(rows()).await.unwrap();
    assert_eq!(report.progress().requests, 10);
    assert_eq!(values(&table).await.len(), 10);
    // Keys of a query are an input that can fail.
    let keys = table.query::<DynamicEntity>().stream();
    let keys = keys.map_ok(|found| found.key().clone());
    assert_eq!(run().delete(keys).await.unwrap().progress().written, 10);
    assert_eq!(journal.requests().op(Op::Batch).count(), 0);
}

/// However many partitions the input has, what is read and not written is bounded.
#[tokio::test]
async fn an_input_is_read_no_faster_than_it_is_written() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let read = AtomicU64::new(0);
    let most = Mutex::new(0);
    let rows = (0..1_000_u64).map(|id| {
        read.fetch_add(1, Ordering::Relaxed);
        row(&id.to_string(), "", 1)
    });
    let run = table
        .bulk()
        .insert(stream::iter(rows))
        .concurrency(4)
        .buffer(50)
        .progress(|progress| {
            let ahead = read.load(Ordering::Relaxed) - progress.written;
            let mut most = most.lock().unwrap();
            *most = ahead.max(*most);
        });
    assert_eq!(run.await.unwrap().progress().written, 1_000);
    let most = *most.lock().unwrap();
    assert!(most <= 50 + 4 + 4 + 1, "{most} entities were held");
}

/// An input that pauses is written meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slow_input_does_not_wait_for_full_batches() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let watched = table.clone();
    let rows = stream::iter(0..3).then(move |id| {
        let table = watched.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let there = table.query::<DynamicEntity>().count().await.unwrap();
            let before = usize::try_from(id).unwrap();
            assert_eq!(there, before, "what came before is written");
            row("a", &id.to_string(), id)
        }
    });
    let report = table.bulk().upsert_replace(rows).await.unwrap();
    assert_eq!(report.progress().requests, 3);
}

/// Large entities with awkward keys are cut at 4 MiB, and never above.
#[tokio::test]
async fn batches_of_large_entities_are_full() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let blob = |id| DynamicEntity::new("O'Hare 'ü", format!("'{id}'"));
    let blobs = (0..300).map(|id| blob(id).with("text", "\u{1}".repeat(8_000)));
    let run = table.bulk().upsert_replace(stream::iter(blobs));
    let report = run.await.unwrap();
    assert!(report.is_success(), "{report:?}");
    // 48 KB each in JSON: 86 or 87 fit.
    let requests = (report.progress().requests, journal.requests().count());
    assert_eq!(requests, (4, 4));
}
