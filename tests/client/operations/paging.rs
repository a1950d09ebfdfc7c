//! Paging: the same entities come in the same order, however the service divides the result into
//! pages and however a program reads it.

use futures::{TryStreamExt as _, stream};
use harness::{Subject, client, client_with, seeded};
use tablesdk::query::{AccessClass, PageToken};
use tablesdk::{
    DynamicEntity, ErrorKind, Stored, TableClient, TableServiceClient, TableServiceClientBuilder,
};
use tablesdk_server::TableServer;

use crate::{Employee, on_both_transports};

/// Some hundred entities in partitions of very different sizes, with keys that need escaping.
fn entities(random: &mut fastrand::Rng) -> Vec<DynamicEntity> {
    let partitions = [
        "",
        " ",
        "a",
        "a'b",
        "aa",
        "b%20",
        "ü",
        "\u{FFFD}",
        "\u{1F600}",
    ];
    let mut rows = Vec::new();
    for partition in partitions {
        for id in 0..random.usize(0..60) {
            let row = DynamicEntity::new(partition, format!("{:03}'{id}", random.u16(..1000)));
            let row = row.with("Value", random.i32(0..10));
            rows.push(row.with("Name", "x".repeat(random.usize(..20))));
        }
    }
    random.shuffle(&mut rows);
    rows
}

async fn filled(server: &TableServer, rows: &[DynamicEntity]) -> TableClient {
    let subject = client(server);
    let table = subject.table("Tests");
    table.create_table().await.unwrap();
    let run = table.bulk().upsert_replace(stream::iter(rows.to_vec()));
    assert!(run.await.unwrap().is_success());
    table
}

/// The keys and the value of each entity.
type Plain = Vec<(String, String, i32)>;

fn plain(entities: &[Stored<DynamicEntity>]) -> Plain {
    let plain = entities.iter().map(|entity| {
        let (partition, row) = (entity.partition_key(), entity.row_key());
        let value = entity.properties().read("Value").unwrap();
        (partition.to_owned(), row.to_owned(), value)
    });
    plain.collect()
}

async fn collect(query: Query) -> Plain {
    plain(&query.collect().await.unwrap())
}

fn sorted(entities: &Plain) -> Plain {
    let mut sorted = entities.clone();
    sorted.sort();
    sorted
}

type Query = tablesdk::action::QueryEntities<DynamicEntity>;

/// Reads page by page, with a token that is printed and serialized, and another client for each
/// page. All pages but the last have exactly `take` entities, if it is given.
async fn by_tokens(
    server: &TableServer,
    take: Option<usize>,
    query: impl Fn(&TableClient) -> Query,
) -> Plain {
    let mut rows = Vec::new();
    let mut token: Option<PageToken> = None;
    loop {
        let service = client(server);
        let mut page = query(&service.table("Tests"));
        if let Some(take) = take {
            page = page.take(take);
        }
        let page = page.page(token).await.unwrap();
        assert!(take.is_none_or(|take| take == page.items.len()) || page.next.is_none());
        rows.extend(plain(&page.items));
        let Some(next) = page.next else {
            return rows;
        };
        let json = serde_json::to_string(&next).unwrap();
        assert_eq!(json, format!("\"{next}\""));
        token = Some(serde_json::from_str(&json).unwrap());
    }
}

#[tokio::test]
async fn paging_does_not_change_the_result() {
    let mut random = seeded();
    let entities = entities(&mut random);
    let whole = TableServer::in_process();
    let whole = filled(&whole, &entities).await;
    for (max, empty, per_partition) in [
        (3, false, false),
        (3, true, true),
        (7, true, false),
        (1000, false, true),
    ] {
        let mut builder = TableServer::builder().max_page_entities(max);
        if empty {
            builder = builder.empty_pages();
        }
        if per_partition {
            builder = builder.page_per_partition();
        }
        let server = builder.in_process().unwrap();
        let table = filled(&server, &entities).await;
        for filter in [
            "",
            "Value lt 3",
            "PartitionKey gt 'a' and Value ne 5",
            "RowKey ge '5'",
        ] {
            let query = |table: &TableClient| match filter {
                "" => table.query::<DynamicEntity>(),
                _ => table.query().odata(filter),
            };
            let expected = collect(query(&whole)).await;
            let size = random.usize(1..20);
            let at = format!("{max} {empty} {per_partition} {filter} {size}");
            let sized = || query(&table).page_size(size);
            assert_eq!(collect(sized()).await, expected, "{at}");
            assert_eq!(collect(sized().prefetch()).await, expected, "{at}");
            let read = by_tokens(&server, None, |table| query(table).page_size(size)).await;
            assert_eq!(read, expected, "{at}");
            let read = by_tokens(&server, Some(size), query).await;
            assert_eq!(read, expected, "{at}");

            let take = random.usize(0..expected.len() + 2);
            let some = collect(sized().take(take)).await;
            assert_eq!(some, expected[..take.min(expected.len())], "{at} {take}");
            assert_eq!(query(&table).count().await.unwrap(), expected.len(), "{at}");

            // In adjacent ranges: some boundaries are keys of entities, others are not.
            let mut boundaries = vec!["a".to_owned(), "aZ".to_owned(), "\u{FFFD}".to_owned()];
            boundaries.truncate(random.usize(..4));
            let ranges = sized().partition_ranges(boundaries);
            let ranges = ranges.parallel(random.usize(1..5)).in_order();
            assert_eq!(plain(&ranges.collect().await.unwrap()), expected, "{at}");
            let ranges = query(&table).row_ranges(["2", "500'3", "9"]).parallel(3);
            let parts = plain(&ranges.collect().await.unwrap());
            assert_eq!(sorted(&parts), sorted(&expected), "{at}");
        }
    }
}

#[tokio::test]
async fn partitions_are_read_in_parallel() {
    let mut random = seeded();
    let entities = entities(&mut random);
    let server = TableServer::in_process();
    let table = filled(&server, &entities).await;
    let query = || table.query::<DynamicEntity>();
    let all = collect(query()).await;
    let of = |read: &Plain, partition: &str| {
        let mut read = read.clone();
        read.retain(|entity| entity.0 == partition);
        read
    };
    let wanted = ["ü", "missing", "a'b", ""];
    let expected: Vec<_> = wanted.iter().flat_map(|name| of(&all, name)).collect();
    for parallel in [1, 2, 8] {
        let parts = || query().page_size(7).partitions(wanted).parallel(parallel);
        let in_order = parts().in_order().collect().await.unwrap();
        assert_eq!(plain(&in_order), expected);
        let unordered = plain(&parts().collect().await.unwrap());
        // Each partition is in order, although entities of other partitions come between.
        for partition in wanted {
            assert_eq!(of(&unordered, partition), of(&all, partition));
        }
        assert_eq!(sorted(&unordered), sorted(&expected));
    }
    let take = expected.len() / 2;
    let some = query().take(take).partitions(wanted).in_order();
    assert_eq!(plain(&some.collect().await.unwrap()), expected[..take]);

    for parts in [
        query().partitions(["a", "b/c"]),
        query().partitions(["a"]).parallel(0),
        query().partition_ranges(["b", "a"]),
        query().partition_ranges(["a", "a"]),
        query().partition("a").row_ranges(["a/b"]),
        query().odata("no filter").partitions(["a"]),
    ] {
        let error = parts.collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    }
    let missing = client(&server).table("Missing");
    for in_order in [false, true] {
        let query = missing.query::<DynamicEntity>().partitions(["a", "b"]);
        let query = if in_order { query.in_order() } else { query };
        let mut items = query.stream();
        assert!(items.try_next().await.unwrap_err().is_table_not_found());
        let next = items.try_next().await.unwrap();
        assert!(next.is_none(), "it ends with its first error");
    }
}

#[tokio::test]
async fn one_response_may_be_an_empty_page() {
    let server = TableServer::builder().empty_pages().in_process().unwrap();
    let rows = [DynamicEntity::new("a", "1"), DynamicEntity::new("a", "2")];
    let table = filled(&server, &rows).await;
    let query = || table.query::<DynamicEntity>().one_response();
    let page = query().page(None).await.unwrap();
    assert_eq!(page.items.len(), 0);
    let page = query().page(page.next.unwrap()).await.unwrap();
    assert_eq!((page.items.len(), page.next), (2, None));
    assert_eq!(query().collect().await.unwrap().len(), 2);
}

#[tokio::test]
async fn prefetch_reads_the_next_page_early() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    for id in 0..9 {
        let employee = Employee::new(&id.to_string(), "Ada", id);
        table.insert(&employee).await.unwrap();
    }
    let requests = |prefetch: bool| {
        let (table, journal) = (table.clone(), subject.server().journal());
        async move {
            let query = table.query::<Employee>().page_size(3);
            let mut items = if prefetch { query.prefetch() } else { query }.stream();
            items.try_next().await.unwrap();
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let early = journal.requests().count();
            let rest: Vec<_> = items.try_collect().await.unwrap();
            assert_eq!(rest.len(), 8);
            (early, journal.requests().count())
        }
    };
    assert_eq!(requests(false).await, (1, 3));
    assert_eq!(requests(true).await, (2, 3));
}

on_both_transports! {
    async fn a_query_for_one_entity_is_a_read_by_key(subject: Subject) {
        let table = subject.table().await;
        let query = |id: &str| {
            let id = id.to_owned();
            table.query::<Employee>().partition("Sales").filter(move |e| e.id.eq(id))
        };
        assert!(query("1").collect().await.unwrap().is_empty());
        let stored = table.insert(&Employee::ada()).await.unwrap();
        assert_eq!(query("1").collect().await.unwrap(), vec![stored.clone()]);
        assert_eq!(query("1").select(|e| (e.name, e.age)).one().await.unwrap(), Some(("Ada".to_owned(), 36)));
        assert_eq!(query("1").count().await.unwrap(), 1);
        assert!(!query("2").exists().await.unwrap());
        let page = query("1").page(None).await.unwrap();
        assert_eq!((page.items, page.next), (vec![stored], None));
        assert_eq!(query("1").delete_all().await.unwrap().progress().written, 1);
        let missing = subject.service.table("Missing");
        let one = missing.query::<Employee>().partition("Sales").filter(|e| e.id.eq("1"));
        assert!(one.collect().await.unwrap_err().is_table_not_found());
    }
}

#[tokio::test]
async fn explain_and_deny_scans_know_the_access() {
    let server = TableServer::in_process();
    let journal = server.journal();
    let table = client_with(&server, TableServiceClientBuilder::deny_scans).table("Tests");
    table.create_table().await.unwrap();
    let query = || table.query::<Employee>();
    let sales = || query().partition("Sales");
    let point = sales().filter(|e| e.id.eq("1"));
    let rows = sales().filter(|e| e.id.starts_with("1"));
    let partition = sales().filter(|e| e.age.ge(1)).take(5);
    let scan = query().filter(|e| e.age.ge(1));
    let point_url = "/Tests(PartitionKey='Sales',RowKey='1')";
    for (query, access, target) in [
        (point, AccessClass::Point, point_url),
        (rows, AccessClass::RowRange, "/Tests()?$filter="),
        (partition, AccessClass::Partition, "&$top=5"),
        (scan, AccessClass::Scan, "/Tests()?$filter="),
    ] {
        let explanation = query.explain().unwrap();
        assert_eq!(explanation.access(), access);
        let url = explanation.url().replace("%24", "$").replace("%27", "'");
        assert!(url.contains(target), "{url}");
        let shown = explanation.to_string();
        let start = format!("access: {access}\nfilter: ");
        assert!(shown.starts_with(&start), "{shown}");
        journal.clear();
        let result = query.collect().await;
        let sent = journal.requests().count();
        let is_scan = access == AccessClass::Scan;
        assert_eq!((sent, result.is_err()), (usize::from(!is_scan), is_scan));
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Input);
            let text = format!("{error:?}");
            assert!(text.contains("reads the whole table (a scan)"), "{text}");
        }
    }
    journal.clear();
    for error in [
        query().count().await.unwrap_err(),
        query().first().await.unwrap_err(),
        query().page(None).await.unwrap_err(),
        query().partition_ranges(["a"]).collect().await.unwrap_err(),
        query().odata("(").explain().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    }
    // To explain a scan is no scan.
    assert!(query().explain().is_ok());
    assert!(query().delete_all().await.is_err());
    assert!(query().delete_all().dry_run().await.is_err());
    assert!(journal.requests().is_empty());
    let sales = query().partitions(["Sales"]).collect().await;
    assert!(sales.unwrap().is_empty());
}

/// An explanation may be shown to anyone, so it contains no secret.
#[test]
fn an_explanation_contains_no_credential() {
    let text = "TableEndpoint=https://acct.table.core.windows.net;SharedAccessSignature=sv=2019-02-02&sig=c2VjcmV0";
    let service = TableServiceClient::from_connection_string(text).unwrap();
    let query = service.table("Tests").query::<Employee>();
    let explanation = query.explain().unwrap();
    let url = "https://acct.table.core.windows.net/Tests()";
    assert_eq!(explanation.url(), url);
    assert!(!format!("{explanation:?} {explanation}").contains("sig"));
}
