//! Retries: what the caller gets after lost, late and forged responses, how often and when the client sends a request again, and
//! within which limits. In process, on virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use harness::faults::{Fault, Faults, Op, foreign, refusal};
use harness::outcome::{Found, found};
use harness::{Subject, client_with};
use http::Response;
use tablesdk::action::CurrentState;
use tablesdk::transport::{Clock, ReqwestTransport};
use tablesdk::{Error, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient, Timestamp};
use tablesdk_server::{InProcess, TableServer};
use tokio::time::Instant;

use crate::Employee;

async fn start() -> (Subject, TableClient, Faults<InProcess>) {
    Subject::with_faults(RetryPolicy::exponential()).await
}

async fn name_of(table: &TableClient) -> Option<String> {
    let found = Employee::find(table).await;
    found.map(|employee| employee.name.clone())
}

/// The entity that an error with an ambiguous outcome contains.
fn current(error: &Error) -> Stored<Employee> {
    match error.current() {
        Some(CurrentState::Present(entity)) => entity.read().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A rejection with a header that asks for a pause.
fn busy(status: u16, header: &'static str, value: &str) -> Response<Bytes> {
    let mut response = refusal(status, "ServerBusy");
    response
        .headers_mut()
        .insert(header, value.parse().unwrap());
    response
}

#[tokio::test]
async fn a_server_that_is_gone_leaves_no_ambiguity() {
    let server = TableServer::start().await.unwrap();
    let over_http = client_with(&server, |builder| {
        let transport = ReqwestTransport::new().unwrap();
        builder.transport(transport).retry(RetryPolicy::none())
    });
    let stopped = TableServer::in_process();
    let in_process = client_with(&stopped, |builder| builder.retry(RetryPolicy::none()));
    drop(server);
    stopped.shutdown().await.unwrap();
    for service in [over_http, in_process] {
        let error = service.tables().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_executed_is_retried_without_ambiguity() {
    let (_subject, table, faults) = start().await;
    faults.plan(Op::Insert, [Fault::Refuse, Fault::Refuse]);
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Insert), 3);
    for fault in [
        Fault::Refuse,
        Fault::Answer(refusal(503, "ServerBusy")),
        Fault::Answer(refusal(429, "TooManyRequests")),
    ] {
        faults.plan(Op::Insert, [fault]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(error.attempts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_request_was_lost_is_retried() {
    let (_subject, table, faults) = start().await;
    faults.plan(Op::Insert, [Fault::LoseRequest]);
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Insert), 2);
    // Another client's entity has the key.
    faults.plan(Op::Insert, [Fault::LoseRequest]);
    let error = table.insert(&Employee::grace()).await.unwrap_err();
    assert_eq!(found(&error), Found::Different);
    assert_eq!(current(&error).name, "Ada");
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_response_was_lost_is_ambiguous() {
    for fault in [
        Fault::LoseAnswer,
        Fault::Hang,
        Fault::CarryOutAndAnswer(refusal(500, "OperationTimedOut")),
        Fault::CarryOutAndAnswer(refusal(500, "InternalError")),
        Fault::CarryOutAndAnswer(foreign(502)),
        Fault::CarryOutAndAnswer(foreign(503)),
    ] {
        let (_subject, table, faults) = start().await;
        faults.plan(Op::Insert, [fault.clone()]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert_eq!(found(&error), Found::Equal, "{fault:?}");
        assert_eq!(*current(&error), Employee::ada());
        assert_eq!(error.attempts(), 3, "{error:?}");
        assert_eq!((faults.count(Op::Insert), faults.count(Op::Get)), (2, 1));
        let text = error.to_string();
        let words =
            "may have been carried out or not (what is there now equals what was sent): 409";
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn upserts_and_unconditional_writes_are_retried() {
    let (_subject, table, faults) = start().await;
    faults.plan(Op::Update, [Fault::LoseAnswer, Fault::LoseRequest]);
    let etag = table.upsert_replace(&Employee::ada()).await.unwrap();
    assert_eq!(*Employee::find(&table).await.unwrap().etag(), etag);
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    let other = Employee::new("1", "A", 1);
    table.replace_unconditional(&other).await.unwrap();
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    table.merge_unconditional(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Update), 7);
    assert_eq!(name_of(&table).await.as_deref(), Some("Ada"));
}

#[tokio::test(start_paused = true)]
async fn an_upsert_succeeds_if_the_stored_entity_equals_it() {
    let (_subject, table, faults) = start().await;
    let busy = Fault::Answer(refusal(503, "ServerBusy"));
    let mut plan = [&[Fault::LoseAnswer][..], &vec![busy; 4]].concat();
    faults.plan(Op::Update, plan.clone());
    table.upsert_merge(&Employee::ada()).await.unwrap();
    assert_eq!((faults.count(Op::Update), faults.count(Op::Get)), (5, 1));

    plan[0] = Fault::LoseRequest;
    faults.plan(Op::Update, plan);
    let error = table.upsert_merge(&Employee::grace()).await.unwrap_err();
    assert_eq!(found(&error), Found::Different);
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_that_was_retried_may_be_ambiguous() {
    let (_subject, table, faults) = start().await;
    let mut ada = table.insert(&Employee::ada()).await.unwrap();
    let before = ada.etag().clone();
    ada.age = 37;
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    let error = table.replace(&mut ada).await.unwrap_err();
    assert_eq!(found(&error), Found::Equal);
    assert_eq!(*ada.etag(), before, "the caller keeps the old ETag");

    // The entity of the error can be changed and written.
    let mut now = current(&error);
    assert_eq!(now.age, 37);
    now.age = 38;
    faults.plan(Op::Update, [Fault::LoseRequest]);
    table.merge(&mut now).await.unwrap();
    let error = table.replace(&mut ada).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(error.attempts(), 1);

    faults.plan(Op::Delete, [Fault::LoseAnswer]);
    let error = table.delete_stored(&now).await.unwrap_err();
    assert_eq!(found(&error), Found::Missing);
    assert_eq!(faults.count(Op::Delete), 2);
}

#[tokio::test(start_paused = true)]
async fn a_delete_by_key_is_true_once_the_entity_is_missing() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Delete, [Fault::LoseAnswer]);
    assert!(table.delete(("Sales", "1")).await.unwrap());
    assert_eq!(faults.count(Op::Delete), 2);
    assert!(!table.delete(("Sales", "1")).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn tables_are_created_and_deleted_despite_lost_responses() {
    let (subject, table, faults) = start().await;
    let more = subject.service.table("More");
    faults.plan(Op::CreateTable, [Fault::LoseAnswer]);
    more.create_table().await.unwrap();
    assert!(more.create_table().await.unwrap_err().is_conflict());
    faults.plan(Op::DeleteTable, [Fault::LoseAnswer]);
    assert!(table.delete_table().await.unwrap());
    assert!(!table.delete_table().await.unwrap());
    let names = subject.service.tables().collect().await.unwrap();
    assert_eq!(names, ["More"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_responses_are_all_lost_is_ambiguous() {
    let (_subject, table, faults) = start().await;
    faults.plan(Op::Insert, vec![Fault::LoseAnswer; 5]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(found(&error), Found::Unread);
    assert_eq!((error.attempts(), faults.count(Op::Insert)), (5, 5));
    assert_eq!(name_of(&table).await.as_deref(), Some("Ada"));

    // Without retries, one lost response is enough. A lost response to a read is not ambiguous.
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    faults.plan(Op::Update, [Fault::LoseRequest]);
    let error = table.upsert_merge(&Employee::ada()).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    faults.plan(Op::Get, [Fault::LoseAnswer]);
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(faults.count(Op::Update) + faults.count(Op::Get), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_of_the_request_itself_is_definitive() {
    let (_subject, table, faults) = start().await;
    let invalid = Fault::Answer(refusal(400, "InvalidInput"));
    faults.plan(Op::Insert, [Fault::LoseRequest, invalid]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Service, 2));
    // A rejection of the credential is not.
    let denied = Fault::Answer(refusal(403, "AuthenticationFailed"));
    faults.plan(Op::Insert, [Fault::LoseAnswer, denied]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(found(&error), Found::Equal);
    assert!(!error.is_denied());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_that_would_come_again_is_not_retried() {
    let (_subject, table, faults) = start().await;
    let statuses = [400, 401, 403, 404, 405, 409, 412, 413, 501, 505];
    for status in statuses {
        faults.plan(Op::Query, [Fault::Answer(refusal(status, "Made"))]);
        let error = table.query::<Employee>().collect().await.unwrap_err();
        let shown = error.status().unwrap().as_u16();
        assert_eq!((shown, error.attempts()), (status, 1));
    }
    assert_eq!(faults.count(Op::Query), statuses.len());
}

#[tokio::test(start_paused = true)]
async fn the_client_waits_as_long_as_the_service_asks() {
    let policy = RetryPolicy::exponential().delay(Duration::ZERO);
    let (_subject, table, faults) = Subject::with_faults(policy).await;
    for (name, value, expected) in [
        ("retry-after", "7", Duration::from_secs(7)),
        ("retry-after-ms", "1300", Duration::from_millis(1300)),
        ("x-ms-retry-after-ms", "90", Duration::from_millis(90)),
    ] {
        faults.plan(Op::Query, [Fault::Answer(busy(429, name, value))]);
        let start = Instant::now();
        table.query::<Employee>().collect().await.unwrap();
        // Timers of tokio have a resolution of a millisecond.
        let late = start.elapsed().checked_sub(expected);
        assert!(
            late.is_some_and(|late| late.as_millis() < 2),
            "{name}: {late:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_deadline_ends_the_operation_at_once() {
    let (_subject, table, faults) = start().await;
    let mut busy = busy(503, "retry-after", "61");
    busy.headers_mut()
        .insert("x-ms-request-id", "id-1".parse().unwrap());
    faults.plan(Op::Insert, [Fault::Answer(busy)]);
    let start = Instant::now();
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled() && error.attempts() == 1, "{error:?}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    let text = "insert entity in \"Tests\" at in-process.invalid/devstoreaccount1 (\"Sales\", \"1\"): 503 ServerBusy: Made up. (request id id-1)";
    assert_eq!(error.to_string(), text);
}

#[tokio::test(start_paused = true)]
async fn attempts_and_operations_are_limited_in_time() {
    let policy = RetryPolicy::exponential()
        .delay(Duration::ZERO)
        .try_timeout(Duration::from_secs(4))
        .deadline(Duration::from_secs(10));
    let (_subject, table, faults) = Subject::with_faults(policy).await;
    faults.plan(Op::Query, [Fault::Delay(Duration::from_secs(3))]);
    table.query::<Employee>().collect().await.unwrap();
    faults.plan(Op::Query, vec![Fault::Hang; 5]);
    let error = table.query::<Employee>().collect().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Transport, 3));
    let passed = error.elapsed().as_millis();
    assert!((10_000..10_010).contains(&passed), "{passed}");
}

/// Advances by a second each time it is read.
#[derive(Debug, Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(seconds))
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_has_the_same_id_and_a_new_date() {
    let (subject, _, faults) = start().await;
    let service = client_with(subject.server(), |builder| {
        builder.transport(faults.clone()).clock(Ticking::default())
    });
    let lost = [Fault::LoseRequest, Fault::LoseRequest];
    faults.plan(Op::Insert, lost);
    // The clock is decades behind: the server rejects the signature of the third attempt, and of the read after it.
    let insert = service.table("Tests").insert(&Employee::ada()).await;
    let error = insert.unwrap_err();
    assert_eq!(error.attempts(), 4, "{error:?}");
    let mut seen = faults.seen();
    seen.retain(|seen| seen.op == Op::Insert);
    let different = |name: &str| {
        let mut values: Vec<_> = seen.iter().map(|seen| &seen.headers[name]).collect();
        values.dedup();
        values.len()
    };
    assert_eq!(different("x-ms-client-request-id"), 1);
    assert_eq!(different("x-ms-date"), 3);
    assert_eq!(different("authorization"), 3);
}

#[tokio::test(start_paused = true)]
async fn the_operations_of_a_client_share_a_retry_budget() {
    let policy = RetryPolicy::exponential().budget(3);
    let (_subject, table, faults) = Subject::with_faults(policy).await;
    let busy = Fault::Answer(refusal(503, "ServerBusy"));
    faults.plan(Op::Query, vec![busy; 6]);
    for attempts in [1 + 3, 1] {
        let error = table.query::<Employee>().collect().await.unwrap_err();
        assert_eq!(error.attempts(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_limited() {
    let (subject, _, faults) = start().await;
    let none = TableServiceClient::builder(subject.server().endpoint()).max_in_flight(0);
    assert_eq!(none.build().unwrap_err().kind(), ErrorKind::Configuration);
    let service = client_with(subject.server(), |builder| {
        builder.transport(faults.clone()).max_in_flight(2)
    });
    let table = service.table("Tests");
    faults.plan(Op::Query, vec![Fault::Delay(Duration::from_secs(1)); 6]);
    let start = Instant::now();
    let queries = (0..6).map(|_| table.query::<Employee>().collect());
    futures::future::try_join_all(queries).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3, "two at a time");

    faults.plan(Op::Query, vec![Fault::Hang; 20]);
    let queries = (0..3).map(|_| table.query::<Employee>().collect());
    for outcome in futures::future::join_all(queries).await {
        assert!(outcome.unwrap_err().is_timeout());
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_operation_returns_its_permit() {
    let (subject, direct, faults) = start().await;
    let mut ada = direct.insert(&Employee::ada()).await.unwrap();
    let service = client_with(subject.server(), |builder| {
        builder.transport(faults.clone()).max_in_flight(1)
    });
    let table = service.table("Tests");
    let before = ada.etag().clone();
    for fault in [Fault::Hang, Fault::Swallow] {
        ada.age += 1;
        faults.plan(Op::Update, [fault]);
        let write = table.replace(&mut ada).into_future();
        let dropped = tokio::time::timeout(Duration::from_secs(1), write).await;
        assert!(dropped.is_err(), "no response comes");
        assert_eq!(*ada.etag(), before, "the caller keeps the old ETag");
        // The only permit is free. The first write was executed, the second was not.
        assert_eq!(Employee::find(&table).await.unwrap().age, 37);
    }
    let error = table.replace(&mut ada).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
}
