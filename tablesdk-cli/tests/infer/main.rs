//! The output of `infer` is compiled here, and reads the entities from which it was inferred.
//!
//! `generated` has the modules as they were printed. Each test fills a table, infers a module and
//! compares it with the one that is compiled. With `TABLESDK_WRITE_MODULES=1`, the tests write the
//! modules instead.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod examples;
mod generated;
mod hostile;
mod random;
mod samples;

use std::path::Path;
use std::{env, fs};

use tablesdk::{
    DynamicEntity, TableClient, TableEntity, TableServiceClient, Value, WritableEntity,
};
use tablesdk_cli::infer::{LeftOut, Sample};
use tablesdk_server::TableServer;

/// An empty table of a server in this process.
async fn table(name: &str) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = TableServiceClient::in_process(&server).table(name);
    table.create_table().await.unwrap();
    (server, table)
}

/// Infers the module of the table, and reads the table with its struct or enum. Returns what was
/// left out.
async fn reads_back<E>(table: &TableClient, module: &str) -> LeftOut
where
    E: TableEntity + WritableEntity + Send + Sync + 'static,
{
    let sample = Sample::read(table, 1_000).await.unwrap();
    let source = sample.module(table.name(), None).unwrap().to_string();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/infer/generated");
    let file = directory.join(module).with_extension("rs");
    if env::var_os("TABLESDK_WRITE_MODULES").is_some() {
        fs::write(&file, &source).unwrap();
    }
    let compiled = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(source, compiled.replace("\r\n", "\n"), "{module}");

    let read = table.query::<E>().collect().await.unwrap();
    assert_eq!(read.len(), sample.len(), "a query returns each entity");
    for entity in read {
        let key = (
            entity.key().partition_key().as_str(),
            entity.key().row_key().as_str(),
        );
        let stored = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
        let written = DynamicEntity::from_entity(&*entity).unwrap();
        assert_eq!((written.partition_key(), written.row_key()), key);
        for (name, value) in stored.properties().iter() {
            let written = written.properties().get(name);
            let is_same = written.is_some_and(|written| is_same(written, value));
            assert!(
                is_same || name.starts_with("Tablesdk"),
                "{name}: {value:?} became {written:?}"
            );
        }
    }
    sample.left_out()
}

/// Returns true if two values are equal, though a struct of integers of two types writes one type.
fn is_same(written: &Value, stored: &Value) -> bool {
    match (written, stored) {
        (Value::Int64(written), Value::Int32(stored)) => *written == i64::from(*stored),
        (Value::Double(written), Value::Int32(stored)) => {
            written.total_cmp(&f64::from(*stored)).is_eq()
        }
        (Value::Double(written), Value::Double(stored)) => written.total_cmp(stored).is_eq(),
        _ => written == stored,
    }
}
