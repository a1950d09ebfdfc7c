//! Hot partitions: appends to shards, and reads of all of them in one order.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use futures::StreamExt as _;
use harness::{Subject, client};
use tablesdk::action::{Merged, ParallelQuery};
use tablesdk::key::{Partition, Shard};
use tablesdk::query::PageToken;
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, TableClient, TableEntity, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, LintKind, Op, Throttle};

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{hour}_{shard}", row_key = "{second:04}_{sensor}")]
struct Reading<const N: u32> {
    hour: String,
    shard: Shard<N>,
    second: u32,
    sensor: String,
    celsius: f64,
}

const HOUR: &str = "2024-03-15T10";

fn reading<const N: u32>(second: u32, sensor: &str) -> Reading<N> {
    Reading {
        hour: HOUR.into(),
        shard: Shard::of(sensor),
        second,
        sensor: sensor.into(),
        celsius: f64::from(second),
    }
}

/// A reading in each shard for each second. The order of their sensors differs from that of their
/// shards.
fn readings<const N: u32>(seconds: u32) -> Vec<Reading<N>> {
    let of_second = |second| {
        (0..N).map(move |sensor| Reading {
            shard: Shard::new((7 * sensor + 1) % N).unwrap(),
            ..reading(second, &format!("s{sensor:03}"))
        })
    };
    (0..seconds).flat_map(of_second).collect()
}

async fn insert<const N: u32>(table: &TableClient, readings: &[Reading<N>]) {
    let readings = futures::stream::iter(readings.to_vec());
    assert!(table.bulk().insert(readings).await.unwrap().is_success());
}

fn partitions<const N: u32>() -> impl Iterator<Item = Partition<Reading<N>>> {
    Shard::all().map(|shard| Reading::<N>::partition(HOUR, shard))
}

fn merged<const N: u32>(
    table: &TableClient,
) -> ParallelQuery<Reading<N>, impl tablesdk::query::Selection<Reading<N>, Item = Reading<N>>, Merged>
{
    let query = table.query::<Reading<N>>().values();
    query.partitions(partitions::<N>()).merged()
}

/// All items, page by page.
async fn pages<const N: u32>(table: &TableClient, take: usize) -> Vec<Reading<N>> {
    let mut read = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let query = merged::<N>(table).take(take);
        let page = query.page_after(token.as_deref()).await.unwrap();
        assert!(page.items.len() == take || page.next.is_none());
        read.extend(page.items);
        token = page.next.map(|next| next.to_string());
        if token.is_none() {
            return read;
        }
    }
}

on_both_transports! {
    async fn shards_are_read_in_the_order_of_their_row_keys(subject: Subject) {
        let table = subject.table().await;
        let all = readings::<5>(8);
        insert(&table, &all).await;
        assert_eq!(merged::<5>(&table).collect().await.unwrap(), all);
        let small = merged::<5>(&table).page_size(3).parallel(2).prefetch();
        assert_eq!(small.collect().await.unwrap(), all);
        assert_eq!(merged::<5>(&table).count().await.unwrap(), 40);
        assert_eq!(merged::<5>(&table).take(7).collect().await.unwrap(), all[..7]);
        assert!(merged::<5>(&table).take(0).collect().await.unwrap().is_empty());
        for take in [1, 3, 39, 40, 41, 1_000] {
            assert_eq!(pages::<5>(&table, take).await, all, "{take}");
        }
        let page = merged::<5>(&table).page(None).await.unwrap();
        assert_eq!((page.items.len(), page.next), (40, None), "a page has 1,000 items without `take`");
    }

    async fn filters_and_selections_are_those_of_a_query(subject: Subject) {
        let table = subject.table().await;
        insert(&table, &readings::<5>(8)).await;
        let query = || {
            let warm = table.query::<Reading<5>>().partitions(partitions::<5>()).filter(|r| r.celsius.ge(2.0));
            warm.merged().rows(Reading::rows().second(1..=6)).select(|r| r.celsius).take(12)
        };
        let first = query().page(None).await.unwrap();
        assert_eq!(first.items, [[2.0; 5].as_slice(), &[3.0; 5], &[4.0; 2]].concat());
        let second = query().page(first.next.clone()).await.unwrap();
        assert_eq!(second.items, [[4.0; 3].as_slice(), &[5.0; 5], &[6.0; 4]].concat());
        let third = query().page(second.next).await.unwrap();
        assert_eq!((third.items.as_slice(), third.next), ([6.0].as_slice(), None));
        let other = query().filter(|r| r.celsius.ge(3.0)).page(first.next).await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Input);
    }

    async fn one_row_key_in_several_partitions_is_in_their_order(subject: Subject) {
        let table = subject.table().await;
        let partitions = ["b", "ä", "a", "c"];
        for partition in partitions {
            for row in ["1", "2"] {
                table.insert(&DynamicEntity::new(partition, row)).await.unwrap();
            }
        }
        let mut read = Vec::new();
        let mut token = None;
        loop {
            let query = table.query::<DynamicEntity>().partitions(partitions).merged().take(1);
            let page = query.page(token).await.unwrap();
            read.extend(page.items.iter().map(|e| (e.key().row_key().to_string(), e.key().partition_key().to_string())));
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        let expected = ["1", "2"].iter().flat_map(|row| ["a", "b", "c", "ä"].map(|partition| ((*row).to_owned(), partition.to_owned())));
        assert_eq!(read, expected.collect::<Vec<_>>());
        // The order in which the partitions are given does not matter to a token.
        let of = |partitions: Vec<&'static str>| table.query::<DynamicEntity>().partitions(partitions).merged().take(1);
        let token = of(vec!["a", "b"]).page(None).await.unwrap().next;
        assert_eq!(of(vec!["b", "a"]).page(token).await.unwrap().items[0].key().partition_key().as_str(), "b");
    }
}

#[tokio::test]
async fn a_token_is_bound_to_its_partitions_and_its_query() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    insert(&table, &readings::<4>(4)).await;
    let token = merged::<4>(&table).take(3).page(None).await.unwrap().next;
    let token = token.unwrap();
    let journal = subject.server().journal();
    let selected = table.query::<Reading<4>>().partitions(partitions::<4>());
    let selected = selected.merged().select(|r| r.celsius);
    let filtered = merged::<4>(&table).odata("celsius ge 0.0");
    let of_one = || table.query::<Reading<4>>().partition(format!("{HOUR}_0"));
    for error in [
        merged::<5>(&table).page(token.clone()).await.unwrap_err(),
        filtered.page(token.clone()).await.unwrap_err(),
        selected.page(token.clone()).await.unwrap_err(),
        of_one().page(token.clone()).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        let text = error.to_string();
        assert!(text.contains("comes from a query of another"), "{text}");
    }
    // Nor is the token of a partition one of the merged read of that partition.
    let of_part = of_one().take(1).page(None).await.unwrap().next;
    let only = [format!("{HOUR}_0")];
    let only = table.query::<Reading<4>>().partitions(only);
    let error = only.merged().page(of_part).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let error = merged::<4>(&table).page_after(Some("1.x")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(journal.requests().count(), 1);
    let text: PageToken = token.to_string().parse().unwrap();
    assert_eq!(text, token);
}

#[tokio::test]
async fn what_cannot_be_merged_is_refused_before_anything_is_sent() {
    let server = TableServer::in_process();
    let table = client(&server).table("Readings");
    let query = || table.query::<DynamicEntity>();
    let ranges = "is for `partitions`, and not for ranges";
    let of_a = || query().partitions(["a"]);
    for (query, reason) in [
        (query().partitions(["a", "b", "a"]), "is given twice"),
        (query().partition("a").row_ranges(["m"]), ranges),
        (query().partition_ranges(["m"]), ranges),
        (of_a().in_order(), "`in_order` and `merged` are two orders"),
        (of_a().parallel(0), "a parallelism of 0"),
        (query().partitions(["a/b"]), "a/b"),
        (of_a().page_size(0), "a page size of 0"),
    ] {
        let error = query.merged().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let none: [&str; 0] = [];
    let nothing = || query().partitions(none).merged();
    assert!(nothing().collect().await.unwrap().is_empty());
    assert!(nothing().page(None).await.unwrap().next.is_none());
    let error = nothing().take(0).page(None).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("a page of no items leads nowhere"), "{text}");
    assert_eq!(server.journal().requests().count(), 0);
}

#[tokio::test]
async fn an_entity_that_cannot_be_read_is_in_its_place() {
    let table = Subject::in_process().table().await;
    insert(&table, &readings::<3>(3)).await;
    // In the middle of the readings of second 1.
    let bad = DynamicEntity::new(format!("{HOUR}_1"), "0001_s001x").with("celsius", "warm");
    table.insert(&bad).await.unwrap();
    let items: Vec<_> = merged::<3>(&table).stream().collect().await;
    let places: Vec<_> = (0..items.len()).filter(|at| items[*at].is_err()).collect();
    assert_eq!((items.len(), places), (10, vec![5]));

    let error = merged::<3>(&table).take(4).page(None).await;
    let next = error.unwrap().next.unwrap();
    let error = merged::<3>(&table).take(4).page(next).await.unwrap_err();
    assert_eq!(error.key().unwrap().row_key().as_str(), "0001_s001x");
    let after = merged::<3>(&table).take(4);
    let after = after.page_after(error.next_page()).await.unwrap();
    assert_eq!((after.items.len(), after.items[0].second), (2, 2));

    let skipping = merged::<3>(&table).skip_unreadable(|_| ());
    assert_eq!(skipping.collect().await.unwrap(), readings::<3>(3));
}

#[tokio::test]
async fn requests_are_few_and_bounded() {
    let server = TableServer::in_process();
    let (table, journal) = (client(&server).table("Readings"), server.journal());
    table.create_table().await.unwrap();
    insert(&table, &readings::<16>(400)).await;
    let requests = || {
        let requests = journal.requests();
        let returned: usize = requests.iter().map(|it| it.entities_returned).sum();
        (requests.count(), returned)
    };
    // A page: a request for each partition, which returns about twice its share.
    let mut token = None;
    for _ in 0..2 {
        journal.clear();
        let page = merged::<16>(&table).take(64).page(token).await.unwrap();
        assert_eq!((page.items.len(), requests()), (64, (16, 128)));
        token = page.next;
    }
    // All, with pages of 100: four of each partition, and at each time some items of it in memory.
    journal.clear();
    let all = merged::<16>(&table).page_size(100).stream();
    assert_eq!(all.take(1).count().await, 1);
    assert_eq!(requests(), (16, 1_600));
    journal.clear();
    let stream = merged::<16>(&table).page_size(100).stream();
    assert_eq!((stream.count().await, requests()), (6_400, (64, 6_400)));
    // All in one of the partitions.
    let first = (0..300).map(|at| DynamicEntity::new("x", format!("{at:03}")));
    let first = table.bulk().upsert_replace(futures::stream::iter(first));
    assert!(first.await.unwrap().is_success());
    journal.clear();
    let query = table.query::<DynamicEntity>().partitions(["x", "y", "z"]);
    let page = query.merged().take(300).page(None).await.unwrap();
    assert_eq!(page.items.len(), 300);
    assert_eq!(requests(), (4, 300));
}

#[tokio::test]
async fn short_and_empty_pages_are_not_the_end() {
    let server = TableServer::builder();
    let server = server.max_page_entities(2).empty_pages();
    let server = server.in_process().unwrap();
    let table = client(&server).table("Readings");
    table.create_table().await.unwrap();
    let all = readings::<4>(5);
    insert(&table, &all).await;
    assert_eq!(merged::<4>(&table).collect().await.unwrap(), all);
    for take in [1, 3, 7, 20, 21] {
        assert_eq!(pages::<4>(&table, take).await, all, "{take}");
    }
}

#[derive(Debug, TableEntity)]
#[table(partition_key = "{shard}", row_key = "{id}")]
struct Session {
    shard: Shard<2>,
    id: u32,
    #[table(expires)]
    until: Timestamp,
}

#[tokio::test]
async fn expired_entities_are_hidden_from_page_to_page() {
    let server = TableServer::in_process();
    let clock = server.clock();
    clock.freeze();
    clock.set("2024-03-15T10:00:00Z".parse().unwrap());
    let table = client(&server).table("Sessions");
    table.create_table().await.unwrap();
    for id in 0..8_u32 {
        let session = Session {
            shard: Shard::new(id % 2).unwrap(),
            id,
            until: format!("2024-03-15T10:0{}:00Z", id + 1).parse().unwrap(),
        };
        table.insert(&session).await.unwrap();
    }
    let query = || {
        let partitions = Shard::all().map(Session::partition);
        table.query::<Session>().partitions(partitions).merged()
    };
    let page = query().take(2).page(None).await.unwrap();
    assert_eq!(page.items[1].id, 1);
    // The token is that of the same query at a later time.
    clock.set("2024-03-15T10:06:30Z".parse().unwrap());
    assert_eq!(query().including_expired().count().await.unwrap(), 8);
    let page = query().page(page.next).await.unwrap();
    let ids: Vec<_> = page.items.iter().map(|session| session.id).collect();
    assert_eq!(ids, [6, 7]);
}

/// No more requests are in flight than `parallel` says.
#[tokio::test(start_paused = true)]
async fn parallel_bounds_the_requests_in_flight() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    insert(&table, &readings::<16>(2)).await;
    let second = Duration::from_secs(1);
    faults.on(Op::QueryEntities).inject(Fault::delay(second));
    for (parallel, waves) in [(1, 16), (5, 4), (8, 2), (100, 1)] {
        let start = tokio::time::Instant::now();
        let all = merged::<16>(&table).parallel(parallel);
        assert_eq!(all.collect().await.unwrap().len(), 32);
        assert_eq!(start.elapsed().as_secs(), waves, "{parallel}");
    }
}

#[tokio::test]
async fn a_failure_ends_the_read() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    insert(&table, &readings::<4>(4)).await;
    for nth in 1..=8 {
        let injected = faults.on(Op::QueryEntities).nth(nth);
        let injected = injected.inject(Fault::reset());
        let items: Vec<_> = merged::<4>(&table).page_size(2).stream().collect().await;
        assert_eq!(injected.hits(), 1);
        let (last, before) = items.split_last().unwrap();
        assert_eq!(last.as_ref().unwrap_err().kind(), ErrorKind::Transport);
        assert!(before.iter().all(Result::is_ok));
        let before: Vec<_> = before.iter().flatten().cloned().collect();
        assert_eq!(before, readings::<4>(4)[..before.len()]);
        faults.clear();
    }
}

/// Entities that are there during the whole read are in it once, in order, whatever others are
/// written beside it, and whatever the sizes of pages are.
#[tokio::test]
async fn random_reads_beside_writers() {
    for seed in harness::seeds("SEED", 40) {
        println!("SEED={seed}");
        let mut rng = Rng::with_seed(seed);
        let table = Subject::in_process().table().await;
        let partitions: Vec<_> = (0..rng.usize(1..8)).map(|at| format!("p{at}")).collect();
        let mut keys = BTreeSet::new();
        for _ in 0..rng.usize(0..120) {
            keys.insert((rng.u32(..40), rng.choice(&partitions).unwrap().clone()));
        }
        let entity = |row: u32, partition: &str| DynamicEntity::new(partition, format!("{row:02}"));
        for (row, partition) in &keys {
            table.insert(&entity(*row, partition)).await.unwrap();
        }
        // The odd ones come and go.
        let (stays, mut others): (BTreeSet<_>, BTreeSet<_>) =
            keys.into_iter().partition(|(row, _)| row % 2 == 0);
        let (take, size) = (rng.usize(1..30), rng.usize(1..10));
        let mut read = Vec::new();
        let mut token = None;
        loop {
            let query = table.query::<DynamicEntity>();
            let query = query
                .partitions(partitions.clone())
                .merged()
                .parallel(rng.usize(1..4));
            let page = query.take(take).page_size(size).page(token).await.unwrap();
            assert!(page.items.len() <= take);
            read.extend(page.items.iter().map(|item| {
                let row: u32 = item.key().row_key().as_str().parse().unwrap();
                (row, item.key().partition_key().to_string())
            }));
            token = page.next;
            if token.is_none() {
                break;
            }
            for _ in 0..rng.usize(..6) {
                let row = rng.u32(..20) * 2 + 1;
                let partition = rng.choice(&partitions).unwrap();
                if others.insert((row, partition.clone())) {
                    table.insert(&entity(row, partition)).await.unwrap();
                } else {
                    others.remove(&(row, partition.clone()));
                    let key = (partition.as_str(), format!("{row:02}"));
                    assert!(table.delete(key).await.unwrap());
                }
            }
        }
        assert!(read.is_sorted_by(|a, b| a < b), "{read:?}");
        let read: BTreeSet<_> = read.into_iter().filter(|(row, _)| row % 2 == 0).collect();
        assert_eq!(read, stays);
    }
}

/// How many entities the server accepts within that many seconds of its clock, without retries, of
/// appends that exceed its rates. The table has been divided: each shard has a range of its own.
async fn accepted<const N: u32>(seconds: u32) -> usize {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let partitions = subject.server().partitions(table.name()).unwrap();
    let width = (N - 1).to_string().len();
    for shard in 0..N {
        let border = format!("{HOUR}_{shard:0width$}");
        partitions.split_at(border).unwrap();
    }
    let clock = subject.server().clock();
    clock.freeze();
    faults.throttle(Throttle::documented());
    clock.advance(Duration::from_secs(1));
    let mut written = 0;
    for second in 0..seconds {
        for shard in Shard::<N>::all() {
            for batch in 0.. {
                let mut change = table.batch(Reading::<N>::partition(HOUR, shard));
                for sensor in 0..100 {
                    let reading = reading(second, &format!("s{batch:02}{sensor:02}"));
                    change = change.insert(&Reading { shard, ..reading });
                }
                match change.await {
                    Ok(_) => written += 100,
                    Err(error) => {
                        assert!(error.is_throttled(), "{error}");
                        break;
                    }
                }
            }
        }
        clock.advance(Duration::from_secs(1));
    }
    written
}

#[tokio::test]
async fn shards_accept_as_many_times_the_entities_up_to_the_limit_of_the_account() {
    let single = accepted::<1>(2).await;
    assert_eq!(single, 2 * 2_000);
    assert_eq!(accepted::<2>(2).await, 2 * single);
    assert_eq!(accepted::<8>(2).await, 8 * single);
    assert_eq!(accepted::<16>(2).await, 2 * 20_000, "what an account takes");
}

#[tokio::test]
async fn lints_of_appends_point_to_shards() {
    let server = TableServer::in_process();
    let journal = server.journal();
    let table = client(&server).table("Readings");
    table.create_table().await.unwrap();
    insert(&table, &readings::<1>(200)).await;
    let lints = journal.lints();
    let text = |kind| {
        let lint = lints.iter().find(|lint| lint.kind == kind);
        lint.map(ToString::to_string).unwrap_or_default()
    };
    let hot = text(LintKind::HotPartition);
    assert!(hot.contains("`Shard`"), "{lints:?}");
    assert!(text(LintKind::LogData).contains("blobs"), "{lints:?}");
    assert!(LintKind::PrependAppend.advice().contains("`Shard`"));

    journal.clear();
    let table = client(&server).table("Sharded");
    table.create_table().await.unwrap();
    insert(&table, &readings::<16>(20)).await;
    let mut lints = journal.lints().into_iter();
    assert!(lints.all(|lint| lint.kind != LintKind::HotPartition));
}
