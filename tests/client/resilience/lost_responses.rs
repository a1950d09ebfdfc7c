//! Requests and responses that are lost, late or forged: the result that the caller gets, and the number of requests. No write
//! happens twice, and no result is false. In process, on virtual time.

use std::time::Duration;

use bytes::Bytes;
use harness::faults::{Fault, Op, refusal};
use harness::{Subject, client_with};
use http::Response;
use tablesdk::action::CurrentState;
use tablesdk::{Error, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient};
use tokio::time::Instant;

use crate::Employee;

async fn name_of(table: &TableClient) -> Option<String> {
    let row = Employee::find(&table).await;
    row.map(|row| row.into_inner().name)
}

fn current(error: &Error) -> Option<(bool, Stored<Employee>)> {
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
    assert!(error.is_outcome_unknown());
    // Whoever branches on these would take a doubt for an answer.
    assert!(!error.is_conflict() && !error.is_not_found() && !error.is_precondition_failed());
    match error.current().unwrap() {
        CurrentState::Present(row) => Some((row.equals_sent(), row.read().unwrap())),
        CurrentState::Missing => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_repeated_without_doubt() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Insert, [Fault::Refuse, Fault::Refuse]);
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Insert), 3);

    faults.plan(Op::Insert, [Fault::Refuse]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_conflict(), "that is somebody else's: {error:?}");
    assert_eq!((faults.count(Op::Insert), error.attempts()), (5, 2));
}

#[tokio::test(start_paused = true)]
async fn a_busy_service_is_asked_again_and_leaves_no_doubt() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    for answer in [refusal(503, "ServerBusy"), refusal(429, "TooManyRequests")] {
        faults.plan(Op::Insert, [Fault::Answer(answer)]);
        table.upsert_replace(&Employee::ada()).await.unwrap();
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(error.attempts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_request_was_lost_is_repeated() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Insert, [Fault::LoseRequest]);
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Insert), 2);
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_answer_was_lost_claims_nothing() {
    let lost = [
        Fault::LoseAnswer,
        Fault::Hang,
        Fault::CarryOutAndAnswer(refusal(500, "OperationTimedOut")),
        Fault::CarryOutAndAnswer(refusal(500, "InternalError")),
        Fault::CarryOutAndAnswer(html(502)),
        Fault::CarryOutAndAnswer(html(503)),
    ];
    for fault in lost {
        let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        faults.plan(Op::Insert, [fault.clone()]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        let (equals, row) = current(&error).unwrap();
        assert!(equals, "{fault:?}");
        assert_eq!(*row, Employee::ada());
        assert_eq!(error.attempts(), 3, "{error:?}");
        assert_eq!((faults.count(Op::Insert), faults.count(Op::Get)), (2, 1));
        assert!(
            error.to_string().contains(
                "may have been carried out or not (what is there now equals what was sent): 409"
            ),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_that_met_another_tells_so() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::grace()).await.unwrap();
    faults.plan(Op::Insert, [Fault::LoseRequest]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    let (equals, row) = current(&error).unwrap();
    assert!(!equals);
    assert_eq!(row.name, "Grace");
}

#[tokio::test(start_paused = true)]
async fn upserts_and_unconditional_writes_are_simply_repeated() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Update, [Fault::LoseAnswer, Fault::LoseRequest]);
    let etag = table.upsert_replace(&Employee::ada()).await.unwrap();
    let row = Employee::find(&table).await;
    assert_eq!(row.unwrap().etag(), &etag);
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    table
        .replace_unconditional(&Employee::new("1", "A", 1))
        .await
        .unwrap();
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    table.merge_unconditional(&Employee::ada()).await.unwrap();
    assert_eq!(faults.count(Op::Update), 7);
    assert_eq!(name_of(&table).await.as_deref(), Some("Ada"));
}

#[tokio::test(start_paused = true)]
async fn an_upsert_that_shows_in_the_entity_is_done() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let busy = Fault::Answer(refusal(503, "ServerBusy"));
    let mut plan = vec![Fault::LoseAnswer];
    plan.extend(vec![busy; 4]);
    faults.plan(Op::Update, plan.clone());
    table.upsert_merge(&Employee::ada()).await.unwrap();
    assert_eq!((faults.count(Op::Update), faults.count(Op::Get)), (5, 1));

    plan[0] = Fault::LoseRequest;
    faults.plan(Op::Update, plan);
    let error = table.upsert_merge(&Employee::grace()).await.unwrap_err();
    assert!(!current(&error).unwrap().0);
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_that_may_have_met_itself_claims_nothing() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut row = table.insert(&Employee::ada()).await.unwrap();
    let before = row.etag().clone();
    row.age = 37;
    faults.plan(Op::Update, [Fault::LoseAnswer]);
    let error = table.replace(&mut row).await.unwrap_err();
    let (equals, now) = current(&error).unwrap();
    assert!(equals && now.age == 37);
    assert_eq!(
        *row.etag(),
        before,
        "the version in hand is still the old one"
    );

    // Taken for the truth, the entity of the error can be written on.
    let mut now = now;
    now.age = 38;
    faults.plan(Op::Update, [Fault::LoseRequest]);
    table.merge(&mut now).await.unwrap();
    let error = table.replace(&mut row).await.unwrap_err();
    assert!(error.is_precondition_failed(), "without a doubt: {error:?}");
    assert_eq!(error.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delete_by_key_is_true_once_nothing_is_there() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Delete, [Fault::LoseAnswer]);
    assert!(table.delete(("Sales", "1")).await.unwrap());
    assert_eq!(faults.count(Op::Delete), 2);
    assert!(!table.delete(("Sales", "1")).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_a_version_claims_nothing() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let row = table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Delete, [Fault::LoseAnswer]);
    let error = table.delete_stored(&row).await.unwrap_err();
    assert!(current(&error).is_none());
    assert_eq!(faults.count(Op::Delete), 2);
}

#[tokio::test(start_paused = true)]
async fn tables_are_created_and_deleted_in_spite_of_lost_answers() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
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
async fn writes_that_are_never_answered_stay_unknown() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Insert, vec![Fault::LoseAnswer; 5]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
    assert!(matches!(error.current(), Some(CurrentState::Unread)));
    assert_eq!((error.attempts(), faults.count(Op::Insert)), (5, 5));
    assert_eq!(name_of(&table).await.as_deref(), Some("Ada"));

    // Without repetition, one lost answer is enough. A lost answer to a read is no doubt at all.
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
async fn a_refusal_of_the_request_itself_leaves_no_doubt() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let refused = Fault::Answer(refusal(400, "InvalidInput"));
    faults.plan(Op::Insert, [Fault::LoseRequest, refused]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Service, 2));
    // One of its circumstances leaves it open.
    let denied = Fault::Answer(refusal(403, "AuthenticationFailed"));
    faults.plan(Op::Insert, [Fault::LoseAnswer, denied]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(current(&error).unwrap().0);
    assert!(!error.is_denied());
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_not_repeated() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let statuses = [400, 401, 403, 404, 405, 409, 412, 413, 501, 505];
    for status in statuses {
        faults.plan(Op::Query, [Fault::Answer(refusal(status, "Made"))]);
        let error = table.query::<Employee>().collect().await.unwrap_err();
        assert_eq!(
            (error.status().unwrap().as_u16(), error.attempts()),
            (status, 1)
        );
    }
    assert_eq!(faults.count(Op::Query), statuses.len());
}

#[tokio::test(start_paused = true)]
async fn the_service_is_left_alone_as_long_as_it_asks() {
    let policy = RetryPolicy::exponential().delay(Duration::ZERO);
    let (_subject, table, faults) = Subject::with_faults(policy).await;
    for (name, value, expected) in [
        ("retry-after", "7", Duration::from_secs(7)),
        ("retry-after-ms", "1300", Duration::from_millis(1300)),
        ("x-ms-retry-after-ms", "90", Duration::from_millis(90)),
    ] {
        let mut busy = refusal(429, "TooManyRequests");
        busy.headers_mut().insert(name, value.parse().unwrap());
        faults.plan(Op::Query, [Fault::Answer(busy)]);
        let start = Instant::now();
        table.query::<Employee>().collect().await.unwrap();
        let passed = start.elapsed();
        // tokio's timers tick in milliseconds.
        let slack = Duration::from_millis(2);
        assert!(
            (expected..expected + slack).contains(&passed),
            "{name}: {passed:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_wait_is_begun_that_ends_after_the_deadline() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut busy = refusal(503, "ServerBusy");
    busy.headers_mut()
        .insert("retry-after", "61".parse().unwrap());
    faults.plan(Op::Query, [Fault::Answer(busy)]);
    let start = Instant::now();
    let error = table.query::<Employee>().collect().await.unwrap_err();
    assert!(error.is_throttled() && error.attempts() == 1, "{error:?}");
    assert_eq!(start.elapsed(), Duration::ZERO);
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
    let slack = Duration::from_millis(10);
    let limit = Duration::from_secs(10);
    assert!(
        (limit..limit + slack).contains(&error.elapsed()),
        "{:?}",
        error.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_the_same_request_newly_dated() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let service = client_with(subject.server(), |builder| {
        builder.transport(faults.clone()).clock(Ticking::default())
    });
    let lost = [Fault::LoseRequest, Fault::LoseRequest];
    faults.plan(Op::Insert, lost);
    // The clock is decades behind: the server refuses the signature, and was asked three times, and once what is there.
    let error = service
        .table(table.name())
        .insert(&Employee::ada())
        .await
        .unwrap_err();
    assert_eq!(error.attempts(), 4, "{error:?}");
    let seen = faults.seen();
    let seen: Vec<_> = seen.iter().filter(|seen| seen.op == Op::Insert).collect();
    let different = |name: &str| {
        let mut values: Vec<_> = seen
            .iter()
            .map(|seen| seen.headers[name].as_bytes())
            .collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    assert_eq!(different("x-ms-client-request-id"), 1);
    assert_eq!(different("x-ms-date"), 3);
    assert_eq!(different("authorization"), 3);
}

#[tokio::test(start_paused = true)]
async fn the_operations_of_a_client_share_a_budget() {
    let policy = RetryPolicy::exponential().budget(3);
    let (_subject, table, faults) = Subject::with_faults(policy).await;
    let busy = Fault::Answer(refusal(503, "ServerBusy"));
    faults.plan(Op::Query, vec![busy; 6]);
    let error = table.query::<Employee>().collect().await.unwrap_err();
    assert_eq!(error.attempts(), 4, "one, and the three in store");
    let error = table.query::<Employee>().collect().await.unwrap_err();
    assert_eq!(error.attempts(), 1, "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded() {
    let (subject, _, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let build = |requests| {
        TableServiceClient::builder(subject.server().endpoint())
            .credential(subject.server().credential())
            .transport(faults.clone())
            .max_in_flight(requests)
            .build()
    };
    assert_eq!(build(0).unwrap_err().kind(), ErrorKind::Configuration);
    let table = build(2).unwrap().table("Tests");
    faults.plan(Op::Query, vec![Fault::Delay(Duration::from_secs(1)); 6]);
    let start = Instant::now();
    let queries = (0..6).map(|_| table.query::<Employee>().collect());
    futures::future::try_join_all(queries).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3, "two at a time");

    faults.plan(Op::Query, vec![Fault::Hang; 20]);
    let queries = (0..3).map(|_| table.query::<Employee>().collect());
    let errors = futures::future::join_all(queries).await;
    assert!(
        errors
            .iter()
            .all(|error| error.as_ref().unwrap_err().is_timeout()),
        "{errors:?}"
    );
}

fn html(status: u16) -> Response<Bytes> {
    let page = Bytes::from_static(b"<html>Bad gateway</html>");
    Response::builder().status(status).body(page).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_gives_back_its_place() {
    let (subject, direct, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut row = direct.insert(&Employee::ada()).await.unwrap();
    let table = client_with(subject.server(), |builder| {
        builder.transport(faults.clone()).max_in_flight(1)
    })
    .table("Tests");
    let before = row.etag().clone();
    for fault in [Fault::Hang, Fault::Swallow] {
        row.age += 1;
        faults.plan(Op::Update, [fault]);
        let write = table.replace(&mut row).into_future();
        let dropped = tokio::time::timeout(Duration::from_secs(1), write).await;
        assert!(dropped.is_err(), "nothing answers");
        assert_eq!(*row.etag(), before, "the version in hand is the old one");
        // There is one place, and it is free.
        let now = Employee::find(&table).await;
        assert_eq!(
            now.unwrap().age,
            37,
            "what was sent was carried out, or not"
        );
    }
    let error = table.replace(&mut row).await.unwrap_err();
    assert!(
        error.is_precondition_failed(),
        "the next write tells: {error:?}"
    );
}

/// A clock that advances by a second each time it is read.
#[derive(Debug, Default)]
struct Ticking(std::sync::atomic::AtomicU64);

impl tablesdk::transport::Clock for Ticking {
    fn now(&self) -> tablesdk::Timestamp {
        let seconds = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        tablesdk::Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(seconds))
    }
}
