//! How many statements each request sends to the database: each of them is a round trip.

use futures::future::join_all;
use harness::raw::RawClient;
use harness::written::Row;
use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::service_properties::{CorsRule, ServiceProperties};
use tablesdk::{RetryPolicy, TableClient, Timestamp};

use crate::relayed::{NEW, OLD, Subject, client};
use crate::workload::TABLE;

fn row(name: &str) -> Row {
    Row::whole("p", name, NEW)
}

/// A server that knows its table, and the entities "0" to "9".
async fn start() -> Option<(Subject, TableClient)> {
    let subject = Subject::start().await?;
    for number in 0..10 {
        subject.put(&number.to_string()).await;
    }
    let table = subject.table(RetryPolicy::none());
    table.get::<Row>(Row::key("p", "0")).await.unwrap();
    subject.relay.statements();
    Some((subject, table))
}

#[tokio::test]
async fn reads_inserts_and_batches_of_inserts_take_one_round_trip_and_other_writes_two() {
    let Some((subject, table)) = start().await else {
        return;
    };
    let count = |what: &str, expected: usize| {
        assert_eq!(subject.relay.statements(), expected, "{what}");
    };
    let missing = table.get::<Row>(Row::key("p", "missing")).await.unwrap();
    assert_eq!(missing, None);
    count("a read of nothing", 1);
    let stored = table.get::<Row>(Row::key("p", "1")).await.unwrap();
    assert_eq!(stored.unwrap().token, OLD);
    count("a read", 1);
    let page = table.query::<Row>().collect().await.unwrap();
    assert_eq!(page.len(), 11);
    count("a page", 1);
    table.insert(&row("new")).await.unwrap();
    count("an insert", 1);
    table.insert(&row("new")).await.unwrap_err();
    count("an insert of what exists", 2);
    table.upsert_replace(&row("1")).await.unwrap();
    count("an upsert", 2);
    table.upsert_merge(&Row::part("p", "1", NEW)).await.unwrap();
    count("a merge", 2);
    let (_, etag) = subject.stored("1").await.unwrap();
    table.replace_if(&row("1"), etag).await.unwrap();
    count("a replace", 2);
    table.delete(Row::key("p", "1")).await.unwrap();
    count("a delete", 2);
    let rows = (0..100).map(|number| row(&format!("many-{number}")));
    let batch = rows.fold(table.batch("p"), |batch, row| batch.insert(&row));
    batch.await.unwrap();
    count("a batch of 100 inserts", 1);
    let rows = (0..100).map(|number| row(&format!("many-{number}")));
    let batch = rows.fold(table.batch("p"), |batch, row| batch.upsert_merge(&row));
    batch.await.unwrap();
    count("a batch of 100 merges", 2);
}

#[tokio::test]
async fn policies_and_cors_rules_are_read_for_each_request() {
    let Some((subject, table)) = start().await else {
        return;
    };
    let expires = "2100-01-01".parse::<Timestamp>().unwrap();
    let policy = StoredAccessPolicy::new("guests").allow(Permissions::READ);
    let policy = policy.expires_at(expires);
    table.set_access_policy([policy]).await.unwrap();
    let url = table.sas().with_policy("guests").sign().unwrap();
    let guest = TableClient::from_sas_url(&url.expose()).unwrap();
    subject.relay.statements();
    guest.get::<Row>(Row::key("p", "1")).await.unwrap();
    assert_eq!(subject.relay.statements(), 2);
    let rule = CorsRule::new("https://page.example").allow_method("GET");
    let properties = ServiceProperties::default().with_cors([rule]);
    let service = client(&subject.server, RetryPolicy::none());
    service.set_properties(properties).await.unwrap();
    let raw = RawClient::of(&subject.server);
    let get = format!("GET /{TABLE}(PartitionKey='p',RowKey='1')");
    for (origin, expected) in [(None, 1), (Some("Origin: https://page.example"), 2)] {
        let headers: Vec<_> = origin.into_iter().collect();
        subject.relay.statements();
        let response = raw.send(true, &get, &headers, "").await.unwrap();
        assert_eq!(response.header("vary"), Some("Origin"));
        assert_eq!(subject.relay.statements(), expected, "{origin:?}");
    }
}

const READS: usize = 200;

#[tokio::test]
async fn reads_of_many_clients_share_round_trips() {
    let Some((subject, table)) = start().await else {
        return;
    };
    let names: Vec<_> = (0..READS).map(|number| (number % 10).to_string()).collect();
    let read = |name: &String| table.get::<Row>(Row::key("p", name.as_str())).into_future();
    let reads = join_all(names.iter().map(read)).await;
    for (name, read) in names.iter().zip(reads) {
        assert_eq!(read.unwrap().unwrap().row, *name);
    }
    let statements = subject.relay.statements();
    assert!((1..READS).contains(&statements), "{statements}");
}
