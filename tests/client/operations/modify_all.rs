//! `modify_all`: what a query finds is changed once, each entity under its ETag, and a run is
//! resumed where it ended. And the rate of bulk runs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::stream;
use harness::{Subject, client_with};
use tablesdk::query::PageToken;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Journal, Op, Throttle};
use tokio::task::block_in_place;
use tokio::time::Instant;

use crate::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{partition}", row_key = "{id}")]
struct Counter {
    partition: String,
    id: String,
    count: i64,
}

fn counter(partition: &str, id: usize) -> Counter {
    let id = format!("{id:04}");
    Counter {
        partition: partition.to_owned(),
        id,
        count: 0,
    }
}

async fn insert(table: &TableClient, partitions: &[&str], each: usize) {
    let counters = partitions
        .iter()
        .flat_map(|partition| (0..each).map(|id| counter(partition, id)));
    let inserted = table
        .bulk()
        .insert(stream::iter(counters.collect::<Vec<_>>()))
        .await
        .unwrap();
    assert!(inserted.is_success());
}

/// How many counters have which count.
async fn counts(table: &TableClient) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for found in table.query::<Counter>().collect().await.unwrap() {
        *counts.entry(found.count).or_default() += 1;
    }
    counts
}

/// The change of most tests. Its result is never left as it is.
#[expect(clippy::unnecessary_wraps, reason = "as the closure returns it")]
fn add(found: &mut Counter) -> Result<(), tablesdk::action::ClosureError> {
    found.count += 1;
    Ok(())
}

on_both_transports! {
    async fn entities_are_changed_in_transactions_and_keep_properties_that_the_type_does_not_have(subject: Subject) {
        let table = subject.table().await;
        insert(&table, &["a", "b"], 150).await;
        let with = DynamicEntity::from_entity(&counter("a", 7)).unwrap().with("Other", "kept");
        table.upsert_replace(&with).await.unwrap();

        let found = || table.query::<Counter>().filter(|it| it.id.lt("0120"));
        let dry = found().modify_all(add).dry_run().await.unwrap();
        assert_eq!((dry.progress().read, dry.progress().written), (240, 0));
        assert_eq!(counts(&table).await, [(0, 300)].into());

        let report = found().modify_all(add).await.unwrap();
        assert!(report.is_success());
        let progress = report.progress();
        assert_eq!((progress.read, progress.written, progress.skipped), (240, 240, 0));
        assert_eq!(progress.requests, 4, "two full batches, and two with the rest");
        assert_eq!(progress.resume_token, None, "nothing is left");
        assert_eq!(counts(&table).await, [(0, 60), (1, 240)].into());
        let kept = table.get::<DynamicEntity>(("a", "0007")).await.unwrap().unwrap();
        assert_eq!(kept.properties().read::<String>("Other").unwrap(), "kept");
    }

    async fn entities_that_the_closure_leaves_or_refuses_are_not_written(subject: Subject) {
        let table = subject.table().await;
        insert(&table, &["a"], 10).await;
        let change = |found: &mut Counter| match found.id.as_str() {
            "0000" => Err("not this one".into()),
            "0001" => {
                "other".clone_into(&mut found.id);
                Ok(())
            }
            "0002" => add(found),
            _ => Ok(()),
        };
        let dry = table.query::<Counter>().modify_all(change).dry_run().await.unwrap();
        assert_eq!((dry.failures().len(), dry.progress().skipped), (2, 7));
        let report = table.query::<Counter>().modify_all(change).await.unwrap();
        let [aborted, moved] = report.failures() else { panic!("{:?}", report.failures()) };
        assert_eq!(aborted.error().kind(), ErrorKind::Aborted);
        assert_eq!(aborted.key().unwrap().row_key().as_str(), "0000");
        assert_eq!(moved.error().kind(), ErrorKind::Input);
        let progress = report.progress();
        assert_eq!((progress.read, progress.written, progress.skipped), (3, 1, 7));
        assert_eq!(progress.resume_token, None);
        assert_eq!(counts(&table).await, [(0, 9), (1, 1)].into());

        let ended = table.query::<Counter>().modify_all(|_| Err("none".into())).max_failures(3);
        let ended = ended.await.unwrap_err();
        assert_eq!(ended.report().failures().len(), 3);
    }
}

/// The query no longer finds what this run has written.
#[tokio::test]
async fn a_change_that_leaves_the_query_is_not_taken_for_that_of_another_client() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    insert(&table, &["a"], 1).await;
    let twice = subject.server().faults().on_writes();
    let _twice = twice.inject(Fault::duplicate());
    let run = table.query::<Counter>().filter(|it| it.count.eq(0));
    let report = run.modify_all(add).await.unwrap();
    let [failure] = report.failures() else {
        panic!("{report:?}")
    };
    assert!(failure.error().is_outcome_unknown(), "{failure}");
    assert_eq!(counts(&table).await, [(1, 1)].into());
}

/// Another client's write between the read and the write of a run.
fn meanwhile<T>(write: impl IntoFuture<Output = Result<T, tablesdk::Error>>) {
    let written =
        block_in_place(|| tokio::runtime::Handle::current().block_on(write.into_future()));
    drop(written.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_that_were_changed_meanwhile_are_read_again_alone() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    insert(&table, &["a"], 50).await;
    let calls = Mutex::new(BTreeMap::<String, u32>::new());
    let change = |found: &mut Counter| {
        let mut calls = calls.lock().unwrap();
        let call = calls.entry(found.id.clone()).or_default();
        *call += 1;
        if *call == 1 {
            let mut other = Counter {
                count: 100,
                ..found.clone()
            };
            let key = Counter::key("a", found.id.as_str());
            match found.id.as_str() {
                "0003" => meanwhile(table.upsert_replace(&other)),
                "0005" => meanwhile(table.delete(key)),
                "0007" => {
                    other.count = -1;
                    meanwhile(table.upsert_replace(&other));
                }
                _ => {}
            }
        }
        add(found)
    };
    let journal = subject.server().journal();
    journal.clear();
    let found = table.query::<Counter>().filter(|it| it.count.ge(0));
    let report = found.modify_all(change).await.unwrap();
    assert!(report.is_success(), "{:?}", report.failures());
    let progress = report.progress();
    let counted = (progress.written, progress.missing, progress.changed);
    assert_eq!(
        counted,
        (48, 1, 1),
        "the query no longer finds the one with -1"
    );
    assert_eq!(calls.lock().unwrap()["0003"], 2);
    assert_eq!(calls.lock().unwrap()["0004"], 1, "the others of the batch");
    assert_eq!(counts(&table).await, [(-1, 1), (1, 47), (101, 1)].into());
    // Four batches, of which three are refused, and one alone.
    assert_eq!(progress.requests, 5);
}

#[tokio::test(start_paused = true)]
async fn no_fault_at_any_request_makes_the_change_twice() {
    for is_exactly_once in [false, true] {
        let server = TableServer::in_process();
        let table = harness::client(&server).table("Company");
        table.create_table().await.unwrap();
        insert(&table, &["a", "b"], 3).await;
        let runs = server.at_each_request().run(
            async || {
                let run = table.query::<Counter>().modify_all(add).concurrency(1);
                let run = if is_exactly_once {
                    run.exactly_once()
                } else {
                    run
                };
                let report = match run.await {
                    Ok(report) => report,
                    Err(error) => error.into_report(),
                };
                let unknown = report
                    .failures()
                    .iter()
                    .filter(|it| it.is_outcome_unknown());
                (report.progress().written, unknown.count())
            },
            async |run| {
                // A request that is late has arrived then.
                tokio::time::sleep(Duration::from_secs(60)).await;
                let counts = counts(&table).await;
                assert!(
                    counts.keys().all(|count| *count <= 1),
                    "{:?}: {counts:?}",
                    run.fault
                );
                let ones = counts.get(&1).copied().unwrap_or_default();
                if let Some((written, unknown)) = run.outcome {
                    let written = usize::try_from(written).unwrap();
                    assert!(
                        (written..=written + unknown).contains(&ones),
                        "{:?}",
                        run.fault
                    );
                    if is_exactly_once {
                        assert_eq!((ones, unknown), (6, 0), "{:?}", run.fault);
                    }
                }
            },
        );
        assert!(runs.await > 20);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ended_is_resumed_and_changes_each_entity_once() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    insert(&table, &["a", "b", "c"], 150).await;
    let all = || table.query::<Counter>().modify_all(add).concurrency(1);
    let mut token: Option<PageToken> = None;
    let mut runs = 0;
    loop {
        runs += 1;
        // The second batch of each run fails.
        let writes = subject.server().faults().on(Op::Batch);
        let fault = writes.nth(2).inject(Fault::error(ErrorCode::ServerBusy));
        let run = match &token {
            Some(token) => all().resume_at(token.to_string().parse().unwrap()),
            None => all(),
        };
        let ended = run.retry(RetryPolicy::none()).max_failures(1).await;
        fault.remove();
        match ended {
            Ok(report) => {
                assert_eq!(report.progress().resume_token, None);
                break;
            }
            Err(error) => token.clone_from(&error.report().progress().resume_token),
        }
        assert!(token.is_some());
    }
    assert!(runs > 3, "{runs}");
    assert_eq!(counts(&table).await, [(1, 450)].into());
}

#[tokio::test]
async fn a_token_is_that_of_its_query() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    insert(&table, &["a"], 10).await;
    let query = || table.query::<Counter>().partition("a");
    let report = query().take(4).modify_all(add).await.unwrap();
    let token = report
        .progress()
        .resume_token
        .clone()
        .expect("six are left");
    let page = query().take(4).page(None).await.unwrap().next.unwrap();
    let other = table.query::<Counter>().modify_all(add);
    for run in [
        other.resume_at(token.clone()),
        query().modify_all(add).resume_at(page),
    ] {
        let error = run.await.unwrap_err();
        assert_eq!(error.error().unwrap().kind(), ErrorKind::Input);
        assert!(error.to_string().contains("query"), "{error}");
    }
    let rest = query().modify_all(add).resume_at(token).await.unwrap();
    assert_eq!(
        (
            rest.progress().written,
            rest.progress().resume_token.clone()
        ),
        (6, None)
    );
    assert_eq!(counts(&table).await, [(1, 10)].into());
}

/// A table of a client with which every batch succeeds in the end.
async fn with_patience(server: &TableServer) -> TableClient {
    let policy = RetryPolicy::exponential().attempts(1_000).budget(1_000_000);
    let policy = policy.deadline(Duration::from_secs(24 * 3600));
    let table = client_with(server, |builder| builder.retry(policy)).table("Company");
    table.create_table().await.unwrap();
    table
}

/// How many requests the service was too busy for.
fn refused(journal: &Journal) -> usize {
    journal
        .requests()
        .error_code(&ErrorCode::ServerBusy)
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_each_partition_avoids_refusals() {
    let mut refusals = Vec::new();
    for max_rate in [None, Some(200)] {
        let server = TableServer::in_process();
        let table = with_patience(&server).await;
        insert(&table, &["a", "b"], 1_000).await;
        server
            .faults()
            .throttle(Throttle::none().per_partition(200));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let journal = server.journal();
        journal.clear();
        let began = Instant::now();
        let counters = ["a", "b"]
            .into_iter()
            .flat_map(|it| (0..1_000).map(|id| counter(it, id)));
        let run = table.bulk().upsert_replace(stream::iter(counters));
        let run = match max_rate {
            Some(rate) => run.max_rate_per_partition(rate),
            None => run,
        };
        assert!(run.await.unwrap().is_success());
        refusals.push(refused(&journal));
        assert!(
            began.elapsed() >= Duration::from_secs(4),
            "ten batches a partition"
        );
    }
    assert!(refusals[0] > 0, "{refusals:?}");
    assert_eq!(refusals[1], 0, "{refusals:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_the_service_refuses_is_lowered() {
    let mut refusals = Vec::new();
    for max_rate in [None, Some(400)] {
        let server = TableServer::in_process();
        let table = with_patience(&server).await;
        insert(&table, &["a"], 2_000).await;
        let throttle = Throttle::none().per_partition(100);
        server.faults().throttle(throttle);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let journal = server.journal();
        journal.clear();
        let keys = (0..2_000).map(|id| Counter::key("a", format!("{id:04}")));
        let run = table.bulk().delete(stream::iter(keys)).batch_size(20);
        let run = match max_rate {
            Some(rate) => run.max_rate(rate),
            None => run,
        };
        assert!(run.await.unwrap().is_success());
        refusals.push(refused(&journal));
    }
    assert!(refusals[0] > 100, "{refusals:?} of 100 batches");
    assert!(refusals[1] < 30, "{refusals:?} of 100 batches");
}

#[tokio::test]
async fn rates_of_nothing_are_refused() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let all = || table.query::<Counter>();
    let runs = [
        all().modify_all(add).max_rate(0).await,
        all().delete_all().max_rate_per_partition(0).await,
        table
            .bulk()
            .insert(stream::iter([counter("a", 1)]))
            .max_rate(0)
            .await,
    ];
    for run in runs {
        let error = run.unwrap_err();
        assert_eq!(error.error().unwrap().kind(), ErrorKind::Input);
        assert!(
            error.to_string().contains("the maximum rate must not be 0"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_run_sends_a_batch_of_each_hundred_entities_and_no_other_read_than_a_page() {
    let partitions: Vec<_> = (0..10).map(|it| it.to_string()).collect();
    let partitions: Vec<_> = partitions.iter().map(String::as_str).collect();
    for (is_exactly_once, expected) in [(false, (1, 10, 0)), (true, (1, 20, 20))] {
        let subject = Subject::in_process();
        let table = subject.table().await;
        insert(&table, &partitions, 100).await;
        let journal = subject.server().journal();
        journal.clear();
        let run = table.query::<Counter>().modify_all(add);
        let run = if is_exactly_once {
            run.exactly_once()
        } else {
            run
        };
        assert_eq!(run.await.unwrap().progress().written, 1_000);
        let requests = |op| journal.requests().op(op).count();
        let batches = requests(Op::Batch);
        let counted = (
            requests(Op::QueryEntities),
            batches,
            requests(Op::DeleteEntity),
        );
        assert_eq!(counted, expected, "as the guide to bulk runs says");
        assert_eq!(
            journal.requests().len(),
            expected.0 + expected.1 + expected.2
        );
    }
}
