//! Retries: what the caller gets after lost, late and forged responses, how often and when the
//! client sends a request again, and within which limits. In process, on virtual time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::outcome::{Found, found};
use harness::proxy::{Reply, foreign, refusal};
use harness::{Subject, client_with};
use tablesdk::action::CurrentState;
use tablesdk::transport::{Clock, ReqwestTransport};
use tablesdk::{Error, ErrorCode, ErrorKind, RetryPolicy, Stored, TableServiceClient, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use crate::{Employee, start, with_header};

/// The entity that an error with an ambiguous outcome contains.
fn current(error: &Error) -> Stored<Employee> {
    match error.current() {
        Some(CurrentState::Present(entity)) => entity.read().unwrap(),
        other => panic!("{other:?}"),
    }
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
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    proxy.plan(Op::InsertEntity, [Reply::Refuse, Reply::Refuse]);
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(proxy.count(Op::InsertEntity), 3);
    let busy = Reply::Respond(refusal(503, "ServerBusy"));
    let throttled = Reply::Respond(refusal(429, "TooManyRequests"));
    for reply in [Reply::Refuse, busy, throttled] {
        proxy.plan(Op::InsertEntity, [reply]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(error.attempts(), 2);
    }
}

/// A missing entity shows that a delete is done. A missing table shows nothing.
#[tokio::test(start_paused = true)]
async fn a_delete_that_meets_a_missing_table_is_not_done() {
    let (_subject, table, faults) = start().await;
    let gone = Fault::error(ErrorCode::TableNotFound);
    let responses = [Fault::reset(), gone];
    faults.on(Op::DeleteEntity).inject_each(responses);
    let error = table.delete(("Sales", "1")).await.unwrap_err();
    assert_eq!(found(&error), Found::Missing);
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_request_was_lost_is_told_what_another_client_inserted() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.next(Op::InsertEntity, Fault::reset());
    let error = table.insert(&Employee::grace()).await.unwrap_err();
    assert_eq!(found(&error), Found::Different);
    assert_eq!(current(&error).name, "Ada");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_an_ambiguous_outcome_names_both_possibilities() {
    let (subject, table, faults) = start().await;
    let journal = subject.server().journal();
    faults.next(Op::InsertEntity, Fault::lost_response());
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(*current(&error), Employee::ada());
    assert_eq!(error.attempts(), 3, "two inserts and a read: {error:?}");
    assert_eq!(journal.requests().op(Op::QueryEntity).count(), 1);
    let text = error.to_string();
    let words = "may have been carried out or not (what is there now equals what was sent): 409";
    assert!(text.contains(words), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_entity_of_an_ambiguous_outcome_can_be_written() {
    let (_subject, table, faults) = start().await;
    let mut ada = table.insert(&Employee::ada()).await.unwrap();
    let before = ada.etag().clone();
    ada.age = 37;
    faults.next(Op::UpdateEntity, Fault::lost_response());
    let error = table.replace(&mut ada).await.unwrap_err();
    assert_eq!(*ada.etag(), before, "the caller keeps the old ETag");
    let mut now = current(&error);
    assert_eq!(now.age, 37);
    now.age = 38;
    table.merge(&mut now).await.unwrap();
    let error = table.replace(&mut ada).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(error.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn tables_are_created_and_deleted_despite_lost_responses() {
    let (subject, table, faults) = start().await;
    let more = subject.service.table("More");
    faults.next(Op::CreateTable, Fault::lost_response());
    more.create_table().await.unwrap();
    assert!(more.create_table().await.unwrap_err().is_conflict());
    faults.next(Op::DeleteTable, Fault::lost_response());
    assert!(table.delete_table().await.unwrap());
    assert!(!table.delete_table().await.unwrap());
    let names = subject.service.tables().collect().await.unwrap();
    assert_eq!(names, ["More"]);
}

#[tokio::test(start_paused = true)]
async fn without_retries_one_lost_response_is_ambiguous() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    faults.next(Op::InsertOrMergeEntity, Fault::reset());
    let error = table.upsert_merge(&Employee::ada()).await.unwrap_err();
    assert_eq!((found(&error), error.attempts()), (Found::Unread, 1));
    // A lost response to a read is not ambiguous.
    faults.next(Op::QueryEntity, Fault::lost_response());
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(journal.requests().count(), 2);
}

/// The meaning of a rejection that follows a lost response to the same write.
#[tokio::test(start_paused = true)]
async fn only_a_rejection_of_the_request_itself_is_definitive_after_a_lost_response() {
    let codes = [
        ErrorCode::InvalidInput,
        ErrorCode::AuthenticationFailed,
        // The first write has perhaps filled the entity.
        ErrorCode::TooManyProperties,
        ErrorCode::EntityTooLarge,
    ];
    let service = codes.map(|code| (refusal(code.status().as_u16(), code.as_str()), Some(code)));
    let proxies = [400, 405, 411, 413, 414, 415, 501].map(|status| (foreign(status), None));
    for (rejection, code) in service.into_iter().chain(proxies) {
        let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
        let mut ada = table.insert(&Employee::ada()).await.unwrap();
        ada.age = 37;
        let is_definitive = code == Some(ErrorCode::InvalidInput);
        let lost = Fault::reset();
        let lost = if is_definitive { lost } else { lost.applied() };
        subject.server().faults().next(Op::MergeEntity, lost);
        let status = rejection.status();
        proxy.plan(Op::MergeEntity, [Reply::Forward, Reply::Respond(rejection)]);
        let error = table.merge(&mut ada).await.unwrap_err();
        assert_eq!(
            (error.status(), error.code()),
            (Some(status), code.as_ref())
        );
        if is_definitive {
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Service, 2));
        } else {
            assert_eq!(found(&error), Found::Equal, "{error:?}");
            assert!(!error.is_denied());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_waits_as_long_as_the_service_asks() {
    let policy = RetryPolicy::exponential().delay(Duration::ZERO);
    let (_subject, table, proxy) = Subject::behind_proxy(policy).await;
    for (name, value, expected) in [
        ("retry-after", "7", Duration::from_secs(7)),
        ("retry-after-ms", "1300", Duration::from_millis(1300)),
        ("x-ms-retry-after-ms", "90", Duration::from_millis(90)),
    ] {
        let busy = with_header(refusal(429, "ServerBusy"), (name, value));
        proxy.plan(Op::QueryEntities, [Reply::Respond(busy)]);
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
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let busy = with_header(refusal(503, "ServerBusy"), ("retry-after", "61"));
    let busy = with_header(busy, ("x-ms-request-id", "id-1"));
    proxy.plan(Op::InsertEntity, [Reply::Respond(busy)]);
    let start = Instant::now();
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_throttled() && error.attempts() == 1, "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    let text = "insert entity in \"Tests\" at in-process.invalid/devstoreaccount1 (\"Sales\", \"1\"): 503 ServerBusy: Made up. (request id id-1)";
    assert_eq!(error.to_string(), text);
}

/// A server that is started again refuses connections for some seconds. Its callers do not notice,
/// however many they are.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_started_again_is_not_noticed() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::default()).await;
    table.insert(&Employee::ada()).await.unwrap();
    for seconds in [3, 5] {
        let back = Instant::now() + Duration::from_secs(seconds);
        proxy.choose(move |_| {
            if Instant::now() < back {
                Reply::Refuse
            } else {
                Reply::Forward
            }
        });
        let callers = (0..300).map(|number| {
            let table = table.clone();
            async move {
                let id = format!("{seconds}-{number}");
                table.insert(&Employee::new(&id, "Grace", 50)).await?;
                table.get::<Employee>(("Sales", "1")).await
            }
        });
        for found in futures::future::join_all(callers).await {
            assert!(found.unwrap().is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_the_service_is_unavailable() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let read = async |reply| {
        proxy.plan(Op::QueryEntity, [reply]);
        let read = table.get::<Employee>(("Sales", "1")).await;
        read.unwrap_err()
    };
    for status in [408, 429, 500, 502, 503, 504] {
        for response in [refusal(status, "Made"), foreign(status)] {
            let error = read(Reply::Respond(response)).await;
            assert!(error.is_unavailable(), "{error}");
            assert_eq!(error.retry_after(), None);
        }
        let busy = with_header(refusal(status, "ServerBusy"), ("retry-after", "7"));
        let error = read(Reply::Respond(busy)).await;
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }
    // A rejection that would come again is not retried.
    for status in [400, 401, 403, 404, 405, 409, 412, 413, 501, 505] {
        proxy.plan(Op::QueryEntity, [Reply::Respond(refusal(status, "Made"))]);
        let read = table.get::<Employee>(("Sales", "1"));
        let error = read.retry(RetryPolicy::exponential()).await.unwrap_err();
        assert_eq!(
            (error.status().unwrap().as_u16(), error.attempts()),
            (status, 1)
        );
        assert!(!error.is_unavailable(), "{error}");
    }
    assert!(read(Reply::Refuse).await.is_unavailable());
    let creating = refusal(409, "AccountBeingCreated");
    assert!(read(Reply::Respond(creating)).await.is_unavailable());

    // A write that may have been carried out is another matter, and one that was not sent is not.
    let write = async |reply| {
        proxy.plan(Op::InsertEntity, [reply]);
        table.insert(&Employee::ada()).await.unwrap_err()
    };
    assert!(write(Reply::Refuse).await.is_unavailable());
    let failed = with_header(foreign(500), ("retry-after", "7"));
    let error = write(Reply::Respond(failed)).await;
    assert!(error.is_outcome_unknown() && !error.is_unavailable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn attempts_and_operations_are_limited_in_time() {
    let policy = RetryPolicy::exponential()
        .delay(Duration::ZERO)
        .try_timeout(Duration::from_secs(4))
        .deadline(Duration::from_secs(10));
    let (_subject, table, faults) = Subject::with_table(policy).await;
    faults.next(Op::QueryEntities, Fault::delay(Duration::from_secs(3)));
    table.query::<Employee>().collect().await.unwrap();
    faults
        .on(Op::QueryEntities)
        .times(5)
        .inject(Fault::no_response().applied());
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
    let (subject, _, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let service = client_with(subject.server(), |builder| {
        builder.transport(proxy.clone()).clock(Ticking::default())
    });
    // A server would refuse the date before it chooses a fault.
    let lost = Reply::Respond(refusal(500, "InternalError"));
    proxy.plan(Op::InsertEntity, [lost.clone(), lost]);
    // The clock is decades behind: the server rejects the signature of the third attempt, and of
    // the read after it.
    let insert = service.table("Tests").insert(&Employee::ada()).await;
    let error = insert.unwrap_err();
    assert_eq!(error.attempts(), 4, "{error:?}");
    let mut sent = proxy.sent();
    sent.retain(|sent| sent.op == Op::InsertEntity);
    let different = |name: &str| {
        let mut values: Vec<_> = sent.iter().map(|sent| &sent.headers[name]).collect();
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
    let (_subject, table, faults) = Subject::with_table(policy).await;
    let busy = Fault::error(ErrorCode::ServerBusy);
    faults.on(Op::QueryEntities).times(6).inject(busy);
    for attempts in [1 + 3, 1] {
        let error = table.query::<Employee>().collect().await.unwrap_err();
        assert_eq!(error.attempts(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_to_connect_costs_no_retry() {
    let policy = RetryPolicy::exponential().budget(0);
    let (_subject, table, proxy) = Subject::behind_proxy(policy).await;
    proxy.plan(Op::QueryEntities, [Reply::Refuse, Reply::Refuse]);
    table.query::<Employee>().collect().await.unwrap();
    proxy.plan(Op::QueryEntities, [Reply::Respond(foreign(503))]);
    let error = table.query::<Employee>().collect().await.unwrap_err();
    assert_eq!(error.attempts(), 1);
}

/// Most operations of several requests have not retried any.
#[tokio::test(start_paused = true)]
async fn a_message_counts_the_requests_of_its_operation() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let refused = Fault::error(ErrorCode::InvalidInput);
    faults.on_writes().inject(refused);
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    let text = modify.await.unwrap_err().to_string();
    assert!(text.contains("(2 requests in "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_limited() {
    let (subject, _, faults) = start().await;
    let none = TableServiceClient::builder(subject.server().endpoint()).max_in_flight(0);
    assert_eq!(none.build().unwrap_err().kind(), ErrorKind::Configuration);
    let service = client_with(subject.server(), |builder| builder.max_in_flight(2));
    let table = service.table("Tests");
    faults
        .on(Op::QueryEntities)
        .times(6)
        .inject(Fault::delay(Duration::from_secs(1)));
    let start = Instant::now();
    let queries = (0..6).map(|_| table.query::<Employee>().collect());
    futures::future::try_join_all(queries).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3, "two at a time");

    faults
        .on(Op::QueryEntities)
        .times(20)
        .inject(Fault::no_response().applied());
    let queries = (0..3).map(|_| table.query::<Employee>().collect());
    for outcome in futures::future::join_all(queries).await {
        assert!(outcome.unwrap_err().is_timeout());
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_operation_returns_its_permit() {
    let (subject, direct, faults) = start().await;
    let mut ada = direct.insert(&Employee::ada()).await.unwrap();
    let service = client_with(subject.server(), |builder| builder.max_in_flight(1));
    let table = service.table("Tests");
    let before = ada.etag().clone();
    for fault in [Fault::no_response().applied(), Fault::no_response()] {
        ada.age += 1;
        faults.next(Op::UpdateEntity, fault);
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
