//! The removal of expired entities: what it deletes, by a query and by buckets, and with clocks
//! that differ.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use harness::{client, client_with};
use http::{HeaderValue, Request, header};
use tablesdk::expiry::Expires;
use tablesdk::index::CopyOf;
use tablesdk::sas::Permissions;
use tablesdk::transport::{Clock as _, Transport, TransportFuture};
use tablesdk::{
    DynamicEntity, ETag, ErrorKind, RetryPolicy, TableClient, TableEntity,
    TableServiceClientBuilder, Timestamp,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op, VirtualClock};
use tokio::time::sleep;

use super::expiry::hours;
use super::leases::OwnClock;
use super::on_both_transports;

/// Without an index: a removal scans.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "token_{id:06}")]
pub(super) struct Token {
    user: String,
    id: u32,
    #[table(expires)]
    until: Timestamp,
}

/// Found by its bucket, and by nothing else.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "{id:06}")]
pub(crate) struct Session {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    pub(crate) until: Option<Timestamp>,
}

/// With an index and a copy.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "visit_{id:06}")]
#[table(index(ByPage, row_key = "page_{page}_{id:06}"), copy(Seen))]
pub(crate) struct Visit {
    user: String,
    id: u32,
    page: String,
    #[table(expires(bucket = "15m"))]
    until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "seen_{id:06}")]
pub(crate) struct Seen {
    user: String,
    id: u32,
}

impl CopyOf<Visit> for Seen {
    fn copies_of(visit: &Visit) -> impl IntoIterator<Item = Self> {
        let Visit { user, id, .. } = visit;
        [Self {
            user: user.clone(),
            id: *id,
        }]
    }
}

fn token(user: &str, id: u32, until: Timestamp) -> Token {
    let user = user.to_owned();
    Token { user, id, until }
}

pub(crate) fn session(user: &str, id: u32, until: Timestamp) -> Session {
    Session {
        user: user.to_owned(),
        id,
        until: Some(until),
    }
}

pub(crate) fn visit(id: u32, until: Timestamp) -> Visit {
    Visit {
        user: "ann".to_owned(),
        id,
        page: "home".to_owned(),
        until,
    }
}

/// The row keys of all entities that queries show, entries of buckets left out.
pub(crate) async fn rows(table: &TableClient) -> Vec<String> {
    let rows = table.query::<DynamicEntity>().values().collect().await;
    let rows = rows.expect("the table can be read").into_iter();
    rows.map(|row| row.row_key().to_owned()).collect()
}

/// The keys of the entries in buckets. No query shows them.
pub(crate) fn buckets(server: &TableServer) -> Vec<(String, String)> {
    let dump = server.dump().unwrap();
    let lines = dump.lines();
    let keys = lines.filter_map(|line| line.split_once("PartitionKey='~tablesdk.expiry."));
    keys.map(|(_, keys)| {
        let (partition, row) = keys.split_once("',RowKey='~tablesdk.expiry.").unwrap();
        let row = row.split_once("')").map_or(row, |(row, _)| row);
        (partition.to_owned(), row.to_owned())
    })
    .collect()
}

/// The owners of the entries in buckets.
fn owners(server: &TableServer) -> Vec<String> {
    let mut owners: Vec<_> = buckets(server).into_iter().map(|(_, row)| row).collect();
    owners.sort_unstable();
    owners
}

/// A server, and a client with that policy. Both have the server's clock.
async fn start(retry: RetryPolicy) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Tests");
    table.create_table().await.unwrap();
    (server, table)
}

/// How many entities a client removes.
async fn removed<E: Expires>(table: &TableClient) -> u64 {
    table.clean_up_expired::<E>().await.unwrap().removed
}

on_both_transports! {
    async fn what_expired_five_minutes_ago_is_removed(subject: Subject) {
        let table = subject.table().await;
        let minute = Duration::from_secs(60);
        for (user, id, until) in [
            ("ann", 1, hours(-1)),
            ("ann", 2, hours(1)),
            ("bob", 3, hours(-2)),
            ("bob", 4, hours(0)),
            ("bob", 5, hours(-1).saturating_add(56 * minute)),
        ] {
            table.insert(&token(user, id, until)).await.unwrap();
        }
        table.insert(&DynamicEntity::new("ann", "other").with("until", hours(-1))).await.unwrap();
        let report = table.clean_up_expired::<Token>().partition("ann").await.unwrap();
        assert_eq!((report.removed, report.postponed, report.has_more), (1, 0, false));
        let mut calls = Vec::new();
        let removal = table.clean_up_expired::<Token>().progress(|report| calls.push(report.removed));
        assert_eq!(removal.await.unwrap().removed, 1);
        assert_eq!(calls, [1]);
        assert_eq!(rows(&table).await, ["other", "token_000002", "token_000004", "token_000005"]);
        assert_eq!(removed::<Token>(&table).await, 0);
    }

    async fn a_bucket_is_emptied_with_all_that_belongs_to_its_entities(subject: Subject) {
        let table = subject.table().await;
        for (id, until) in [(1, hours(-1)), (2, hours(1)), (3, hours(-5))] {
            table.insert(&visit(id, until)).await.unwrap();
        }
        assert_eq!(rows(&table).await.len(), 9);
        let report = table.clean_up_expired::<Visit>().max(1).await.unwrap();
        assert_eq!((report.removed, report.has_more), (1, true));
        assert!(table.get(Visit::key("ann", 3)).including_expired().await.unwrap().is_none(), "the oldest");
        let report = table.clean_up_expired::<Visit>().max(1).await.unwrap();
        assert_eq!((report.removed, report.has_more), (1, false));
        assert_eq!(rows(&table).await, ["page_home_000002", "seen_000002", "visit_000002"]);
        assert!(table.repair::<Visit>().await.unwrap().is_right());
    }
}

#[tokio::test]
async fn a_removal_by_buckets_needs_two_requests_for_each_entity() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    for id in 0..200 {
        table.insert(&session("ann", id, hours(-1))).await.unwrap();
    }
    table.insert(&session("ann", 200, hours(1))).await.unwrap();
    assert_eq!(buckets(&server).len(), 201);
    let journal = server.journal();
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!((report.removed, report.postponed), (200, 0));
    assert_eq!(journal.requests().op(Op::QueryEntity).count(), 200);
    // The sessions are in one partition, and their entries in sixteen.
    let requests = journal.requests().count();
    assert!(requests <= 200 + 2 + 2 + 16, "{requests}");
    assert_eq!(owners(&server), ["ann_000200"]);
    journal.clear();
    assert_eq!(removed::<Session>(&table).await, 0);
    // Of the time, and of the buckets.
    assert_eq!(journal.requests().count(), 2);
}

/// A program that does not know of buckets writes the entity after the removal has read it.
#[tokio::test(start_paused = true)]
async fn what_is_written_meanwhile_is_removed_the_next_time() {
    let (server, table) = start(RetryPolicy::none()).await;
    table.insert(&session("ann", 1, hours(-1))).await.unwrap();
    let slow = Fault::delay(Duration::from_secs(10));
    let slow = server.faults().on_writes().times(1).inject(slow);
    let written = async {
        sleep(Duration::from_secs(1)).await;
        let noted = DynamicEntity::new("ann", "000001").with("Note", "seen");
        table.merge_if(&noted, ETag::ANY).await.unwrap();
    };
    let (now, ()) = tokio::join!(removed::<Session>(&table), written);
    assert_eq!((now, slow.hits()), (0, 1));
    assert_eq!(removed::<Session>(&table).await, 1);
    assert!(buckets(&server).is_empty());
}

#[tokio::test]
async fn a_removal_without_buckets_deletes_in_batches() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    for id in 0..250 {
        table.insert(&token("ann", id, hours(-1))).await.unwrap();
    }
    let journal = server.journal();
    assert_eq!(removed::<Token>(&table).await, 250);
    assert_eq!(journal.requests().count(), 1 + 1 + 3);
}

#[tokio::test]
async fn entries_lie_in_the_bucket_of_the_instant() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    let until = "2024-03-15T10:59:59.9999999Z".parse().unwrap();
    table.insert(&session("a=b_c", 7, until)).await.unwrap();
    let [(partition, row)] = &buckets(&server)[..] else {
        panic!()
    };
    let of_hour = "Session.2024-03-15T10:00:00Z.";
    assert!(partition.starts_with(of_hour), "{partition}");
    assert_eq!(row, "a=3Db=5Fc_000007");
    // It never expires any more.
    let over = table.get(Session::key("a=b_c", 7)).including_expired();
    let mut over = over.await.unwrap().unwrap();
    over.until = None;
    table.replace(&mut over).await.unwrap();
    assert!(buckets(&server).is_empty());
    over.until = Some(Timestamp::MIN);
    table.replace(&mut over).await.unwrap();
    assert_eq!(removed::<Session>(&table).await, 1);
    assert!(buckets(&server).is_empty());
}

/// A removal finds entries of buckets of another size, and looks at the entity.
#[tokio::test]
async fn the_size_of_the_buckets_may_change() {
    #[derive(TableEntity)]
    #[table(partition_key = "{user}", row_key = "{id:06}")]
    struct Daily {
        user: String,
        id: u32,
        #[table(expires(bucket = "1d", name = "Session"))]
        until: Option<Timestamp>,
    }
    let (server, table) = start(RetryPolicy::exponential()).await;
    let of_yesterday = Daily {
        user: "ann".to_owned(),
        id: 1,
        until: Some(hours(-24)),
    };
    table.insert(&of_yesterday).await.unwrap();
    table.insert(&session("ann", 2, hours(-24))).await.unwrap();
    assert_eq!(owners(&server), ["ann_000001", "ann_000002"]);
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!(report.removed, 2);
    // Of the first session, an entry of another size might exist, too: it was looked for.
    assert_eq!(rows(&table).await, [""; 0]);
    assert_eq!(owners(&server), [""; 0]);
}

/// An entry whose entity was prolonged by a program that does not know the index leads to an entity
/// that is kept.
#[tokio::test]
async fn an_entry_alone_removes_nothing() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    for id in [1, 2] {
        table.insert(&session("ann", id, hours(-1))).await.unwrap();
    }
    let prolonged = DynamicEntity::new("ann", "000001").with("until", hours(3));
    table.upsert_replace(&prolonged).await.unwrap();
    assert!(table.delete(("ann", "000002")).await.unwrap());
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!((report.removed, report.postponed), (0, 1));
    // They may be those of writes under way.
    assert_eq!(buckets(&server).len(), 2);
    for half_an_hour in [1800, 1800 + 400] {
        server.clock().advance(Duration::from_secs(half_an_hour));
        assert_eq!(removed::<Session>(&table).await, 0);
    }
    assert_eq!(owners(&server), [""; 0]);
    assert_eq!(rows(&table).await, ["000001"]);
    let repaired = table.repair::<Session>().await.unwrap();
    assert_eq!(repaired.missing, 1);
    assert_eq!(owners(&server), ["ann_000001"]);
    server.clock().advance(Duration::from_secs(3 * 3600));
    assert_eq!(removed::<Session>(&table).await, 1, "it is over by now");
}

#[tokio::test]
async fn an_unreadable_entity_is_reported_and_does_not_hold_up_the_others() {
    let (_server, table) = start(RetryPolicy::exponential()).await;
    for id in [1, 2] {
        table.insert(&session("ann", id, hours(-1))).await.unwrap();
        table.insert(&token("ann", id, hours(-1))).await.unwrap();
    }
    let odd = |row| DynamicEntity::new("ann", row).with("until", "soon");
    table.upsert_replace(&odd("000001")).await.unwrap();
    let report = table.clean_up_expired::<Session>().max(1).await.unwrap();
    assert_eq!((report.removed, report.has_more), (1, false));
    assert!(report.unreadable[0].contains("until"), "{report:?}");
    // By a query, what has no instant is not found.
    table.upsert_replace(&odd("token_000001")).await.unwrap();
    let report = table.clean_up_expired::<Token>().await.unwrap();
    assert_eq!((report.removed, report.unreadable.len()), (1, 0));
}

#[tokio::test]
async fn an_entity_with_two_entries_is_removed_once() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    table.insert(&session("ann", 1, hours(-5))).await.unwrap();
    // By a program that does not know the buckets.
    let later = DynamicEntity::new("ann", "000001").with("until", hours(-2));
    table.merge_if(&later, ETag::ANY).await.unwrap();
    assert_eq!(table.repair::<Session>().await.unwrap().missing, 1);
    assert_eq!(owners(&server).len(), 2);
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!((report.removed, report.postponed), (1, 0));
    assert!(owners(&server).is_empty());
}

#[tokio::test]
async fn damaged_entries_are_reported_and_do_not_hold_up_the_others() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    let session = session("ann", 1, hours(-1));
    table.insert(&session).await.unwrap();
    let (bucket, _) = buckets(&server).remove(0);
    for row in ["!", "!!"] {
        let entry = DynamicEntity::new(format!("~tablesdk.expiry.{bucket}"), row);
        let entry = entry.with("TablesdkExpires", hours(-1));
        table.insert(&entry).await.unwrap();
    }
    let report = table.clean_up_expired::<Session>().max(1).await.unwrap();
    assert_eq!((report.removed, report.has_more), (1, false));
    let message = "its row key is not that of an entry: it does not contain the key of an entity";
    assert_eq!(report.unreadable.len(), 2);
    let mut reasons = report.unreadable.iter();
    assert!(reasons.all(|why| why.ends_with(message)), "{report:?}");
}

#[tokio::test]
async fn the_keys_of_an_entity_with_buckets_have_495_characters_at_most() {
    let (server, table) = start(RetryPolicy::exponential()).await;
    let longest = 512 - "~tablesdk.expiry._000001".len();
    let user = "u".repeat(longest);
    table.insert(&session(&user, 1, hours(-1))).await.unwrap();
    assert_eq!(removed::<Session>(&table).await, 1);
    let longer = session(&(user + "u"), 1, hours(-1));
    let error = table.insert(&longer).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    for part in ["the index expiry", "512"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(buckets(&server).is_empty());
}

#[tokio::test]
async fn a_client_that_denies_scans_removes_by_buckets_or_in_a_partition() {
    let server = TableServer::in_process();
    let service = client_with(&server, TableServiceClientBuilder::deny_scans);
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    table.insert(&token("ann", 1, hours(-1))).await.unwrap();
    table.insert(&session("ann", 1, hours(-1))).await.unwrap();
    let error = table.clean_up_expired::<Token>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("scan"), "{error}");
    assert_eq!(removed::<Session>(&table).await, 1);
    let of_ann = table.clean_up_expired::<Token>().partition("ann");
    assert_eq!(of_ann.await.unwrap().removed, 1);
}

/// A transport that adds the date of the server, as a server with a socket does.
#[derive(Debug)]
struct Dated(Arc<dyn Transport>, VirtualClock);

impl Transport for Dated {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let mut response = self.0.send(request).await?;
            let date = HeaderValue::try_from(self.1.now().to_http_date()).unwrap();
            response.headers_mut().insert(header::DATE, date);
            Ok(response)
        })
    }
}

/// A client of the server whose clock is wrong by hours.
fn wrong(server: &TableServer, by: i64) -> TableClient {
    wrong_client(server, "Tests", by)
}

pub(super) fn wrong_client(server: &TableServer, table: &str, by: i64) -> TableClient {
    let sas = client(server).table(table).sas();
    let sas =
        sas.allow(Permissions::READ | Permissions::ADD | Permissions::UPDATE | Permissions::DELETE);
    let month = Duration::from_secs(30 * 24 * 3600);
    let until = server.clock().now().saturating_add(month);
    let url = sas.expires_at(until).sign().unwrap();
    let client = client_with(server, |builder| {
        let builder = builder.credential(url.sas().clone());
        let builder = builder.transport(Dated(server.transport(), server.clock()));
        builder.clock(OwnClock::wrong_by(server, by * 3600))
    });
    client.table(table)
}

/// A gateway that gives an empty page to those who read.
#[derive(Debug)]
struct EmptyReads(Arc<dyn Transport>);

impl Transport for EmptyReads {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        if request.method() == http::Method::GET {
            return Box::pin(async { Ok(http::Response::default()) });
        }
        self.0.send(request)
    }
}

#[tokio::test]
async fn a_refused_insert_is_not_said_to_be_stored_when_the_other_entity_cannot_be_read() {
    let (server, table) = start(RetryPolicy::none()).await;
    table.insert(&token("ann", 1, hours(1))).await.unwrap();
    let behind = client_with(&server, |builder| {
        builder.transport(EmptyReads(server.transport()))
    });
    let insert = behind.table("Tests").insert(&token("ann", 1, hours(2)));
    let error = insert.await.unwrap_err();
    // Of an insert, the kind `Response` would mean that it is stored.
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
}

#[tokio::test]
async fn the_clock_of_the_service_decides() {
    for by in [-1, 1] {
        let (server, _) = start(RetryPolicy::none()).await;
        let ours = wrong(&server, 0);
        let half_an_hour = Duration::from_secs(1800);
        let soon = server.clock().now().saturating_add(half_an_hour);
        for (id, until) in [(1, hours(-2)), (2, hours(2)), (3, soon)] {
            ours.insert(&session("ann", id, until)).await.unwrap();
            ours.insert(&token("bob", id, until)).await.unwrap();
        }
        server.clock().advance(Duration::from_secs(600));
        // The very first read, too.
        for (id, is_valid) in [(1, false), (2, true), (3, true)] {
            let found = wrong(&server, by).get(Token::key("bob", id)).await;
            assert_eq!(found.unwrap().is_some(), is_valid, "{by}, {id}");
        }
        let table = wrong(&server, by);
        assert!(table.get(Token::key("bob", 3)).await.unwrap().is_some());
        let of_bob = table.query::<Token>().partition("bob");
        assert_eq!(of_bob.count().await.unwrap(), 2);
        assert_eq!(removed::<Session>(&wrong(&server, by)).await, 1, "{by}");
        assert_eq!(removed::<Token>(&wrong(&server, by)).await, 1, "{by}");
        server.clock().advance(Duration::from_secs(1510));
        // Over by the clock of the service, since five minutes.
        assert_eq!(removed::<Session>(&wrong(&server, by)).await, 1, "{by}");
        assert_eq!(removed::<Token>(&wrong(&server, by)).await, 1, "{by}");
        assert_eq!(rows(&ours).await, ["000002", "token_000002"]);
    }
}

#[tokio::test]
async fn an_expired_entity_whose_entry_in_an_index_is_missing_is_removed() {
    let (_server, table) = start(RetryPolicy::exponential()).await;
    table.insert(&visit(1, hours(-1))).await.unwrap();
    table.delete(("ann", "page_home_000001")).await.unwrap();
    assert_eq!(removed::<Visit>(&table).await, 1);
    assert_eq!(rows(&table).await, [""; 0]);
}
