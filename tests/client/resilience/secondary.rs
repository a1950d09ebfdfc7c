//! When the primary fails, reads go to the secondary if that is allowed. The secondary lags behind,
//! so its rejections, such as "not found", are not trusted. Writes never go there.

use std::time::Duration;

use harness::proxy::{Proxy, Reply};
use harness::{Subject, client_with};
use tablesdk::transport::Backend;
use tablesdk::{ErrorCode, ErrorKind, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Faults, Op};
use tokio::time::Instant;

use crate::Employee;

async fn start() -> (Faults, TableClient, Proxy) {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = client_with(&server, |builder| {
        builder
            .transport(proxy.clone())
            .retry(RetryPolicy::exponential().attempts(5).delay(Duration::ZERO))
            .secondary_reads()
    });
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    table.insert(&Employee::ada()).await.unwrap();
    (server.faults(), table, proxy)
}

/// For each request of that operation, whether it went to the secondary.
fn places(proxy: &Proxy, op: Op) -> Vec<bool> {
    let sent = proxy.sent();
    let sent = sent.iter().filter(|sent| sent.op == op);
    sent.map(|sent| sent.url.contains("-secondary/")).collect()
}

fn failing() -> Fault {
    Fault::error(ErrorCode::InternalError)
}

#[tokio::test(start_paused = true)]
async fn a_read_goes_to_the_secondary_when_the_primary_fails() {
    let (faults, table, proxy) = start().await;
    let silent = Fault::no_response().applied();
    for fault in [failing(), Fault::lost_response(), silent] {
        faults.next(Op::QueryEntity, fault);
        let row = Employee::find(&table).await;
        assert_eq!(row.unwrap().name, "Ada");
    }
    proxy.plan(Op::QueryEntity, [Reply::Refuse]);
    assert!(Employee::find(&table).await.is_some());
    assert_eq!(places(&proxy, Op::QueryEntity), [false, true].repeat(4));
    faults.next(Op::QueryEntities, failing());
    let query = table.query::<Employee>();
    let query = query.filter(|e| e.name.eq("Ada & Söhne"));
    assert_eq!(query.collect().await.unwrap().len(), 0);
    assert_eq!(places(&proxy, Op::QueryEntities), [false, true]);

    // Either of the two may recover first.
    faults.on(Op::QueryEntity).times(4).inject(failing());
    Employee::find(&table).await.unwrap();
    let last = &places(&proxy, Op::QueryEntity)[8..];
    assert_eq!(last, [false, true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn the_secondary_is_read_while_the_primary_is_busy() {
    let (faults, table, proxy) = start().await;
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(20));
    faults.on(Op::QueryEntity).inject_each([busy, failing()]);
    let start = Instant::now();
    Employee::find(&table).await.unwrap();
    assert_eq!(places(&proxy, Op::QueryEntity), [false, true, false]);
    // The primary is left alone as it asked.
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_404_of_the_secondary_is_not_trusted() {
    let (faults, table, _) = start().await;
    let missing = || Fault::error(ErrorCode::ResourceNotFound);
    faults
        .on(Op::QueryEntity)
        .inject_each([failing(), missing()]);
    assert!(Employee::find(&table).await.is_some());
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    let gone = Fault::error(ErrorCode::TableNotFound);
    faults
        .on(Op::QueryEntity)
        .inject_each([failing(), denied, failing(), gone, failing()]);
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    // The error is that of the primary.
    assert_eq!(error.code().unwrap().as_str(), "InternalError");
    assert_eq!(error.attempts(), 5);
    // A 404 of the primary is definitive.
    faults.next(Op::QueryEntity, missing());
    assert!(Employee::find(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn writes_and_their_reads_use_the_primary() {
    let (faults, table, proxy) = start().await;
    for op in [Op::QueryEntity, Op::UpdateEntity] {
        faults.on(op).times(2).inject(failing());
    }
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    assert_eq!(modify.await.unwrap().age, 37);
    faults.next(Op::InsertEntity, Fault::lost_response());
    faults.next(Op::QueryEntity, failing());
    let error = table.insert(&Employee::new("2", "Alan", 41)).await;
    assert!(error.unwrap_err().current().is_some());
    faults.next(Op::Batch, Fault::lost_response());
    faults.next(Op::QueryEntity, failing());
    let alan = Employee::new("3", "Alan", 41);
    table.insert(&alan).exactly_once().await.unwrap();
    let sent = proxy.sent();
    assert!(sent.iter().all(|sent| !sent.url.contains("-secondary")));
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
