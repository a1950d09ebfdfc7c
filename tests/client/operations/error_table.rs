//! Tests that the guide shows what errors say: a table of real failures.
//!
//! With `TABLESDK_WRITE_ERRORS=1` the test rewrites the table in the guide.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use harness::generated::assert_generated;
use tablesdk::action::ClosureError;
use tablesdk::transport::ReqwestTransport;
use tablesdk::{
    DynamicEntity, ETag, Error, ErrorCode, ErrorKind, RetryPolicy, SharedKey, TableClient,
    TableServiceClient,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::Employee;

#[tokio::test]
async fn the_guide_shows_what_errors_say() {
    let guide =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/errors_and_retries.md");
    let mut table = "\n| what happened | kind | the message |\n|---|---|---|\n".to_owned();
    for (happened, error) in failures().await {
        let (kind, message) = (error.kind(), in_one_world(&error.to_string()));
        // Two backticks, as a message may have one.
        let message = message.replace('|', "\\|");
        table += &format!("| {happened} | `{kind:?}` | `` {message} `` |\n");
    }
    assert_generated(&guide, [START, END], &table, "TABLESDK_WRITE_ERRORS");
}

/// Every failure of the table, as it happens.
async fn failures() -> Vec<(&'static str, Error)> {
    let server = TableServer::in_process();
    let faults = server.faults();
    let retry = RetryPolicy::exponential().attempts(3).delay(Duration::ZERO);
    let builder = || {
        TableServiceClient::builder(ENDPOINT)
            .credential(server.credential())
            .transport(server.transport())
            .retry(retry.clone())
    };
    let service = builder().build().unwrap();
    let table = service.table("Company");
    table.create_table().await.unwrap();
    let key = || Employee::key("Sales", "1");
    let grace = Employee::new("2", "Grace", 50);
    let mut stale = table.insert(&Employee::ada()).await.unwrap();
    table.insert(&grace).await.unwrap();
    table.patch(key()).set(|e| e.age, 37).await.unwrap();
    let mut odd = DynamicEntity::new("Sales", "3");
    for (name, value) in [("Name", "Alan"), ("Age", "forty")] {
        odd.properties_mut().set(name, value);
    }

    let mut rows = vec![
        (
            "the connection string is incomplete",
            TableServiceClient::from_connection_string("AccountName=acct").unwrap_err(),
        ),
        (
            "a key has a forbidden character",
            table.get::<Employee>(("a/b", "1")).await.unwrap_err(),
        ),
        (
            "a value is too large",
            table
                .patch(key())
                .set(|e| e.name, "x".repeat(40_000))
                .await
                .unwrap_err(),
        ),
        ("a filter is not OData", {
            let query = table.query::<Employee>().odata("Age > 30");
            query.collect().await.unwrap_err()
        }),
        ("the host is unknown", unknown_host().await),
        (
            "the key of the account is wrong",
            builder()
                .credential(SharedKey::new(ACCOUNT, "c2VjcmV0").unwrap())
                .build()
                .unwrap()
                .table("Company")
                .get(key())
                .await
                .unwrap_err(),
        ),
        ("the signature has expired", {
            let clock = TableServer::in_process().clock();
            clock.set("2024-03-15".parse().unwrap());
            let past = builder().clock(clock).build();
            let sas = past.unwrap().table("Company").sas();
            let url = sas
                .allow(tablesdk::sas::Permissions::READ)
                .expires_in(Duration::from_secs(60))
                .sign()
                .unwrap();
            expired(&url.expose(), &server).await
        }),
        (
            "the table does not exist",
            service
                .table("Companies")
                .get::<Employee>(key())
                .await
                .unwrap_err(),
        ),
        (
            "the entity does not exist",
            table
                .replace_if(&Employee::new("9", "Edsger", 72), ETag::ANY)
                .await
                .unwrap_err(),
        ),
        (
            "the entity exists already",
            table.insert(&grace).await.unwrap_err(),
        ),
        (
            "the entity has changed since it was read",
            table.replace(&mut stale).await.unwrap_err(),
        ),
        (
            "a change of a batch is refused",
            table
                .batch("Sales")
                .upsert_merge(&Employee::ada())
                .insert(&grace)
                .delete(("Sales", "9"))
                .await
                .unwrap_err(),
        ),
        (
            "a closure returned an error",
            table
                .modify(key(), |_| Err::<(), ClosureError>("no bonus".into()))
                .await
                .unwrap_err(),
        ),
        (
            "`one` found two entities",
            table
                .query::<Employee>()
                .partition("Sales")
                .one()
                .await
                .unwrap_err(),
        ),
    ];
    table.upsert_replace(&odd).await.unwrap();
    let wrong_type = table.get(Employee::key("Sales", "3")).await;
    rows.push((
        "a property is stored with another type",
        wrong_type.unwrap_err(),
    ));
    let busy = Fault::error(ErrorCode::ServerBusy);
    faults.on(Op::QueryEntities).inject(busy);
    let throttled = table.query::<Employee>().partition("Sales").collect().await;
    rows.push(("the service throttles", throttled.unwrap_err()));
    faults.next(Op::QueryEntity, Fault::no_response().applied());
    let slow = table.get(key()).deadline(Duration::from_millis(20)).await;
    rows.push(("no response in time", slow.unwrap_err()));
    faults.next(Op::InsertEntity, Fault::lost_response());
    let lost = table.insert(&Employee::new("4", "Barbara", 60)).await;
    rows.push(("a response to a write was lost", lost.unwrap_err()));
    rows
}

/// A read with a signature that no longer holds.
async fn expired(url: &str, server: &TableServer) -> Error {
    let guest: tablesdk::sas::SasUrl = url.parse().unwrap();
    let guest = guest
        .builder()
        .transport(server.transport())
        .build()
        .unwrap();
    let error = guest
        .table("Company")
        .get(Employee::key("Sales", "1"))
        .await;
    error.unwrap_err()
}

async fn unknown_host() -> Error {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let service = TableServiceClient::builder("http://acct.table.core.invalid")
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .transport(ReqwestTransport::from_client(http))
        .retry(RetryPolicy::none());
    let table: TableClient = service.build().unwrap().table("Company");
    let error = table.get(Employee::key("Sales", "1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    error
}

/// A message without what differs from run to run: ids of requests, times, and the words of the operating system.
fn in_one_world(message: &str) -> String {
    let message = message.replace(ACCOUNT, "acct");
    let message = replaced(&message, "request id ", &[')'], "8c1f…");
    let message = replaced(&message, " requests in ", &[',', ')'], "1.2s");
    let message = replaced(&message, "no response within ", &[], "20ms");
    let system = "Name or service not known";
    replaced(&message, "lookup address information: ", &[], system)
}

/// Replaces what follows `start`, up to one of the characters or the end.
fn replaced(message: &str, start: &str, ends: &[char], by: impl Display) -> String {
    let Some((before, rest)) = message.split_once(start) else {
        return message.to_owned();
    };
    let end = rest.find(ends).unwrap_or(rest.len());
    format!("{before}{start}{by}{}", &rest[end..])
}

const ACCOUNT: &str = "devstoreaccount1";
const ENDPOINT: &str = "https://devstoreaccount1.table.core.windows.net";
const START: &str = "<!-- errors -->\n";
const END: &str = "<!-- end of errors -->\n";
