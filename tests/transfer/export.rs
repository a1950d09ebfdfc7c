//! Exports that are interrupted and resumed, and pages of every shape.

use futures::{StreamExt as _, TryStreamExt as _};
use harness::Subject;
use tablesdk::transfer::{Chunk, ExportPosition, Record};
use tablesdk::{DynamicEntity, TableServiceClient};
use tablesdk_server::TableServer;

use crate::records;

/// Tables of 0, 1 and several pages.
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

fn client(server: &TableServer) -> TableServiceClient {
    TableServiceClient::builder(server.endpoint())
        .credential(server.credential())
        .transport(server.transport())
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_export_that_stops_after_any_chunk_goes_on_where_it_was() {
    let builder = TableServer::builder()
        .max_page_entities(3)
        .empty_pages()
        .page_per_partition();
    let server = builder.in_process().unwrap();
    let service = client(&server);
    fill(&service).await;
    let whole: Vec<Chunk> = service.export().stream().try_collect().await.unwrap();
    assert!(whole.len() >= 10, "{} chunks", whole.len());
    let all = |chunks: &[Chunk]| -> Vec<Record> {
        chunks
            .iter()
            .flat_map(|chunk| chunk.records.clone())
            .collect()
    };
    let end = all(&whole).pop();
    assert_eq!(
        end,
        Some(Record::End {
            tables: 4,
            entities: 18
        })
    );

    for stop in 1..=whole.len() {
        let mut stream = service.export().stream();
        let mut seen = Vec::new();
        for _ in 0..stop {
            seen.push(stream.try_next().await.unwrap().unwrap());
        }
        drop(stream);
        let position = seen.last().unwrap().position.to_string();
        let position: ExportPosition = position.parse().unwrap();
        assert_eq!(position.is_end(), stop == whole.len());
        let rest = service.export().resume(position).stream();
        seen.extend(rest.try_collect::<Vec<_>>().await.unwrap());
        assert_eq!(all(&seen), all(&whole), "stopped after {stop} chunks");
    }
}

#[tokio::test]
async fn tables_come_in_the_order_of_their_names_and_only_those_named() {
    let subject = Subject::in_process();
    fill(&subject.service).await;
    let names = |records: Vec<Record>| -> Vec<String> {
        let names = records.into_iter().filter_map(|record| match record {
            Record::Table { name } => Some(name),
            _ => None,
        });
        names.collect()
    };
    assert_eq!(
        names(records(&subject.service).await),
        ["Alpha", "beta", "delta", "Gamma"]
    );

    let export = subject.service.export().tables(["Gamma", "beta", "BETA"]);
    let chunks: Vec<Chunk> = export.stream().try_collect().await.unwrap();
    assert_eq!(
        chunks
            .iter()
            .map(|chunk| chunk.tables_left)
            .collect::<Vec<_>>(),
        [1, 0, 0]
    );
    let records: Vec<_> = chunks.into_iter().flat_map(|chunk| chunk.records).collect();
    assert_eq!(names(records), ["beta", "Gamma"]);
}

#[tokio::test]
async fn a_table_that_is_not_there_is_an_error_and_an_empty_account_is_none() {
    let subject = Subject::in_process();
    let records = records(&subject.service).await;
    assert_eq!(
        records,
        [
            Record::Start,
            Record::End {
                tables: 0,
                entities: 0
            }
        ]
    );
    let mut export = subject.service.export().tables(["Missing"]).stream();
    let error = export.try_next().await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert!(export.next().await.is_none());
    let refused = subject
        .service
        .export()
        .tables(["a/b"])
        .stream()
        .try_next()
        .await;
    assert_eq!(refused.unwrap_err().kind(), tablesdk::ErrorKind::Input);
    let refused = subject
        .service
        .export()
        .tables(["Missing"])
        .page_size(0)
        .stream()
        .try_next()
        .await;
    assert_eq!(refused.unwrap_err().kind(), tablesdk::ErrorKind::Input);
}
