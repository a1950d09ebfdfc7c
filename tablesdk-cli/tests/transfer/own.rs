//! The entities that the client stores for its own purposes, where pages end in the middle of them,
//! and where an entity is put back.

use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, TableClient, TableServiceClient};
use tablesdk_cli::import::{WriteOptions, import};
use tablesdk_cli::lines::{Line, Totals};
use tablesdk_cli::own::EntrySearch;
use tablesdk_cli::pages::TablePages;
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::{client, export, in_process, records};

#[derive(Serialize, Deserialize)]
struct Counted {
    number: u32,
}

impl Message for Counted {
    const NAME: &'static str = "counted";
}

/// Commits a message without a change that sorts after the outbox.
async fn commit(table: &TableClient, number: u32) {
    let entity = DynamicEntity::new("p", "a").with("Number", i64::from(number));
    let batch = table.batch("p").upsert_replace(&entity);
    batch
        .step(Step::message(&Counted { number }))
        .await
        .unwrap();
}

async fn delivered(table: &TableClient) -> Vec<u32> {
    let (send, mut numbers) = tokio::sync::mpsc::unbounded_channel();
    let outbox = Outbox::new(table).on(move |counted: Received<Counted>| {
        let result = send.send(counted.number);
        async move { Ok(result?) }
    });
    outbox.drain().await.unwrap();
    drop(outbox);
    let mut all = Vec::new();
    while let Some(number) = numbers.recv().await {
        all.push(number);
    }
    all
}

/// A copy that had the number of a step twice could not commit any more.
#[tokio::test]
async fn steps_that_are_committed_between_two_pages_stay_behind() {
    for size in [2, 3] {
        let server = TableServer::builder()
            .max_page_entities(size)
            .in_process()
            .unwrap();
        let from = client(&server);
        let table = from.table("Tests");
        table.create_table().await.unwrap();
        commit(&table, 1).await;
        commit(&table, 2).await;
        let (_server, to) = in_process();
        let copy = to.table("Tests");
        copy.create_table().await.unwrap();

        let mut pages = TablePages::open(&from, &[], None).await.unwrap();
        let mut has_head = false;
        while let Some(page) = pages.next().await.unwrap() {
            let options = WriteOptions::default();
            let is_head = |entity: &DynamicEntity| entity.row_key() == "~tablesdk.outbox.head";
            let is_first = !has_head && page.entities.iter().any(is_head);
            has_head |= is_first;
            let written = options
                .bulk(&copy, 0, futures::stream::iter(page.entities))
                .await;
            assert!(written.unwrap().is_success());
            if is_first {
                commit(&table, 3).await;
                // The process ends here, and another one continues.
                let position = serde_json::to_string(pages.position()).unwrap();
                let position = serde_json::from_str(&position).unwrap();
                pages = TablePages::open(&from, &[], Some(position)).await.unwrap();
            }
        }
        let position = pages.position();
        assert_eq!(
            (position.own().messages, position.left_behind().late_steps),
            (2, 1),
            "{size}"
        );
        assert_eq!(delivered(&table).await, [1, 2, 3]);
        assert_eq!(delivered(&copy).await, [1, 2]);
        commit(&copy, 4).await;
        assert_eq!(delivered(&copy).await, [4]);
    }
}

async fn restore(service: &TableServiceClient, entity: DynamicEntity) {
    let (mut file, table) = (Vec::new(), "Titles".to_owned());
    let totals = Totals {
        tables: 0,
        entities: 1,
    };
    for line in [
        Line::Start,
        Line::Entity { table, entity },
        Line::End(totals),
    ] {
        line.write(&mut file);
    }
    let report = import(
        service,
        records(&file),
        &WriteOptions::default(),
        0,
        |_, _| {},
    )
    .await;
    assert!(
        report.error.is_none() && report.failures.is_empty(),
        "{report:?}"
    );
}

/// Else the worker would delete it as one that came back late.
#[tokio::test]
async fn an_entity_that_is_restored_after_a_delete_step_stays() {
    let (server, service) = in_process();
    let (table, titles) = (service.table("Tests"), service.table("Titles"));
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    let title = DynamicEntity::new("Titles", "Sales").with("Title", "a");
    let entity = DynamicEntity::new("p", "a");
    let batch = table.batch("p").upsert_replace(&entity);
    batch
        .step(Step::upsert_replace(&titles, &title))
        .await
        .unwrap();
    let file = String::from_utf8(export(&service, &[]).await).unwrap();
    let lines = file
        .lines()
        .map(|line| Line::read(line.as_bytes()).unwrap());
    let mut exported = lines.filter_map(|line| match line {
        Line::Entity { table, entity } if table == "Titles" => Some(entity),
        _ => None,
    });
    let exported = exported.next().unwrap();
    assert!(exported.properties().get("TablesdkStepOf").is_some());
    let batch = table.batch("p").upsert_replace(&entity);
    batch
        .step(Step::delete(&titles, ("Titles", "Sales")))
        .await
        .unwrap();

    restore(&service, exported).await;
    server
        .clock()
        .advance(std::time::Duration::from_secs(2 * 3600));
    Outbox::new(&table).drain().await.unwrap();
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_search_for_entries_looks_at_a_large_table_with_four_requests() {
    // It looks at one entity for each request.
    let server = TableServer::builder().max_query_time(std::time::Duration::ZERO);
    let server = server.start().await.unwrap();
    let service = TableServiceClient::from_connection_string(&server.connection_string()).unwrap();
    let table = service.table("People");
    table.create_table().await.unwrap();
    for row in 0..20 {
        let entity = DynamicEntity::new(format!("{}", row % 2), format!("{row}"));
        table.insert(&entity).await.unwrap();
    }
    let journal = server.journal();
    let queries = || journal.requests().op(Op::QueryEntities).count();
    let mut search = EntrySearch::new(&table);
    assert_eq!(search.first(None).await.unwrap(), None);
    assert_eq!(queries(), 4);
    // Once more at the ten entities of a partition.
    assert_eq!(search.first(Some("1")).await.unwrap(), None);
    assert_eq!(queries(), 14);
}
