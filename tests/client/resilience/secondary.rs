//! When the primary fails, reads go to the secondary if that is allowed. The secondary lags behind, so its rejections, such as "not
//! found", are not trusted. Writes never go there.

use std::time::Duration;

use harness::faults::{Fault, Faults, Op, refusal};
use harness::{Subject, client_with};
use tablesdk::transport::Backend;
use tablesdk::{ErrorKind, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::{InProcess, TableServer};
use tokio::time::Instant;

use crate::Employee;

async fn start() -> (TableServer, TableClient, Faults<InProcess>) {
    let server = TableServer::in_process();
    let faults = Faults::new(server.transport());
    let service = client_with(&server, |builder| {
        builder
            .transport(faults.clone())
            .retry(RetryPolicy::exponential().delay(Duration::ZERO))
            .secondary_reads()
    });
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    table.insert(&Employee::ada()).await.unwrap();
    (server, table, faults)
}

/// For each request of that kind, whether it went to the secondary.
fn places(faults: &Faults<InProcess>, op: Op) -> Vec<bool> {
    let seen = faults.seen();
    let seen = seen.iter().filter(|seen| seen.op == op);
    seen.map(|seen| seen.url.contains("-secondary/")).collect()
}

fn failing() -> Fault {
    Fault::Answer(refusal(500, "InternalError"))
}

#[tokio::test(start_paused = true)]
async fn a_read_goes_to_the_secondary_when_the_primary_fails() {
    let (_server, table, faults) = start().await;
    for fault in [failing(), Fault::LoseAnswer, Fault::Hang, Fault::Refuse] {
        faults.plan(Op::Get, [fault]);
        let row = Employee::find(&table).await;
        assert_eq!(row.unwrap().name, "Ada");
    }
    assert_eq!(places(&faults, Op::Get), [false, true].repeat(4));
    faults.plan(Op::Query, [failing()]);
    let query = table
        .query::<Employee>()
        .filter(|e| e.name.eq("Ada & Söhne"));
    assert_eq!(query.collect().await.unwrap().len(), 0);
    assert_eq!(places(&faults, Op::Query), [false, true]);

    // Either of the two may recover first.
    faults.plan(Op::Get, vec![failing(); 4]);
    Employee::find(&table).await.unwrap();
    assert_eq!(
        places(&faults, Op::Get)[8..],
        [false, true, false, true, false]
    );
}

#[tokio::test(start_paused = true)]
async fn the_secondary_is_read_while_the_primary_is_busy() {
    let (_server, table, faults) = start().await;
    let mut busy = refusal(503, "ServerBusy");
    busy.headers_mut()
        .insert("retry-after", "20".parse().unwrap());
    faults.plan(Op::Get, [Fault::Answer(busy), failing()]);
    let start = Instant::now();
    Employee::find(&table).await.unwrap();
    assert_eq!(places(&faults, Op::Get), [false, true, false]);
    assert_eq!(
        start.elapsed().as_secs(),
        20,
        "the primary is left alone as it asked"
    );
}

#[tokio::test(start_paused = true)]
async fn a_404_of_the_secondary_is_not_trusted() {
    let (_server, table, faults) = start().await;
    let missing = || Fault::Answer(refusal(404, "ResourceNotFound"));
    faults.plan(Op::Get, [failing(), missing()]);
    assert!(Employee::find(&table).await.is_some());
    let denied = Fault::Answer(refusal(403, "AuthorizationFailure"));
    let gone = Fault::Answer(refusal(404, "TableNotFound"));
    faults.plan(Op::Get, [failing(), denied, failing(), gone, failing()]);
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    // The error is that of the primary.
    assert_eq!(error.code().unwrap().as_str(), "InternalError");
    assert_eq!(error.attempts(), 5);
    // A 404 of the primary is definitive.
    faults.plan(Op::Get, [missing()]);
    assert!(Employee::find(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn writes_and_their_reads_use_the_primary() {
    let (_server, table, faults) = start().await;
    faults.plan(Op::Get, [failing(), failing()]);
    faults.plan(Op::Update, [failing(), failing()]);
    let row = table
        .modify(("Sales", "1"), Employee::grow_older)
        .await
        .unwrap();
    assert_eq!(row.age, 37);
    faults.plan(Op::Insert, [Fault::LoseAnswer]);
    faults.plan(Op::Get, [failing()]);
    let error = table.insert(&Employee::new("2", "Alan", 41)).await;
    assert!(error.unwrap_err().current().is_some());
    faults.plan(Op::Batch, [Fault::LoseAnswer]);
    faults.plan(Op::Get, [failing()]);
    let alan = Employee::new("3", "Alan", 41);
    table.insert(&alan).exactly_once().await.unwrap();
    assert!(
        faults
            .seen()
            .iter()
            .all(|seen| !seen.url.contains("-secondary"))
    );
}

#[tokio::test]
async fn the_secondary_accepts_the_signature_over_http() {
    let subject = Subject::over_http().await;
    subject.table().await;
    let endpoint = format!("{}-secondary", subject.server().endpoint());
    let service = TableServiceClient::builder(endpoint)
        .credential(subject.server().credential())
        .build()
        .unwrap();
    assert_eq!(service.tables().collect().await.unwrap(), ["Tests"]);
}

#[test]
fn an_endpoint_without_a_secondary_is_rejected() {
    let build = |endpoint: &str, backend| {
        let builder = TableServiceClient::builder(endpoint).secondary_reads();
        builder.backend(backend).build()
    };
    let storage = Backend::Storage;
    assert!(build("https://acct.table.core.windows.net", storage).is_ok());
    for (endpoint, backend) in [
        ("https://tables.contoso.example", storage),
        ("https://acct-secondary.table.core.windows.net", storage),
        ("https://acct.table.cosmos.azure.com", Backend::Cosmos),
    ] {
        let error = build(endpoint, backend).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
        assert!(error.to_string().contains(endpoint), "{error:?}");
    }
}
