//! Tests that the guide shows what errors say: a table of real failures.
//!
//! With `TABLESDK_WRITE_ERRORS=1` the test rewrites the table in the guide.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::time::Duration;

use harness::generated::assert_generated;
use tablesdk::action::ClosureError;
use tablesdk::transport::ReqwestTransport;
use tablesdk::{DynamicEntity, ETag, Error, ErrorCode, RetryPolicy, SharedKey, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::Employee;

#[tokio::test]
async fn the_guide_shows_what_errors_say() {
    let guide =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/error_messages.md");
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
    let builder_at = |endpoint| {
        TableServiceClient::builder(endpoint)
            .credential(server.credential())
            .transport(server.transport())
            .retry(retry.clone())
    };
    let builder = || builder_at(ENDPOINT);
    let service = builder().build().unwrap();
    let table = service.table("Company");
    table.create_table().await.unwrap();
    let key = || Employee::key("Sales", "1");
    let grace = Employee::new("2", "Grace", 50);
    let mut stale = table.insert(&Employee::ada()).await.unwrap();
    table.insert(&grace).await.unwrap();
    table.patch(key()).set(|e| e.age, 37).await.unwrap();

    let mut rows = Rows(Vec::new());
    let incomplete = TableServiceClient::from_connection_string("AccountName=acct");
    rows.add("the connection string is incomplete", incomplete);
    let forbidden = table.get::<Employee>(("a/b", "1")).await;
    rows.add("a key has a forbidden character", forbidden);
    let large = table.patch(key()).set(|e| e.name, "x".repeat(40_000));
    rows.add("a value is too large", large.await);
    let query = table.query::<Employee>().odata("Age > 30");
    rows.add("a filter is not OData", query.collect().await);

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let unknown = builder_at("http://devstoreaccount1.table.core.invalid")
        .transport(ReqwestTransport::from_client(http))
        .retry(RetryPolicy::none());
    let unknown = unknown.build().unwrap().table("Company");
    rows.add("the host is unknown", unknown.get(key()).await);
    let wrong = builder().credential(SharedKey::new(ACCOUNT, "c2VjcmV0").unwrap());
    let wrong = wrong.build().unwrap().table("Company");
    rows.add("the key of the account is wrong", wrong.get(key()).await);
    let clock = TableServer::in_process().clock();
    clock.set("2024-03-15".parse().unwrap());
    let past = builder().clock(clock).build().unwrap().table("Company");
    let sas = past.sas().allow(tablesdk::sas::Permissions::READ);
    let url = sas.expires_in(Duration::from_secs(60)).sign().unwrap();
    let guest = url.builder().transport(server.transport()).build().unwrap();
    rows.add(
        "the signature has expired",
        guest.table("Company").get(key()).await,
    );

    let companies = service.table("Companies");
    rows.add("the table does not exist", companies.get(key()).await);
    let edsger = Employee::new("9", "Edsger", 72);
    rows.add(
        "the entity does not exist",
        table.replace_if(&edsger, ETag::ANY).await,
    );
    rows.add("the entity exists already", table.insert(&grace).await);
    rows.add(
        "the entity has changed since it was read",
        table.replace(&mut stale).await,
    );
    let batch = table.batch("Sales").upsert_merge(&Employee::ada());
    let batch = batch.insert(&grace).delete(("Sales", "9"));
    rows.add("a change of a batch is refused", batch.await);
    let refuse = table.modify(key(), |_| Err::<(), ClosureError>("no bonus".into()));
    rows.add("a closure returned an error", refuse.await);
    let one = table.query::<Employee>().partition("Sales").one();
    rows.add("`one` found two entities", one.await);
    let odd = DynamicEntity::new("Sales", "3").with("Name", "Alan");
    table.insert(&odd.with("Age", "forty")).await.unwrap();
    let wrong_type = table.get(Employee::key("Sales", "3")).await;
    rows.add("a property is stored with another type", wrong_type);

    let busy = Fault::error(ErrorCode::ServerBusy);
    faults.on(Op::QueryEntities).inject(busy);
    let throttled = table.query::<Employee>().partition("Sales").collect();
    rows.add("the service throttles", throttled.await);
    faults.next(Op::QueryEntity, Fault::no_response().applied());
    let slow = table.get(key()).deadline(Duration::from_millis(20));
    rows.add("no response in time", slow.await);
    faults.next(Op::InsertEntity, Fault::lost_response());
    let lost = table.insert(&Employee::new("4", "Barbara", 60)).await;
    rows.add("a response to a write was lost", lost);
    rows.0
}

struct Rows(Vec<(&'static str, Error)>);

impl Rows {
    fn add<T: Debug>(&mut self, happened: &'static str, outcome: Result<T, Error>) {
        self.0.push((happened, outcome.unwrap_err()));
    }
}

/// A message without what differs from run to run: ids of requests, times, and the words of the
/// operating system.
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
