//! The options of a query: their order in the chain changes neither the requests nor the items.

use futures::stream;
use harness::client_with;
use harness::proxy::Proxy;
use tablesdk::query::PageToken;
use tablesdk::{RetryPolicy, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Review")]
#[table(partition_key = "{department}", row_key = "{employee:03}")]
struct Review {
    department: String,
    employee: u32,
    stars: i32,
}

/// Reads the entities of an enum, whose columns have conditions of their own.
#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Row {
    Review(Review),
}

/// A table with reviews of three departments, and a transport that keeps its requests.
async fn reviews() -> (TableServer, TableClient, Proxy) {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = client_with(&server, |builder| builder.transport(proxy.clone()));
    let table = service.table("Reviews");
    table.create_table().await.unwrap();
    let departments = ["Legal", "Marketing", "Sales"];
    let reviews = (0..30).map(|id| Review {
        department: departments[id as usize % 3].into(),
        employee: id,
        stars: id.cast_signed() % 5,
    });
    let report = table.bulk().insert(stream::iter(reviews)).await.unwrap();
    assert!(report.is_success());
    (server, table, proxy)
}

/// The requests of all queries since a number of requests, in any order: parts are read at the same
/// time.
fn queries(proxy: &Proxy, since: usize) -> Vec<String> {
    let sent = proxy.sent().split_off(since);
    let queries = sent
        .into_iter()
        .filter(|request| request.op == Op::QueryEntities);
    let mut urls: Vec<_> = queries.map(|request| request.url).collect();
    urls.sort();
    urls
}

/// Reads a query, and returns its items and its requests.
macro_rules! read {
    ($proxy:ident, $query:expr) => {{
        let since = $proxy.sent().len();
        let items = $query.collect().await.unwrap();
        (format!("{items:?}"), queries(&$proxy, since))
    }};
}

/// Asserts that two options do the same in both orders, before and after the query is divided, and
/// in between. A future of its own: the compiler needs a minute for one with all pairs.
macro_rules! pair {
    ($proxy:ident, $query:ident, {$($one:tt)*}, {$($other:tt)*}) => {Box::pin(async {
        let names = concat!(stringify!($($one)*), stringify!($($other)*));
        let expected = read!($proxy, $query()$($one)*$($other)*);
        assert!(!expected.1.is_empty(), "{names}");
        assert_eq!(read!($proxy, $query()$($other)*$($one)*), expected, "{names}");

        let expected = read!($proxy, $query()$($one)*$($other)*.partitions(["Sales", "Legal"]).parallel(1).in_order());
        assert!(expected.1.len() >= 2 || names.contains("take"), "{names}: {expected:?}");
        let query = $query()$($other)*.partitions(["Sales", "Legal"])$($one)*.in_order().parallel(1);
        assert_eq!(read!($proxy, query), expected, "{names}");
        let query = $query().partitions(["Sales", "Legal"])$($one)*.parallel(1).in_order()$($other)*;
        assert_eq!(read!($proxy, query), expected, "{names}");
        let query = $query().partitions(["Sales", "Legal"]).in_order()$($other)*$($one)*.parallel(1);
        assert_eq!(read!($proxy, query), expected, "{names}");

        let expected = read!($proxy, $query()$($one)*$($other)*.partition_ranges(["M"]).parallel(1).in_order());
        let query = $query().partition_ranges(["M"]).parallel(1).in_order()$($other)*$($one)*;
        assert_eq!(read!($proxy, query), expected, "{names}");
        let expected = read!($proxy, $query()$($one)*$($other)*.row_ranges(["015"]).parallel(1).in_order());
        let query = $query().row_ranges(["015"])$($other)*$($one)*.parallel(1).in_order();
        assert_eq!(read!($proxy, query), expected, "{names}");
    }).await};
}

/// Asserts it for each pair of options.
macro_rules! pairs {
    ($proxy:ident, $query:ident, $first:tt $($rest:tt)*) => {
        $(pair!($proxy, $query, $first, $rest);)*
        pairs!($proxy, $query, $($rest)*);
    };
    ($proxy:ident, $query:ident,) => {};
}

/// One that decides what the query yields, with each of the others.
macro_rules! with_each {
    ($proxy:ident, $query:ident, $first:tt, $($rest:tt)*) => {
        $(pair!($proxy, $query, $first, $rest);)*
    };
}

#[tokio::test]
async fn the_order_of_the_options_changes_no_request() {
    let (_server, table, proxy) = reviews().await;
    let query = || table.query::<Review>();
    pairs!(proxy, query,
        {.filter(|e| e.stars.ge(2))} {.odata("stars ne 3")} {.partition("Sales")} {.rows(Review::rows().employee(5..))}
        {.take(7)} {.page_size(3)} {.prefetch()} {.skip_unreadable(|_| ())}
        {.deadline(std::time::Duration::from_secs(60))} {.retry(RetryPolicy::none())}
    );
}

#[tokio::test]
async fn the_order_of_what_a_query_yields_changes_no_request() {
    let (_server, table, proxy) = reviews().await;
    let query = || table.query::<Row>();
    with_each!(proxy, query, {.select(|e| e.review.stars)},
        {.filter(|e| e.review.stars.ge(2))} {.odata("stars ne 3")} {.partition("Sales")} {.take(7)} {.page_size(3)}
        {.prefetch()} {.skip_unreadable(|_| ())}
    );
    with_each!(proxy, query, {.values()},
        {.filter(|e| e.review.stars.ge(2))} {.odata("stars ne 3")} {.partition("Sales")} {.take(7)} {.page_size(3)}
        {.prefetch()} {.skip_unreadable(|_| ())}
    );
    let query = || table.query::<Review>();
    with_each!(proxy, query, {.resolve(|entity| Ok(entity.row_key().to_owned()))},
        {.filter(|e| e.stars.ge(2))} {.odata("stars ne 3")} {.rows(Review::rows().employee(5..))} {.take(7)}
        {.page_size(3)} {.skip_unreadable(|_| ())}
    );
}

#[tokio::test]
async fn options_behind_partitions_have_their_effect() {
    let (_server, table, proxy) = reviews().await;
    let query = || {
        let query = table.query::<Review>().partitions(["Sales", "Legal"]);
        query
            .filter(|e| e.stars.ge(4))
            .select(|e| (e.employee, e.stars))
    };
    let read = query().take(3).in_order().collect().await.unwrap();
    assert_eq!(read, [(14, 4), (29, 4), (9, 4)]);
    assert_eq!(query().count().await.unwrap(), 4);
    let urls = queries(&proxy, 0);
    assert!(
        urls.iter().all(|url| url.contains("stars%20ge%204")),
        "{urls:?}"
    );
}

/// The order of the calls is no part of a query: a token fits the query that was written in another
/// order.
#[tokio::test]
async fn a_page_token_fits_the_query_in_any_order() {
    let (_server, table, _faults) = reviews().await;
    let page = table
        .query::<Review>()
        .partition("Sales")
        .filter(|e| e.stars.ge(1))
        .take(3)
        .page(None);
    let token: Option<PageToken> = page.await.unwrap().next;
    let query = table
        .query::<Review>()
        .take(3)
        .filter(|e| e.stars.ge(1))
        .partition("Sales");
    let page = query.page(token).await.unwrap();
    assert_eq!(page.items.len(), 3);
}
