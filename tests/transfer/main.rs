//! Exports and imports: all data arrives unchanged at the other endpoint, and an interruption has a defined result.

mod awkward;
mod endpoints;
mod export;
mod import;
mod lines;

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use tablesdk::transfer::{ImportMode, ImportReport, Record};
use tablesdk::{DynamicEntity, Error, TableServiceClient, Value};

/// All that an account holds, as lines.
async fn export(service: &TableServiceClient) -> Vec<u8> {
    lines(&records(service).await)
}

/// All that an account holds, as records.
async fn records(service: &TableServiceClient) -> Vec<Record> {
    let chunks: Vec<_> = service.export().stream().try_collect().await.unwrap();
    chunks.into_iter().flat_map(|chunk| chunk.records).collect()
}

fn lines(records: &[Record]) -> Vec<u8> {
    let mut file = Vec::new();
    for record in records {
        record.write_line(&mut file).unwrap();
    }
    file
}

async fn import(service: &TableServiceClient, file: &[u8]) -> Result<ImportReport, Error> {
    let mut import = service.import(ImportMode::UpsertReplace);
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        import.push(Record::read_line(line)?).await?;
    }
    import.finish().await
}

/// The entities of tables by name, in order.
type Content = BTreeMap<String, Vec<DynamicEntity>>;

/// Tables with their entities, but for what an account says of its own: times.
fn content(records: &[Record]) -> Content {
    let mut tables = BTreeMap::<_, Vec<_>>::new();
    for record in records {
        match record {
            Record::Table { name } => drop(tables.entry(name.clone()).or_default()),
            Record::Entity { table, entity } => {
                let plain = DynamicEntity::new(entity.partition_key(), entity.row_key())
                    .with_properties(entity.properties().clone());
                let entities = tables.get_mut(table);
                entities
                    .expect("a table comes before its entities")
                    .push(plain);
            }
            _ => {}
        }
    }
    tables
}

/// Asserts that two accounts hold the same. Doubles are compared by their bits, since a NaN is not equal to itself.
fn assert_same(a: &Content, b: &Content) {
    let text = |content: &Content| {
        let names = content.keys().map(|name| format!("{name:?}"));
        let entities = content.values().flatten();
        names.chain(entities.map(bits)).collect::<Vec<_>>()
    };
    let (a, b) = (text(a), text(b));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a, b);
    }
}

fn bits(entity: &DynamicEntity) -> String {
    let mut text = format!("{:?} {:?}", entity.partition_key(), entity.row_key());
    for (name, value) in entity.properties().iter() {
        match value {
            Value::Double(double) => {
                text.push_str(&format!(" {name}: {:x}", double.to_bits()));
            }
            value => text.push_str(&format!(" {name}: {value:?}")),
        }
    }
    text
}
