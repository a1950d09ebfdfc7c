//! The spans of operations and of their attempts: names, fields, and the span that contains them.

use futures::{StreamExt as _, TryStreamExt as _};
use harness::log::Log;
use tablesdk::{ErrorCode, RetryPolicy};
use tablesdk_server::testing::{Fault, Op};
use tracing::{Instrument as _, info_span};

use super::{Observed, assert_contains};
use crate::{Employee, start};

/// A modification reads and writes: its write is not a retry of its read.
#[tokio::test(start_paused = true)]
async fn the_second_request_of_modify_is_not_a_retry() {
    let (log, _guard) = Log::start();
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.next(Op::UpdateEntity, Fault::error(ErrorCode::ServerBusy));
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    modify.await.unwrap();
    let (attempts, _) = log.closed("modify entity");
    let is_retry = |line: &String| line.contains("http.request.resend_count=1");
    let retries: Vec<_> = attempts.iter().map(is_retry).collect();
    assert_eq!(retries, [false, false, true], "{attempts:#?}");
}

#[tokio::test(start_paused = true)]
async fn spans_have_the_names_of_opentelemetry() {
    let (log, _guard) = Log::start();
    let (subject, table, faults) = start().await;
    let journal = subject.server().journal();
    table.insert(&Employee::ada()).await.unwrap();
    faults.next(Op::QueryEntity, Fault::error(ErrorCode::ServerBusy));
    assert!(Employee::find(&table).await.is_some());
    let missing = table.get(Employee::key("Sales", "2")).await;
    assert!(missing.unwrap().is_none());
    faults.on(Op::QueryEntities).times(7).inject(Fault::reset());
    let query = || table.query::<Employee>().partition("Sales").collect();
    query().await.unwrap_err();
    query().await.unwrap();

    let (_, inserts) = log.closed("db.operation.name=\"insert entity\"");
    assert_eq!(inserts.len(), 1, "{inserts:#?}");
    let words = [
        "INFO",
        "otel.kind=\"client\"",
        "otel.name=\"insert entity Tests\"",
        "db.system.name=\"azure.table_storage\"",
        "db.collection.name=\"Tests\"",
        "server.address=",
        "tablesdk.attempts=1",
    ];
    assert_contains(&inserts[0], &words);
    let (attempts, gets) = log.closed("db.operation.name=\"get entity\"");
    let [busy, missing] = gets.as_slice() else {
        panic!("{gets:#?}")
    };
    assert_contains(busy, &["tablesdk.attempts=2", "tablesdk.access=\"point\""]);
    assert!(!busy.contains("error.type"), "{busy}");
    assert_contains(missing, &["error.type=\"ResourceNotFound\""]);
    assert!(!missing.contains("ERROR"), "{missing}");
    let (_, queries) = log.closed("db.operation.name=\"query entities\"");
    let [failed, found] = queries.as_slice() else {
        panic!("{queries:#?}")
    };
    let words = ["error.type=\"transport\"", "otel.status_code=\"ERROR\""];
    assert_contains(failed, &words);
    let words = [
        "db.response.returned_rows=1",
        "tablesdk.access=\"partition\"",
    ];
    assert_contains(found, &words);

    // Attempts are inside their operations, with both request ids.
    let [first, second, _] = attempts.as_slice() else {
        panic!("{attempts:#?}")
    };
    let words = ["http.response.status_code=503", "error.type=\"ServerBusy\""];
    assert_contains(first, &words);
    let words = ["http.request.resend_count=1", "azure.service.request.id="];
    assert_contains(second, &words);
    let id = |line: &String| {
        let (_, id) = line.split_once("tablesdk.client_request_id=\"").unwrap();
        id[..36].to_owned()
    };
    assert_eq!(
        id(first),
        id(second),
        "a retry has the id of the first attempt"
    );
    let sent = journal.requests().op(Op::QueryEntity).into_iter();
    let sent = sent.map(|request| request.client_request_id.unwrap());
    assert!(sent.eq(attempts.iter().map(id)));
}

#[tokio::test(start_paused = true)]
async fn tasks_of_an_operation_stay_in_the_callers_span() {
    let (log, _guard) = Log::start();
    let observed = Observed::with_entities(30, RetryPolicy::none()).await;
    let reads = async {
        let query = || {
            observed
                .table
                .query::<Employee>()
                .page_size(5)
                .partition("Sales")
        };
        let parts = || query().row_ranges(["010", "020"]);
        for items in [
            query().prefetch().collect().await,
            parts().collect().await,
            parts().in_order().collect().await,
        ] {
            assert_eq!(items.unwrap().len(), 30);
        }
    };
    reads.instrument(info_span!("request")).await;
    let (_, closed) = log.closed("\"query entities\"");
    assert_eq!(closed.len(), 1 + 3 + 3, "each part is a query");
    let six_pages = closed
        .iter()
        .filter(|line| line.contains("tablesdk.pages=6"));
    assert_eq!(six_pages.count(), 1, "{closed:#?}");
    for line in closed {
        assert_contains(&line, &[" request:operation{"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_query_are_attempts_in_one_span() {
    let (log, _guard) = Log::start();
    let observed = Observed::with_entities(30, RetryPolicy::none()).await;
    let mut stream = observed.table.query::<Employee>().page_size(10).stream();
    // The query belongs to the span that asked for its first page, wherever the stream is consumed.
    for (part, count) in [("first", 5), ("rest", 25)] {
        let read = async {
            for _ in 0..count {
                stream.try_next().await.unwrap().unwrap();
            }
        };
        read.instrument(info_span!("part", part)).await;
    }
    let (attempts, operations) = log.closed("\"query entities\"");
    let [operation] = operations.as_slice() else {
        panic!("{operations:#?}")
    };
    let words = [
        "tablesdk.pages=3",
        "tablesdk.attempts=3",
        "db.response.returned_rows=30",
    ];
    assert_contains(operation, &words);
    assert_eq!(attempts.len(), 3, "{attempts:#?}");
    for line in attempts.iter().chain(&operations) {
        assert_contains(line, &[" part{part=\"first\"}:operation{"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_query_with_a_bad_entity_is_one_span_with_its_error() {
    let (log, _guard) = Log::start();
    let observed = Observed::with_entities(30, RetryPolicy::none()).await;
    let nameless = tablesdk::DynamicEntity::new("Sales", "015a");
    observed.table.insert(&nameless).await.unwrap();
    let query = || observed.table.query::<Employee>().page_size(10);
    let items: Vec<_> = query().stream().collect().await;
    assert_eq!(items.iter().filter(|item| item.is_err()).count(), 1);
    let read = query().skip_unreadable(|_| ()).collect().await.unwrap();
    assert_eq!(read.len(), 30);
    let (_, operations) = log.closed("\"query entities\"");
    let [failed, skipped] = operations.as_slice() else {
        panic!("{operations:#?}")
    };
    let pages = ["tablesdk.pages=4", "db.response.returned_rows=31"];
    assert_contains(failed, &pages);
    assert_contains(
        failed,
        &["error.type=\"data\"", "otel.status_code=\"ERROR\""],
    );
    assert_contains(skipped, &pages);
    assert!(!skipped.contains("error.type"), "{skipped}");
}
