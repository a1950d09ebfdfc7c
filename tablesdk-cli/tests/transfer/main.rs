//! The library: lines, pages and imports, against the bundled server. All data arrives unchanged,
//! and an interruption has a defined result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod awkward;
mod azurite;
mod exact;
mod imports;
mod lines;
mod own;
mod pages;
mod records;
mod sheets;

use std::collections::BTreeMap;

use tablesdk::{DynamicEntity, TableServiceClient, TableServiceClientBuilder, Value};
use tablesdk_cli::import::{Mode, WriteOptions, import};
use tablesdk_cli::lines::Line;
use tablesdk_cli::pages::TablePages;
use tablesdk_cli::records::{ReadOptions, Records};
use tablesdk_server::TableServer;

fn client(server: &TableServer) -> TableServiceClient {
    client_with(server, server.transport())
}

fn client_with<T: tablesdk::transport::Transport + 'static>(
    server: &TableServer,
    transport: T,
) -> TableServiceClient {
    TableServiceClientBuilder::in_process(server)
        .transport(transport)
        .retry(tablesdk::RetryPolicy::none())
        .build()
        .unwrap()
}

/// A server without a socket, and its client.
fn in_process() -> (TableServer, TableServiceClient) {
    let server = TableServer::in_process();
    let service = client(&server);
    (server, service)
}

/// The records of a file in memory.
fn records(file: &[u8]) -> Records<&[u8]> {
    Records::new(file, &ReadOptions::default())
}

/// All tables of an account, or those named, as lines.
async fn export(service: &TableServiceClient, tables: &[String]) -> Vec<u8> {
    let mut file = Vec::new();
    Line::Start.write(&mut file);
    let mut pages = TablePages::open(service, tables, None).await.unwrap();
    while let Some(page) = pages.next().await.unwrap() {
        let table = page.table;
        if page.is_first {
            Line::Table(table.clone()).write(&mut file);
        }
        for entity in page.entities {
            let table = table.clone();
            Line::Entity { table, entity }.write(&mut file);
        }
    }
    Line::End(pages.position().totals).write(&mut file);
    file
}

/// The tables of a file with their entities. Doubles are compared by their bits, since a NaN does
/// not equal itself.
fn content(file: &[u8]) -> BTreeMap<String, Vec<String>> {
    let mut tables = BTreeMap::<_, Vec<_>>::new();
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        match Line::read(line).unwrap() {
            Line::Table(name) => drop(tables.entry(name).or_default()),
            Line::Entity { table, entity } => tables.get_mut(&table).unwrap().push(text(&entity)),
            _ => {}
        }
    }
    tables
}

fn text(entity: &DynamicEntity) -> String {
    let properties = entity.properties().iter();
    let properties = properties.map(|(name, value)| match value {
        Value::Double(double) => format!("{name}: {:x}", double.to_bits()),
        value => format!("{name}: {value:?}"),
    });
    // An upsert may order them anew.
    let mut properties: Vec<_> = properties.collect();
    properties.sort();
    let properties = properties.join(", ");
    let (partition, row) = (entity.partition_key(), entity.row_key());
    format!("{partition:?} {row:?} {properties}")
}

/// Fills an account with every awkward entity, each by a request of its own.
async fn fill(
    service: &TableServiceClient,
    is_wanted: impl Fn(&DynamicEntity) -> bool + Send + Sync,
) {
    for (name, entities) in awkward::tables() {
        let table = service.table(name);
        table.create_table().await.unwrap();
        for entity in entities.iter().filter(|entity| is_wanted(entity)) {
            table.insert(entity).await.unwrap();
        }
    }
}

#[tokio::test]
async fn awkward_entities_arrive_unchanged() {
    let (_server, from) = in_process();
    fill(&from, |_| true).await;
    let file = export(&from, &[]).await;
    let text = String::from_utf8_lossy(&file);
    assert!(text.contains(r#","Timestamp":"20"#) && !text.contains("Timestamp@odata.type"));
    let expected = content(&file);
    let entities: usize = expected.values().map(Vec::len).sum();
    assert_eq!((expected.len(), entities > 150), (3, true));
    for (mode, batch_size) in [(Mode::Insert, 100), (Mode::Merge, 1), (Mode::Replace, 7)] {
        let (_server, to) = in_process();
        let mut options = WriteOptions::default();
        (options.mode, options.batch_size) = (mode, batch_size);
        let report = import(&to, records(&file), &options, 0, |_, _| {}).await;
        assert!(
            report.error.is_none() && report.failures.is_empty(),
            "{report:?}"
        );
        assert_eq!(report.totals.entities, entities as u64);
        assert_eq!(content(&export(&to, &[]).await), expected);
    }
}

/// Run with an emulator by `tests/interop/run.sh --all`, which sets the variable.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another endpoint: tests/interop/run.sh --all"]
async fn another_endpoint_and_back() {
    let text = std::env::var("TABLESDK_TRANSFER_ENDPOINT").unwrap();
    let other = TableServiceClient::from_connection_string(&text).unwrap();
    // Single requests transfer everything; batches all but what Azurite misreads in batches.
    for batch_size in [1, 100] {
        let (_server, from) = in_process();
        fill(&from, |entity| {
            (batch_size == 1 || !is_misread_in_batches(entity))
                // Azurite 3.35.0 loses the sign of -0.0.
                && entity.properties().get("DoubleMinusZero").is_none()
        })
        .await;
        let file = export(&from, &[]).await;
        let expected = content(&file);
        let names: Vec<_> = expected.keys().cloned().collect();
        for name in &names {
            other.table(name).delete_table().await.unwrap();
        }
        let mut options = WriteOptions::default();
        options.batch_size = batch_size;
        let report = import(&other, records(&file), &options, 0, |_, _| {}).await;
        assert!(
            report.error.is_none() && report.failures.is_empty(),
            "{report:?}"
        );
        assert_eq!(content(&export(&other, &names).await), expected);
        for name in &names {
            other.table(name).delete_table().await.unwrap();
        }
    }
}

/// Azurite 3.35.0 cuts the keys in the URL of a change at commas, and stores the entity under
/// another key. It treats U+2028 and U+0085 as the end of a line of the batch, and rejects the rest
/// of the entity.
fn is_misread_in_batches(entity: &DynamicEntity) -> bool {
    let has_line_separator = |value: &Value| match value {
        Value::String(text) => text.contains(['\u{2028}', '\u{85}']),
        _ => false,
    };
    let mut values = entity.properties().iter();
    entity.row_key().contains(',') || values.any(|(_, value)| has_line_separator(value))
}
