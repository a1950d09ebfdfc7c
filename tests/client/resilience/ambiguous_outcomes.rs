//! Ambiguous outcomes, responses that are not the service's, and unusual successes: each test is one case in which a client could
//! report something that it does not know. In process, on virtual time.

use std::slice;
use std::time::Duration;

use bytes::Bytes;
use harness::faults::{Fault, Op, SERVICE_HEADERS, foreign, refusal, service_response};
use harness::{Subject, client_with};
use http::Response;
use tablesdk::action::CurrentState;
use tablesdk::transport::{Backend, Transport};
use tablesdk::{Error, ErrorKind, RetryPolicy, SharedKey, TableEntity, TableServiceClient};
use tokio::time::Instant;

use crate::Employee;

/// Whether what is there now equals what was sent.
fn doubt(error: &Error) -> Option<bool> {
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
    match error.current().unwrap() {
        CurrentState::Present(row) => Some(row.equals_sent()),
        _ => None,
    }
}

fn no_content(etag: Option<&str>) -> Response<Bytes> {
    let mut response = service_response(204);
    if let Some(etag) = etag {
        response = response.header("etag", etag);
    }
    response.body(Bytes::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_strangers_400_after_a_lost_answer_refuses_nothing() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    for status in [400, 405, 411, 413, 414, 415, 501] {
        let page = Fault::Answer(foreign(status));
        faults.plan(Op::Insert, [Fault::LoseAnswer, page]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert_eq!(doubt(&error), Some(true), "{status}");
        assert_eq!(
            (error.code(), error.status().unwrap().as_u16()),
            (None, status)
        );
        table.delete(("Sales", "1")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_merge_that_meets_a_full_entity_after_a_lost_answer_may_have_filled_it() {
    for code in ["TooManyProperties", "EntityTooLarge"] {
        let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        let mut row = table.insert(&Employee::ada()).await.unwrap();
        row.age = 37;
        let full = Fault::Answer(refusal(400, code));
        faults.plan(Op::Update, [Fault::LoseAnswer, full]);
        let error = table.merge(&mut row).await.unwrap_err();
        assert_eq!(doubt(&error), Some(true), "{code}");
    }
}

/// Stored as JSON, a NaN becomes a null, which is no number.
#[derive(Debug, TableEntity)]
struct Scores {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    #[table(json)]
    scores: Vec<f64>,
}

mod one_way {
    use tablesdk::entity::ValueError;

    pub(super) type Property = i64;

    #[expect(
        clippy::unnecessary_wraps,
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that the attribute asks for"
    )]
    pub(super) fn to_property(count: &u8) -> Result<Property, ValueError> {
        Ok(1000 + i64::from(*count))
    }

    pub(super) fn from_property(count: Property) -> Result<u8, ValueError> {
        u8::try_from(count).map_err(|_| ValueError::out_of_range(count, "counts are small"))
    }
}

#[derive(Debug, TableEntity)]
struct OneWay {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    #[table(with = "one_way")]
    count: u8,
}

#[tokio::test(start_paused = true)]
async fn an_insert_that_could_not_be_read_back_is_refused_before_it_is_sent() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let (class, id) = ("A".to_owned(), "1".to_owned());
    let scores = Scores {
        class: class.clone(),
        id: id.clone(),
        scores: vec![f64::NAN],
    };
    let error = table.insert(&scores).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    let one_way = OneWay {
        class,
        id,
        count: 3,
    };
    let error = table.insert(&one_way).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "1");
    assert_eq!(faults.count(Op::Insert), 0);
}

#[derive(Debug, PartialEq, TableEntity)]
struct Timed {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    #[table(timestamp)]
    written: tablesdk::Timestamp,
}

#[tokio::test(start_paused = true)]
async fn an_insert_under_an_etag_without_a_time_fetches_the_time_or_says_that_it_is_stored() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let timed = Timed {
        class: "A".to_owned(),
        id: "1".to_owned(),
        written: tablesdk::Timestamp::UNIX_EPOCH,
    };
    let plan = || {
        let timeless = no_content(Some("W/\"7\""));
        faults.plan(Op::Insert, [Fault::CarryOutAndAnswer(timeless)]);
    };
    plan();
    let row = r#"{"odata.etag":"W/\"7\"","PartitionKey":"A","RowKey":"1","Timestamp":"2024-03-15T10:20:30Z"}"#;
    faults.plan(Op::Get, [Fault::Answer(Response::new(row.into()))]);
    let stored = table.insert(&timed).await.unwrap();
    assert_eq!(stored.written.to_string(), "2024-03-15T10:20:30Z");
    assert_eq!(stored.etag().as_str(), "W/\"7\"");

    // Somebody wrote it again in between.
    table.delete(("A", "1")).await.unwrap();
    plan();
    let error = table.insert(&timed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Response, "{error:?}");
    let text = format!("{error:?}");
    assert!(text.contains("stored as version W/\"7\""), "{text}");
    assert!(table.get::<Timed>(("A", "1")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_success_without_a_version_is_a_doubt_for_every_write() {
    let odd = [
        no_content(None),
        service_response(200)
            .header("etag", "\"of a page\"")
            .body(Bytes::from_static(b"<html>Welcome</html>"))
            .unwrap(),
    ];
    for odd in odd {
        let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        let carried_out = || [Fault::CarryOutAndAnswer(odd.clone())];
        faults.plan(Op::Insert, carried_out());
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert_eq!(doubt(&error), Some(true));
        let mut row = Employee::find(&table).await.unwrap();
        row.age = 37;
        faults.plan(Op::Update, carried_out());
        let error = table.replace(&mut row).await.unwrap_err();
        assert_eq!(doubt(&error), Some(true));
        faults.plan(Op::Batch, carried_out());
        let batch = table.batch("Sales").upsert_merge(&Employee::ada());
        let error = batch.await.unwrap_err();
        assert_eq!(doubt(&error), None);
        // What promises a state looks for it.
        faults.plan(Op::Update, carried_out());
        let etag = table.upsert_replace(&Employee::ada()).await.unwrap();
        let now = Employee::find(&table).await;
        assert_eq!(etag, *now.unwrap().etag());
        faults.plan(Op::Update, [Fault::Answer(odd.clone())]);
        let error = table.upsert_replace(&Employee::grace()).await.unwrap_err();
        assert_eq!(doubt(&error), Some(false));
    }
}

/// Responses of success that lack a header that every response of the service has.
fn of_a_proxy(status: u16) -> [Response<Bytes>; 3] {
    let [id, version] = &SERVICE_HEADERS;
    let lacking = [&[][..], slice::from_ref(id), slice::from_ref(version)];
    lacking.map(|headers| {
        let etag = "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"";
        let response = Response::builder().status(status).header("etag", etag);
        let response = headers.iter().fold(response, |response, (name, value)| {
            response.header(*name, *value)
        });
        response.body(Bytes::new()).unwrap()
    })
}

#[tokio::test(start_paused = true)]
async fn success_of_a_proxy_to_a_cancel_marker_does_not_prove_that_nothing_was_done() {
    for status in [201, 204] {
        for response in of_a_proxy(status) {
            let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
            faults.plan(Op::Batch, [Fault::LoseAnswer]);
            faults.plan(Op::Batch, vec![Fault::LoseRequest; 4]);
            faults.plan(Op::Insert, [Fault::Answer(response)]);
            let error = table
                .insert(&Employee::ada())
                .exactly_once()
                .await
                .unwrap_err();
            assert!(error.is_outcome_unknown(), "{status}: {error:?}");
            let row = Employee::find(&table).await;
            assert!(row.is_some(), "it was done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn success_of_a_proxy_proves_no_write() {
    for response in of_a_proxy(204) {
        let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        let answer = || [Fault::Answer(response.clone())];
        let mut row = table.insert(&Employee::new("2", "Alan", 41)).await.unwrap();

        faults.plan(Op::Insert, answer());
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(
            matches!(error.current(), Some(CurrentState::Missing)),
            "{error:?}"
        );
        faults.plan(Op::Update, answer());
        let error = table.upsert_replace(&Employee::ada()).await.unwrap_err();
        assert!(
            matches!(error.current(), Some(CurrentState::Missing)),
            "{error:?}"
        );
        row.age = 42;
        faults.plan(Op::Update, answer());
        assert_eq!(
            doubt(&table.replace(&mut row).await.unwrap_err()),
            Some(false)
        );
        faults.plan(Op::Delete, answer());
        assert_eq!(
            doubt(&table.delete_stored(&row).await.unwrap_err()),
            Some(false)
        );
        faults.plan(Op::Delete, answer());
        let error = table.delete(("Sales", "2")).await.unwrap_err();
        assert_eq!(doubt(&error), Some(false));

        faults.plan(Op::DeleteTable, answer());
        let error = table.delete_table().await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
        faults.plan(Op::CreateTable, answer());
        let error = subject
            .service
            .table("Others")
            .create_table()
            .await
            .unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
        faults.plan(Op::Update, answer());
        let error = table.set_access_policy([]).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
    }
    for response in of_a_proxy(202) {
        let (subject, _table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        faults.plan(Op::Update, [Fault::Answer(response)]);
        let properties = tablesdk::service_properties::ServiceProperties::default();
        let error = subject
            .service
            .set_properties(properties)
            .await
            .unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
    }
}

/// As Cosmos DB responds: with a request id, and without a version.
#[derive(Debug)]
struct WithoutVersion<T>(T);

impl<T: Transport> Transport for WithoutVersion<T> {
    fn send(&self, request: http::Request<Bytes>) -> tablesdk::transport::TransportFuture<'_> {
        Box::pin(async move {
            let mut response = self.0.send(request).await?;
            response.headers_mut().remove("x-ms-version");
            Ok(response)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_of_cosmos_db_needs_no_version() {
    for (backend, is_believed) in [(Backend::Cosmos, true), (Backend::Storage, false)] {
        let subject = Subject::in_process();
        subject.table().await;
        let service = client_with(subject.server(), |builder| {
            builder
                .transport(WithoutVersion(subject.server().transport()))
                .backend(backend)
        });
        let inserted = service.table("Tests").insert(&Employee::ada()).await;
        assert_eq!(inserted.is_ok(), is_believed, "{inserted:?}");
        if let Err(error) = inserted {
            let text = format!("{error:?}");
            assert!(text.contains("x-ms-version"), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_true_after_a_repetition_need_not_be_its_own() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Delete, [Fault::LoseRequest]);
    // Nothing was ever there, as the documentation says it may be.
    assert!(table.delete(("Sales", "1")).await.unwrap());
    faults.plan(Op::Batch, [Fault::LoseRequest]);
    assert!(!table.delete(("Sales", "1")).exactly_once().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_strangers_404_says_nothing_of_entities() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Get, [Fault::Answer(foreign(404))]);
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    assert_eq!(error.status().unwrap().as_u16(), 404);
    assert!(!error.is_not_found(), "{error:?}");
    faults.plan(Op::Delete, [Fault::Answer(foreign(404))]);
    faults.plan(Op::Get, [Fault::Answer(foreign(404))]);
    let error = table.delete(("Sales", "1")).await.unwrap_err();
    assert!(
        matches!(error.current(), Some(CurrentState::Unread)),
        "{error:?}"
    );
    faults.plan(Op::DeleteTable, [Fault::Answer(foreign(404))]);
    let error = table.delete_table().await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    for status in [409, 412] {
        faults.plan(Op::Insert, [Fault::Answer(foreign(status))]);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modification_that_never_holds_ends_with_its_deadline() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let changed = || Fault::Answer(refusal(412, "UpdateConditionNotSatisfied"));
    faults.plan(Op::Update, std::iter::repeat_with(changed).take(10_000));
    let start = Instant::now();
    let modify = table
        .modify(("Sales", "1"), Employee::grow_older)
        .rounds(u32::MAX);
    let error = modify.await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    let passed = start.elapsed();
    assert!(passed > Duration::from_secs(50), "it went on: {passed:?}");
    assert!(passed < Duration::from_secs(60), "not for ever: {passed:?}");
    // Of all rounds, not of the last request.
    let sent = faults.count(Op::Get) + faults.count(Op::Update);
    assert_eq!(error.attempts() as usize, sent);
    assert!(error.elapsed() == passed && sent > 100, "{error:?}");

    let before = faults.count(Op::Update);
    let error = table
        .modify(("Sales", "1"), Employee::grow_older)
        .await
        .unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(
        faults.count(Op::Update) - before,
        16,
        "unless told otherwise"
    );
}

#[tokio::test(start_paused = true)]
async fn what_has_no_version_is_not_the_row_that_is_there() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Insert, [Fault::LoseAnswer]);
    faults.plan(Op::Get, [Fault::Answer(Response::new("{}".into()))]);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(
        matches!(error.current(), Some(CurrentState::Unread)),
        "{error:?}"
    );
}

/// The operating system accepts the connection, the test does not. Time is virtual.
#[tokio::test(start_paused = true)]
async fn an_attempt_over_http_may_take_longer_than_a_minute() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (attempt, everything) = (Duration::from_secs(100), Duration::from_secs(150));
    let service = TableServiceClient::builder(format!("http://{address}/acct"))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .retry(
            RetryPolicy::none()
                .try_timeout(attempt)
                .deadline(everything),
        )
        .build()
        .unwrap();
    let error = service.tables().collect().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(error.elapsed() >= attempt, "{:?}", error.elapsed());
}
