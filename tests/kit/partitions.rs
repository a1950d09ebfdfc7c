//! The partition maps of tables, against the documentation of the service, one statement after
//! another.
//!
//! Each section names its page: *strategy* is "Design a scalable partitioning strategy for Azure
//! Table storage" (learn.microsoft.com/rest/api/storageservices/
//! designing-a-scalable-partitioning-strategy-for-azure-table-storage), *paging* is "Query timeout
//! and pagination" there, *targets* is "Scalability and performance targets for Table storage", and
//! *paper* is "Windows Azure Storage: a highly available cloud storage service with strong
//! consistency" (SOSP 2011), sections 5.2 and 5.5.

use std::io;
use std::time::Duration;

use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Flavor, Op, PartitionRange, Partitions, Throttle};

use crate::over_http_and_in_process;

fn entity(partition: &str, row: usize) -> DynamicEntity {
    DynamicEntity::new(partition, format!("{row:05}")).with("Row", i32::try_from(row).unwrap())
}

/// A server whose clock is frozen, the map of a table with an entity in each of some partitions,
/// and a client of the table that does not retry.
async fn letters() -> (TableServer, Partitions, TableClient) {
    let server = TableServer::in_process();
    server.clock().freeze();
    let table = client(&server, RetryPolicy::none());
    table.create_table().await.unwrap();
    for letter in "adgkmpsvz".chars() {
        table.insert(&entity(&letter.to_string(), 1)).await.unwrap();
    }
    let partitions = server.partitions("Letters").unwrap();
    (server, partitions, table)
}

fn client(server: &TableServer, retry: RetryPolicy) -> TableClient {
    harness::client_with(server, |builder| builder.retry(retry)).table("Letters")
}

fn starts(partitions: &Partitions) -> Vec<String> {
    let ranges = partitions.ranges().into_iter();
    ranges.map(|range| range.start).collect()
}

/// The partition keys of each page, as the server returns it.
async fn pages(table: &TableClient, odata: &str) -> Vec<String> {
    let (mut pages, mut token) = (Vec::new(), None);
    loop {
        let query = table.query::<DynamicEntity>();
        let query = if odata.is_empty() {
            query
        } else {
            query.odata(odata)
        };
        let page = query.one_response().page(token).await.unwrap();
        let keys = page
            .items
            .iter()
            .map(|item| item.key().partition_key().to_string());
        pages.push(keys.collect());
        token = page.next;
        if token.is_none() {
            return pages;
        }
    }
}

/// The code of the error of a read in a partition, or its kind; `None` if the read succeeds.
async fn refusal(table: &TableClient, partition: &str) -> Option<Result<ErrorCode, ErrorKind>> {
    let error = table.get_dynamic(partition).await?;
    Some(error.code().cloned().ok_or(error.kind()))
}

trait GetDynamic {
    async fn get_dynamic(&self, partition: &str) -> Option<tablesdk::Error>;
}

impl GetDynamic for TableClient {
    async fn get_dynamic(&self, partition: &str) -> Option<tablesdk::Error> {
        self.get::<DynamicEntity>((partition, "00001")).await.err()
    }
}

// strategy: a partition is the set of entities with one partition key, and always one server's.

#[tokio::test]
async fn a_partition_is_never_divided_over_ranges() {
    let (_server, partitions, table) = letters().await;
    let mut batch = table.batch("m");
    for row in 2..50 {
        batch = batch.insert(&entity("m", row));
    }
    batch.await.unwrap();
    partitions.split_at("m").unwrap();
    partitions.split_at("n").unwrap();
    assert_eq!(pages(&table, "PartitionKey eq 'm'").await, ["m".repeat(49)]);
    let found = partitions.ranges();
    let [before, range, after] = found.as_slice() else {
        panic!("{found:?}")
    };
    // One query, which returned the partition.
    assert_eq!((before.requests, range.requests, after.requests), (0, 1, 0));
    assert_eq!(range.entities, 49);
}

// strategy: entity group transactions need one partition, and so one server.

#[tokio::test]
async fn transactions_of_a_partition_work_across_splits_and_merges() {
    let (_server, partitions, table) = letters().await;
    for round in 0..6 {
        match round % 3 {
            0 => partitions.split_at("m").unwrap(),
            1 => partitions.split_at("n").unwrap(),
            _ => {
                partitions.merge_at("n").unwrap();
                partitions.merge_at("m").unwrap();
            }
        }
        let change = table.batch("m").upsert_replace(&entity("m", 1));
        change.insert(&entity("m", 100 + round)).await.unwrap();
    }
    let rows = table.query::<DynamicEntity>().partition("m").count();
    assert_eq!(rows.await.unwrap(), 7);
}

// strategy: a server serves a range of partitions that follow each other.

#[tokio::test]
async fn ranges_cover_all_keys_in_their_order() {
    let (server, partitions, _) = letters().await;
    assert_eq!(starts(&partitions), [""]);
    partitions.split_at("p").unwrap();
    partitions.split_at("d").unwrap();
    let ends: Vec<_> = partitions
        .ranges()
        .into_iter()
        .map(|range| range.end)
        .collect();
    assert_eq!(starts(&partitions), ["", "d", "p"]);
    assert_eq!(ends, [Some("d".to_owned()), Some("p".to_owned()), None]);
    // Names of tables have no case, and each table has its own map.
    assert_eq!(
        starts(&server.partitions("lETTERS").unwrap()),
        ["", "d", "p"]
    );
    assert_eq!(starts(&server.partitions("Others").unwrap()), [""]);
    partitions.merge_at("d").unwrap();
    assert_eq!(starts(&partitions), ["", "p"]);
}

#[tokio::test]
async fn a_new_table_has_one_range() {
    let (server, partitions, table) = letters().await;
    partitions.split_at("m").unwrap();
    table.create_table().await.unwrap_err();
    assert_eq!(starts(&partitions), ["", "m"]);
    table.delete_table().await.unwrap();
    assert_eq!(starts(&partitions), [""]);
    // A map may be made before its table.
    partitions.split_at("p").unwrap();
    table.create_table().await.unwrap();
    assert_eq!(starts(&partitions), ["", "p"]);
    partitions.split_at("m").unwrap();
    server.reset().unwrap();
    assert_eq!(starts(&partitions), [""]);
}

#[tokio::test]
async fn wrong_borders_are_refused_by_name() {
    let (_server, partitions, _) = letters().await;
    partitions.split_at("m").unwrap();
    let long = "k".repeat(513);
    for (result, part) in [
        (partitions.split_at("m"), "\"m\""),
        (partitions.split_at(""), "\"\""),
        (partitions.split_at("a/b"), "a/b"),
        (partitions.split_at(long), "512"),
        (partitions.merge_at("d"), "\"d\""),
        (partitions.merge_at(""), "\"\""),
        (partitions.move_range("\0"), "character"),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(starts(&partitions), ["", "m"]);
}

#[tokio::test]
async fn a_table_without_a_valid_name_and_a_service_without_ranges_have_no_map() {
    let server = TableServer::in_process();
    let error = server.partitions("not a name").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    let cosmos = TableServer::builder().flavor(Flavor::CosmosDb);
    let cosmos = cosmos.in_process().unwrap();
    let error = cosmos.partitions("Letters").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
}

// strategy, paging: a query that crosses a border returns what it has and a continuation token.

over_http_and_in_process! {
    async fn a_page_ends_at_the_end_of_a_range(subject: Subject) {
        let table = subject.service(RetryPolicy::none()).table("Letters");
        table.create_table().await.unwrap();
        for letter in ["a", "d", "m", "z"] {
            table.insert(&entity(letter, 1)).await.unwrap();
        }
        let partitions = subject.server.partitions("Letters").unwrap();
        assert_eq!(pages(&table, "").await, ["admz"]);
        partitions.split_at("m").unwrap();
        partitions.split_at("x").unwrap();
        assert_eq!(pages(&table, "").await, ["ad", "m", "z"]);
        assert_eq!(pages(&table, "PartitionKey ge 'd'").await, ["d", "m", "z"]);
        assert_eq!(pages(&table, "PartitionKey lt 'm'").await, ["ad"]);
        assert_eq!(pages(&table, "PartitionKey eq 'z' or PartitionKey eq 'a'").await, ["a", "z"]);
        assert_eq!(pages(&table, "RowKey eq '00001' and PartitionKey gt 'd'").await, ["", "m", "z"]);
    }

    async fn a_range_that_moves_is_busy_and_then_without_a_server(subject: Subject) {
        let table = subject.service(RetryPolicy::none()).table("Letters");
        table.create_table().await.unwrap();
        for letter in ["a", "z"] {
            table.insert(&entity(letter, 1)).await.unwrap();
        }
        let clock = subject.server.clock();
        clock.freeze();
        let partitions = subject.server.partitions("Letters").unwrap();
        partitions.split_at("m").unwrap();
        partitions.move_range("z").unwrap();
        let available = || partitions.ranges().iter().map(|it| it.is_available).collect::<Vec<_>>();
        for second in 0..6 {
            let expected = match second {
                0..3 => Some(Ok(ErrorCode::ServerBusy)),
                3..5 => Some(Err(ErrorKind::Transport)),
                _ => None,
            };
            assert_eq!(refusal(&table, "z").await, expected, "second {second}");
            assert_eq!(available(), [true, expected.is_none()], "second {second}");
            assert_eq!(refusal(&table, "a").await, None, "another range");
            clock.advance(Duration::from_secs(1));
        }
    }
}

#[tokio::test]
async fn a_page_of_a_range_without_matches_is_empty_and_not_the_last() {
    let (_server, partitions, table) = letters().await;
    table.upsert_replace(&entity("z", 7)).await.unwrap();
    for border in ["d", "m", "v"] {
        partitions.split_at(border).unwrap();
    }
    let filter = "Row eq 7";
    assert_eq!(pages(&table, filter).await, ["", "", "", "z"]);
    // Of a range that has no entities at all, too.
    partitions.split_at("n").unwrap();
    partitions.split_at("o").unwrap();
    assert_eq!(pages(&table, filter).await, ["", "", "", "", "", "z"]);
    // A program that reads on is right.
    let found = table.query::<DynamicEntity>().odata(filter).collect().await;
    assert_eq!(found.unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_has_at_most_so_many_entities_within_a_range() {
    let (_server, partitions, table) = letters().await;
    partitions.split_at("m").unwrap();
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let query = table.query::<DynamicEntity>().page_size(2).one_response();
        let page = query.page(token).await.unwrap();
        found.push(page.items.len());
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    // Four partitions before `m`, and five from there on: a full page that ends with its range
    // has a token, too.
    assert_eq!(found, [2, 2, 2, 2, 1]);
}

// paging: a token names where the next page begins, and nothing about servers.

#[tokio::test]
async fn tokens_stay_valid_over_splits_and_merges() {
    let (_server, partitions, table) = letters().await;
    partitions.split_at("m").unwrap();
    let page = |token| table.query::<DynamicEntity>().one_response().page(token);
    let text = |page: &tablesdk::query::Page<_>| -> String {
        let keys = page.items.iter();
        keys.map(|item: &tablesdk::Stored<DynamicEntity>| item.key().partition_key().to_string())
            .collect()
    };
    let first = page(None).await.unwrap();
    assert_eq!(text(&first), "adgk");
    partitions.merge_at("m").unwrap();
    let merged = page(first.next.clone()).await.unwrap();
    assert_eq!(
        (text(&merged).as_str(), merged.next.is_some()),
        ("mpsvz", false)
    );
    partitions.split_at("f").unwrap();
    partitions.split_at("s").unwrap();
    partitions.split_at("t").unwrap();
    let split = page(first.next).await.unwrap();
    assert_eq!(text(&split), "mp");
    let third = page(split.next).await.unwrap();
    assert_eq!(text(&third), "s");
}

// paper, 5.2: a range is handed over within seconds; nothing is lost by that.

#[tokio::test(start_paused = true)]
async fn the_default_client_does_not_notice_a_move() {
    let server = TableServer::in_process();
    let table = client(&server, RetryPolicy::exponential());
    table.create_table().await.unwrap();
    let partitions = server.partitions("Letters").unwrap();
    let journal = server.journal();
    for row in 0..5 {
        partitions.move_range("m").unwrap();
        table.insert(&entity("m", row)).await.unwrap();
    }
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 5);
    assert!(journal.requests().op(Op::InsertEntity).status(503).count() >= 5);
}

#[tokio::test]
async fn a_request_to_a_range_that_moves_has_no_effect() {
    let (server, partitions, table) = letters().await;
    partitions.move_range("m").unwrap();
    for _ in 0..5 {
        assert!(table.insert(&entity("m", 2)).await.is_err());
        assert!(table.query::<DynamicEntity>().count().await.is_err());
        server.clock().advance(Duration::from_secs(1));
    }
    let rows = table.query::<DynamicEntity>().partition("m").count();
    assert_eq!(rows.await.unwrap(), 1);
}

#[tokio::test]
async fn a_query_meets_the_move_of_a_range_when_it_comes_there() {
    let (_server, partitions, table) = letters().await;
    partitions.split_at("m").unwrap();
    partitions.move_range("m").unwrap();
    let page = |token| table.query::<DynamicEntity>().one_response().page(token);
    let first = page(None).await.unwrap();
    assert_eq!(first.items.len(), 4);
    let error = page(first.next).await.unwrap_err();
    assert!(error.is_throttled(), "{error}");
}

// targets: 2,000 entities per second for a partition, 20,000 for an account.

/// How many entities the server accepts of the partitions at each of so many steps of its clock, if
/// each partition demands one more than it is granted.
async fn accepted(server: &TableServer, keys: &[String], steps: usize, rate: usize) -> Vec<usize> {
    let table = client(server, RetryPolicy::none());
    let mut accepted = Vec::new();
    for step in 0..steps {
        accepted.push(0);
        for row in 0..=rate {
            for key in keys {
                let written = table.upsert_replace(&entity(key, row)).await;
                accepted[step] += usize::from(written.is_ok());
            }
        }
        server.clock().advance(STEP);
    }
    accepted
}

/// Rates are kept for a second, and a load that meets them at each step lasts.
const STEP: Duration = Duration::from_secs(5);

async fn limited(throttle: Throttle) -> (TableServer, Partitions) {
    let server = TableServer::in_process();
    server.clock().freeze();
    client(&server, RetryPolicy::none())
        .create_table()
        .await
        .unwrap();
    let partitions = server.partitions("Letters").unwrap();
    server.faults().throttle(throttle);
    (server, partitions)
}

fn keys(letters: &str) -> Vec<String> {
    letters.chars().map(String::from).collect()
}

#[tokio::test]
async fn partitions_of_one_range_share_the_rate_of_its_server() {
    let (server, partitions) = limited(Throttle::none().per_partition(2).per_range(5)).await;
    assert_eq!(accepted(&server, &keys("m"), 2, 2).await, [2, 2]);
    assert_eq!(accepted(&server, &keys("abyz"), 2, 2).await, [5, 5]);
    partitions.split_at("m").unwrap();
    assert_eq!(accepted(&server, &keys("abyz"), 2, 2).await, [8, 8]);
}

#[tokio::test]
async fn an_account_has_a_rate_whatever_the_number_of_ranges() {
    let throttle = Throttle::none()
        .per_partition(2)
        .per_account(3)
        .per_range(5);
    let (server, partitions) = limited(throttle).await;
    partitions.split_at("m").unwrap();
    assert_eq!(accepted(&server, &keys("abyz"), 2, 2).await, [3, 3]);
}

#[tokio::test]
async fn documented_rates_are_those_of_a_partition_a_server_and_an_account() {
    let (server, partitions) = limited(Throttle::documented()).await;
    let table = client(&server, RetryPolicy::none());
    // A cold table: a second of five partitions is that of one server.
    let second = async |keys: &[String]| {
        server.clock().advance(Duration::from_secs(1));
        let mut accepted = 0;
        for key in keys {
            for _ in 0..21 {
                let mut batch = table.batch(key.as_str());
                for row in 0..100 {
                    batch = batch.upsert_replace(&entity(key, row));
                }
                accepted += if batch.await.is_ok() { 100 } else { 0 };
            }
        }
        accepted
    };
    assert_eq!(second(&keys("a")).await, 2_000);
    assert_eq!(second(&keys("abcxyz")).await, 5_000);
    partitions.split_at("x").unwrap();
    assert_eq!(second(&keys("abcxyz")).await, 10_000);
}

// strategy: a server under load splits its ranges and gives some away, which takes time.

#[tokio::test]
async fn a_cold_table_warms_up_under_load() {
    let (server, partitions) = limited(Throttle::none().per_partition(1).per_range(2)).await;
    let load = keys("abcdefgh");
    let cold = accepted(&server, &load, 12, 1).await;
    assert!(cold.iter().all(|count| *count == 2), "{cold:?}");
    assert_eq!(partitions.ranges().len(), 1);
    // The upper half moves, and the lower one has the rate for itself.
    let warm = accepted(&server, &load, 3, 1).await;
    assert_eq!(starts(&partitions), ["", "e"]);
    assert_eq!(*warm.last().unwrap(), 4, "{warm:?}");
    let hot = accepted(&server, &load, 26, 1).await;
    assert_eq!(
        *hot.last().unwrap(),
        8,
        "{hot:?}: {:?}",
        starts(&partitions)
    );
    assert!(partitions.ranges().len() >= 4);
    // Then no rate is exceeded but those of the partitions, and no range is split.
    let before = starts(&partitions);
    accepted(&server, &load, 14, 1).await;
    assert_eq!(starts(&partitions), before);
}

#[tokio::test]
async fn a_short_load_splits_nothing() {
    let (server, partitions) = limited(Throttle::none().per_range(2)).await;
    for _ in 0..5 {
        accepted(&server, &keys("abcd"), 6, 1).await;
        server.clock().advance(Duration::from_secs(10));
    }
    assert_eq!(starts(&partitions), [""]);
}

// strategy: keys that grow at the end are always the last range's, which no split helps.

#[tokio::test]
async fn appended_keys_always_meet_the_last_range() {
    let (server, partitions) = limited(Throttle::none().per_range(2)).await;
    let table = client(&server, RetryPolicy::none());
    let mut accepted = Vec::new();
    for step in 0..60 {
        accepted.push(0);
        for number in 0..6 {
            let key = format!("{:06}", 6 * step + number);
            accepted[step] += usize::from(table.insert(&entity(&key, 1)).await.is_ok());
        }
        server.clock().advance(STEP);
    }
    let ranges = partitions.ranges();
    assert!(ranges.len() >= 3, "{ranges:?}");
    // The ranges that were split off are idle, and the rate is still that of one server.
    assert!(accepted.iter().all(|count| *count <= 2), "{accepted:?}");
    let (last, others): (&PartitionRange, _) = ranges.split_last().unwrap();
    assert!(last.requests > 0, "{ranges:?}");
    assert!(others.iter().all(|range| range.requests == 0), "{ranges:?}");
}

// The kit pays nothing for what nobody asked for.

#[tokio::test]
async fn a_throttle_without_ranges_has_none() {
    let (server, _) = limited(Throttle::none().per_partition(1)).await;
    accepted(&server, &keys("abcdefgh"), 14, 1).await;
    assert_eq!(starts(&server.partitions("Letters").unwrap()), [""]);
}
