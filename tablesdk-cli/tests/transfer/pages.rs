//! Pages of tables: their order, and a position after each.

use std::time::Duration;

use tablesdk::{DynamicEntity, ErrorKind, TableServiceClient, WritableEntity as _};
use tablesdk_cli::pages::{Position, TablePages};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::{client, in_process};

/// Tables of no, one and several pages.
async fn fill(service: &TableServiceClient) {
    for (name, count) in [("Alpha", 7), ("beta", 0), ("Gamma", 1), ("delta", 10)] {
        let table = service.table(name);
        table.create_table().await.unwrap();
        for index in 0..count {
            let entity = DynamicEntity::new(format!("p{}", index % 3), format!("r{index}"));
            table.insert(&entity).await.unwrap();
        }
    }
}

/// Reads at most `count` pages. Each is its table, whether it is the first of it, and the keys.
async fn read(
    service: &TableServiceClient,
    resume: Option<Position>,
    count: usize,
) -> (Vec<(String, bool, Vec<String>)>, Position) {
    let mut pages = TablePages::open(service, &[], resume).await.unwrap();
    let mut all = Vec::new();
    while all.len() < count
        && let Some(page) = pages.next().await.unwrap()
    {
        let keys = page
            .entities
            .iter()
            .map(|entity| entity.entity_key().unwrap().to_string());
        all.push((page.table, page.is_first, keys.collect()));
    }
    (all, pages.position().clone())
}

#[tokio::test]
async fn reading_resumes_after_any_page() {
    let builder = TableServer::builder().max_page_entities(3);
    let server = builder.empty_pages().page_per_partition().in_process();
    let server = server.unwrap();
    let service = client(&server);
    fill(&service).await;
    let (whole, end) = read(&service, None, usize::MAX).await;
    assert!(whole.len() > 8, "{} pages", whole.len());
    assert_eq!((end.totals.tables, end.totals.entities), (4, 18));
    for stop in 1..=whole.len() {
        let (mut all, position) = read(&service, None, stop).await;
        let json = serde_json::to_string(&position).unwrap();
        let position = serde_json::from_str(&json).unwrap();
        let (rest, last) = read(&service, Some(position), usize::MAX).await;
        all.extend(rest);
        assert_eq!(
            (all, last),
            (whole.clone(), end.clone()),
            "after {stop} pages"
        );
    }
}

#[tokio::test]
async fn tables_are_read_in_the_order_of_their_names() {
    let (_server, service) = in_process();
    let (none, position) = read(&service, None, 9).await;
    assert_eq!((none.len(), position), (0, Position::default()));
    fill(&service).await;
    let (all, _) = read(&service, None, 9).await;
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["Alpha", "beta", "delta", "Gamma"]);

    let selected = ["Gamma", "beta", "BETA"].map(str::to_owned);
    let mut pages = TablePages::open(&service, &selected, None).await.unwrap();
    assert_eq!(pages.next().await.unwrap().unwrap().table, "beta");
    assert_eq!(pages.tables_left(), 1);
    assert_eq!(pages.next().await.unwrap().unwrap().table, "Gamma");
    assert!(pages.next().await.unwrap().is_none());

    for (name, kind) in [("Missing", ErrorKind::Service), ("a/b", ErrorKind::Input)] {
        let mut pages = TablePages::open(&service, &[name.to_owned()], None)
            .await
            .unwrap();
        for _ in 0..2 {
            assert_eq!(pages.next().await.unwrap_err().kind(), kind);
        }
    }
}

#[tokio::test]
async fn a_scan_that_finds_nothing_resumes_after_each_response() {
    let builder = TableServer::builder().max_query_time(Duration::ZERO);
    let server = builder.in_process().unwrap();
    let service = client(&server);
    fill(&service).await;
    let journal = server.journal();
    let mut position = None;
    let mut responses = 0;
    loop {
        // Each time another process.
        let table = ["delta".to_owned()];
        let pages = TablePages::open(&service, &table, position);
        let mut pages = pages.await.unwrap();
        pages.select(Some("Age eq 1".to_owned()));
        let Some(page) = pages.next().await.unwrap() else {
            break;
        };
        assert!(page.entities.is_empty());
        responses += 1;
        position = Some(pages.position().clone());
    }
    let queries = journal.requests().op(Op::QueryEntities);
    assert_eq!((responses, queries.count()), (10, 10));
}
