//! Ambiguous outcomes, responses that are not the service's, and unusual successes: each test is
//! one case in which a client could report something that it does not know. In process, on virtual
//! time.

use std::time::Duration;

use bytes::Bytes;
use harness::outcome::{Found, found};
use harness::proxy::{Proxy, Reply, SERVICE_HEADERS, foreign, service_response};
use harness::{Subject, client_with};
use http::Response;
use tablesdk::service_properties::ServiceProperties;
use tablesdk::transport::{Backend, Transport, TransportFuture};
use tablesdk::{
    ErrorCode, ErrorKind, RetryPolicy, SharedKey, TableClient, TableEntity, TableServiceClient,
    Timestamp,
};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use crate::Employee;

async fn start() -> (Subject, TableClient, Proxy) {
    Subject::behind_proxy(RetryPolicy::exponential()).await
}

/// Stored as JSON, a NaN becomes a null, which is not a number.
#[derive(Debug, TableEntity)]
struct Scores {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    #[table(json)]
    scores: Vec<f64>,
}

#[tokio::test(start_paused = true)]
async fn an_insert_that_cannot_be_read_back_is_not_sent() {
    let (subject, table, _) = start().await;
    let journal = subject.server().journal();
    let scores = Scores {
        class: "A".to_owned(),
        id: "1".to_owned(),
        scores: vec![f64::NAN],
    };
    let error = table.insert(&scores).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "1");
    assert!(journal.requests().is_empty());
}

#[derive(Debug, PartialEq, TableEntity)]
struct Timed {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    #[table(timestamp)]
    written: Timestamp,
}

#[tokio::test(start_paused = true)]
async fn an_etag_without_a_time_makes_the_insert_read_the_time() {
    let (_subject, table, proxy) = start().await;
    let timed = Timed {
        class: "A".to_owned(),
        id: "1".to_owned(),
        written: Timestamp::UNIX_EPOCH,
    };
    let plan = || {
        let timeless = service_response(204).header("etag", "W/\"7\"");
        let timeless = timeless.body(Bytes::new()).unwrap();
        proxy.plan(Op::InsertEntity, [Reply::Replace(timeless)]);
    };
    plan();
    let entity = r#"{"odata.etag":"W/\"7\"","PartitionKey":"A","RowKey":"1","Timestamp":"2024-03-15T10:20:30Z"}"#;
    proxy.plan(
        Op::QueryEntity,
        [Reply::Respond(Response::new(entity.into()))],
    );
    let stored = table.insert(&timed).await.unwrap();
    assert_eq!(stored.written.to_string(), "2024-03-15T10:20:30Z");
    assert_eq!(stored.etag().as_str(), "W/\"7\"");

    // Another client wrote the entity before it was read.
    table.delete(("A", "1")).await.unwrap();
    plan();
    let error = table.insert(&timed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Response, "{error:?}");
    let text = format!("{error:?}");
    assert!(text.contains("stored with the ETag W/\"7\""), "{text}");
    assert!(table.get::<Timed>(("A", "1")).await.unwrap().is_some());
}

/// Responses of success that lack headers of the service: both, or one of them.
fn of_a_proxy(status: u16) -> [Response<Bytes>; 3] {
    let [id, version] = SERVICE_HEADERS;
    [vec![], vec![id], vec![version]].map(|headers| {
        let etag = "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"";
        let mut response = Response::builder().status(status).header("etag", etag);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        response.body(Bytes::new()).unwrap()
    })
}

#[tokio::test(start_paused = true)]
async fn a_success_of_a_proxy_does_not_confirm_a_cancel_marker() {
    let odd = service_response(299).body(Bytes::new()).unwrap();
    let of_a_proxy = [of_a_proxy(201), of_a_proxy(204)].concat();
    for response in of_a_proxy.into_iter().chain([odd]) {
        let (subject, table, proxy) = start().await;
        let batches = || subject.server().faults().on(Op::Batch);
        batches().times(1).inject(Fault::lost_response());
        batches().times(6).inject(Fault::reset());
        proxy.plan(Op::InsertEntity, [Reply::Respond(response)]);
        let insert = table.insert(&Employee::ada()).exactly_once();
        let error = insert.await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
        assert!(Employee::find(&table).await.is_some(), "it was inserted");
    }
}

/// Writes of entities are in `faults::http_level`.
#[tokio::test(start_paused = true)]
async fn a_success_of_a_proxy_does_not_confirm_an_operation_on_a_table() {
    let page = service_response(200).header("content-type", "text/html");
    let page = page
        .body(Bytes::from_static(b"<html>Welcome</html>"))
        .unwrap();
    let mut odd = [201, 202, 204].map(of_a_proxy).concat();
    odd.extend([page, foreign(404)]);
    for response in odd {
        let (subject, table, proxy) = start().await;
        let answer = |op| proxy.plan(op, [Reply::Respond(response.clone())]);
        answer(Op::DeleteTable);
        let deleted = table.delete_table().await.unwrap_err();
        answer(Op::CreateTable);
        let created = subject
            .service
            .table("Others")
            .create_table()
            .await
            .unwrap_err();
        answer(Op::SetTableAcl);
        let shared = table.set_access_policy([]).await.unwrap_err();
        answer(Op::SetTableServiceProperties);
        let properties = ServiceProperties::default();
        let set = subject
            .service
            .set_properties(properties)
            .await
            .unwrap_err();
        for error in [deleted, created, shared, set] {
            assert_eq!(found(&error), Found::Unread, "{response:?}: {error:?}");
        }
    }
}

/// As Cosmos DB responds: with a request id, and without a version.
#[derive(Debug)]
struct WithoutVersion<T>(T);

impl<T: Transport> Transport for WithoutVersion<T> {
    fn send(&self, request: http::Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let mut response = self.0.send(request).await?;
            response.headers_mut().remove("x-ms-version");
            Ok(response)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn only_cosmos_db_may_omit_the_version_of_a_success() {
    for (backend, is_trusted) in [(Backend::Cosmos, true), (Backend::Storage, false)] {
        let subject = Subject::in_process();
        subject.table().await;
        let transport = WithoutVersion(subject.server().transport());
        let service = client_with(subject.server(), |builder| {
            builder.transport(transport).backend(backend)
        });
        let inserted = service.table("Tests").insert(&Employee::ada()).await;
        assert_eq!(inserted.is_ok(), is_trusted, "{inserted:?}");
        if let Err(error) = inserted {
            let text = format!("{error:?}");
            assert!(text.contains("x-ms-version"), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_delete_may_report_another_clients_delete() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    faults.next(Op::DeleteEntity, Fault::reset());
    // The entity never existed; the documentation says that this happens.
    assert!(table.delete(("Sales", "1")).await.unwrap());
    faults.next(Op::Batch, Fault::reset());
    let delete = table.delete(("Sales", "1")).exactly_once();
    assert!(!delete.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_error_page_of_a_proxy_is_not_about_entities() {
    let (_subject, table, proxy) = start().await;
    proxy.plan(Op::QueryEntity, [Reply::Respond(foreign(404))]);
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    assert_eq!(error.status().unwrap().as_u16(), 404);
    assert!(!error.is_not_found(), "{error:?}");
    proxy.plan(Op::DeleteEntity, [Reply::Respond(foreign(404))]);
    proxy.plan(Op::QueryEntity, [Reply::Respond(foreign(404))]);
    let error = table.delete(("Sales", "1")).await.unwrap_err();
    assert_eq!(found(&error), Found::Unread);
}

#[tokio::test(start_paused = true)]
async fn modify_ends_with_its_deadline_or_its_rounds() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let changed = Fault::error(ErrorCode::UpdateConditionNotSatisfied);
    faults.on(Op::UpdateEntity).inject(changed);
    let journal = subject.server().journal();
    let start = Instant::now();
    let modify = || table.modify(("Sales", "1"), Employee::grow_older);
    let error = modify().rounds(u32::MAX).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    let passed = start.elapsed().as_secs();
    assert!((50..60).contains(&passed), "{passed}");
    // Attempts and time are those of all rounds.
    let sent = journal.requests().count();
    assert_eq!(error.attempts() as usize, sent);
    assert!(
        error.elapsed() == start.elapsed() && sent > 100,
        "{error:?}"
    );

    journal.clear();
    let error = modify().await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    let writes = journal.requests().op(Op::UpdateEntity);
    assert_eq!(writes.count(), 16, "by default");
}

#[tokio::test(start_paused = true)]
async fn an_entity_without_an_etag_is_not_the_current_state() {
    let (subject, table, proxy) = start().await;
    let inserts = subject.server().faults().on(Op::InsertEntity);
    inserts.times(1).inject(Fault::lost_response());
    proxy.plan(
        Op::QueryEntity,
        [Reply::Respond(Response::new("{}".into()))],
    );
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(found(&error), Found::Unread);
}

/// The operating system accepts the connection, the test does not. Time is virtual.
#[tokio::test(start_paused = true)]
async fn an_attempt_over_http_may_take_longer_than_a_minute() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let attempt = Duration::from_secs(100);
    let retry = RetryPolicy::none().try_timeout(attempt);
    let service = TableServiceClient::builder(format!("http://{address}/acct"))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .retry(retry.deadline(Duration::from_secs(150)))
        .build();
    let error = service.unwrap().tables().collect().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(error.elapsed() >= attempt, "{:?}", error.elapsed());
}
