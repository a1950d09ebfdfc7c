//! The reports that the hook receives: one for each operation, with the result that the caller
//! gets.

use std::time::Duration;

use futures::TryStreamExt as _;
use tablesdk::action::OperationReport;
use tablesdk::query::AccessClass;
use tablesdk::{ErrorCode, RetryPolicy, TableEntity};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::{sleep, timeout};

use super::Observed;
use crate::Employee;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_report_counts_entities_bytes_and_time() {
    let observed = Observed::with_entities(120, RetryPolicy::exponential()).await;
    let table = &observed.table;
    let batches = observed.take();
    let entities: Vec<_> = batches.iter().map(|report| report.entities).collect();
    assert_eq!(entities, [100, 20]);
    for report in batches {
        assert_eq!((report.operation, report.access), ("batch", None));
        assert!(report.bytes_sent > 1_000, "{report:?}");
    }

    let busy = Fault::error(ErrorCode::ServerBusy);
    observed.faults.next(Op::QueryEntities, busy);
    let query = table.query::<Employee>().partition("Sales").page_size(100);
    query.collect().await.unwrap();
    let query = observed.only();
    assert_eq!((query.entities, query.pages, query.attempts), (120, 2, 3));
    let access = Some(AccessClass::Partition);
    assert_eq!((query.access, &query.error), (access, &None));
    assert!(query.bytes_received > 6_000, "{query:?}");
    assert!(query.duration > Duration::ZERO, "it waited: {query:?}");

    let missing = table.get::<Employee>(("Sales", "none")).await;
    assert!(missing.unwrap().is_none());
    let OperationReport {
        entities, error, ..
    } = observed.only();
    assert_eq!((entities, error.as_deref()), (0, Some("ResourceNotFound")));
    // An operation that is rejected before it is sent has no report.
    table.get::<Employee>(("a/b", "1")).await.unwrap_err();
    assert!(observed.take().is_empty());
}

/// Has a property that no entity of these tests has.
#[derive(Debug, TableEntity)]
struct Other {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    shoes: i32,
}

#[tokio::test(start_paused = true)]
async fn a_report_agrees_with_the_result_of_the_caller() {
    let observed = Observed::start(RetryPolicy::exponential()).await;
    let (table, faults) = (&observed.table, &observed.faults);
    let ada = Employee::ada();
    let reports = |operation, entities, attempts, error: Option<&str>| {
        let report = observed.only();
        assert_eq!(report.table.as_deref(), Some("Tests"));
        assert_eq!(
            (report.operation, report.error.as_deref()),
            (operation, error)
        );
        assert_eq!((report.entities, report.attempts), (entities, attempts));
    };

    // Exactly once, with and without the request that deletes the marker.
    let mut stored = table.insert(&ada).exactly_once().await.unwrap();
    reports("insert entity", 1, 2, None);
    faults.next(Op::DeleteEntity, Fault::reset());
    table.replace(&mut stored).exactly_once().await.unwrap();
    reports("replace entity", 1, 2, None);
    faults.next(Op::Batch, Fault::lost_response());
    table.replace(&mut stored).exactly_once().await.unwrap();
    reports("replace entity", 1, 4, None);
    let key = || ("Sales", "1");
    let modify = table.modify(key(), Employee::grow_older);
    modify.exactly_once().await.unwrap();
    reports("modify entity", 1, 3, None);
    assert!(table.delete(key()).exactly_once().await.unwrap());
    reports("delete entity", 1, 2, None);
    assert!(!table.delete(key()).exactly_once().await.unwrap());
    reports("delete entity", 0, 1, Some("ResourceNotFound"));

    // Ambiguous outcomes: two that are resolved, and one that is not.
    let lost = Fault::error(ErrorCode::InternalError).applied();
    let upsert = Op::InsertOrReplaceEntity;
    faults.on(upsert).times(7).inject(lost.clone());
    table.upsert_replace(&ada).await.unwrap();
    reports("upsert_replace entity", 1, 8, None);
    faults.on(Op::DeleteEntity).times(7).inject(lost);
    assert!(table.delete(key()).await.unwrap());
    reports("delete entity", 1, 8, None);
    faults.next(Op::InsertEntity, Fault::lost_response());
    let error = table.insert(&ada).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    reports("insert entity", 0, 3, Some("EntityAlreadyExists"));

    // A malformed response, a closure that fails, and an operation that is dropped.
    let query = table.query::<Other>().partition("Sales");
    query.collect().await.unwrap_err();
    reports("query entities", 1, 1, Some("data"));
    table.get::<Other>(key()).await.unwrap_err();
    reports("get entity", 1, 1, Some("data"));
    let fails = |_: &mut Employee| Err::<(), _>("no".into());
    table.modify(key(), fails).await.unwrap_err();
    reports("modify entity", 1, 1, Some("aborted"));
    faults.next(Op::QueryEntity, Fault::no_response().applied());
    let get = table.get::<Employee>(key()).into_future();
    timeout(SECOND, get).await.unwrap_err();
    reports("get entity", 0, 1, Some("cancelled"));

    // Operations on the table.
    assert!(table.table_exists().await.unwrap());
    reports("table_exists", 0, 1, None);
    table.access_policy().await.unwrap();
    reports("get access policy", 0, 1, None);
    table.clean_up_markers("Sales").await.unwrap();
    reports("clean up markers", 0, 1, None);
    assert!(!table.create_table().if_missing().await.unwrap());
    reports("create table", 0, 1, Some("TableAlreadyExists"));
}

/// Asserts the entities, pages, attempts and error of the only query since the last call.
#[track_caller]
fn assert_query(observed: &Observed, counts: (usize, usize, u32), error: Option<&str>) {
    let report = observed.only();
    assert!(report.operation.starts_with("query "), "{report:?}");
    assert_eq!((report.entities, report.pages, report.attempts), counts);
    assert_eq!(report.error.as_deref(), error);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_read_a_query_is_one_operation() {
    let observed = Observed::with_entities(30, RetryPolicy::exponential()).await;
    observed.take();
    let (table, faults) = (&observed.table, &observed.faults);
    let query = || table.query::<Employee>().partition("Sales").page_size(10);
    let reports = |entities, pages, attempts, error| {
        assert_query(&observed, (entities, pages, attempts), error);
    };

    assert_eq!(query().collect().await.unwrap().len(), 30);
    reports(30, 3, 3, None);
    assert_eq!(query().prefetch().collect().await.unwrap().len(), 30);
    reports(30, 3, 3, None);
    assert_eq!(query().take(15).collect().await.unwrap().len(), 15);
    reports(15, 2, 2, None);
    assert_eq!(query().count().await.unwrap(), 30);
    reports(30, 3, 3, None);
    assert!(query().exists().await.unwrap());
    reports(1, 1, 1, None);
    query().first().await.unwrap().unwrap();
    reports(1, 1, 1, None);
    let page = query().take(25).page(None).await.unwrap();
    assert_eq!(page.items.len(), 25);
    reports(25, 3, 3, None);
    // The next page is another query, perhaps of another program.
    let page = query().page(page.next.unwrap()).await.unwrap();
    assert_eq!(page.items.len(), 5);
    reports(5, 1, 1, None);
    let one = query().filter(|e| e.id.eq("007")).one().await.unwrap();
    assert_eq!(one.unwrap().id, "007");
    reports(1, 1, 1, None);
    query().one().await.unwrap_err();
    reports(2, 1, 1, Some("not_unique"));
    let none = query().filter(|e| e.id.eq("none")).one().await.unwrap();
    assert!(none.is_none());
    reports(0, 0, 1, Some("ResourceNotFound"));

    // The error of a page is that of the query. The report counts what was read before.
    let refused = Fault::error(ErrorCode::AuthorizationFailure);
    faults.on(Op::QueryEntities).nth(3).inject(refused);
    query().collect().await.unwrap_err();
    reports(20, 2, 3, Some("AuthorizationFailure"));
    faults.on(Op::QueryEntities).nth(2).inject(Fault::reset());
    query().collect().await.unwrap();
    reports(30, 3, 4, None);

    let deleted = query().delete_all().await.unwrap();
    assert_eq!(deleted.progress().written, 30);
    let mut reports = observed.take();
    reports.retain(|report| report.operation != "batch");
    let [query] = reports.try_into().unwrap();
    assert_eq!((query.operation, query.pages), ("query entities", 3));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_tables_is_one_operation() {
    let observed = Observed::start(RetryPolicy::none()).await;
    for name in ["One", "Two"] {
        observed.service.table(name).create_table().await.unwrap();
    }
    observed.take();
    let tables = || observed.service.tables().page_size(1);
    assert_eq!(tables().collect().await.unwrap().len(), 3);
    assert_query(&observed, (0, 3, 3), None);
    assert_eq!(tables().page(None).await.unwrap().items, ["One"]);
    assert_query(&observed, (0, 1, 1), None);
    let mut stream = tables().stream();
    stream.try_next().await.unwrap().unwrap();
    assert!(observed.take().is_empty());
    drop(stream);
    assert_query(&observed, (0, 1, 1), None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_reported_without_the_time_of_its_consumer() {
    let observed = Observed::with_entities(30, RetryPolicy::exponential()).await;
    observed.take();
    let query = || observed.table.query::<Employee>().page_size(10);

    // The deadline is that of a page: hours later, a request is still retried.
    let mut stream = query().stream();
    for id in 0..30 {
        let reports = observed.reports.lock().unwrap().len();
        assert!(id >= 20 || reports == 0, "{id}");
        if id == 10 {
            sleep(HOUR).await;
            observed.faults.next(Op::QueryEntities, Fault::reset());
        }
        stream.try_next().await.unwrap().unwrap();
    }
    // Reported after its last page, although the stream still exists.
    let report = observed.only();
    assert_eq!((report.pages, report.attempts, report.error), (3, 4, None));
    assert!(report.duration > Duration::ZERO && report.duration < HOUR);
    assert!(stream.try_next().await.unwrap().is_none());
    drop(stream);
    assert!(observed.take().is_empty(), "reported once");

    // Dropped between two pages: a success.
    let mut stream = query().stream();
    for _ in 0..12 {
        stream.try_next().await.unwrap().unwrap();
    }
    sleep(HOUR).await;
    assert!(observed.take().is_empty());
    drop(stream);
    let report = observed.only();
    assert_eq!((report.entities, report.pages, report.error), (20, 2, None));
    assert!(report.duration < HOUR, "{:?}", report.duration);

    // Dropped while a page is in flight: cancelled.
    for is_ahead in [false, true] {
        let second = observed.faults.on(Op::QueryEntities).nth(2);
        second.inject(Fault::no_response().applied());
        let query = if is_ahead {
            query().prefetch()
        } else {
            query()
        };
        let mut stream = query.stream();
        for _ in 0..10 {
            stream.try_next().await.unwrap().unwrap();
        }
        assert!(timeout(SECOND, stream.try_next()).await.is_err());
        drop(stream);
        // The task that reads ahead ends when the runtime polls it.
        sleep(SECOND).await;
        assert_query(&observed, (10, 1, 2), Some("cancelled"));
    }
}
