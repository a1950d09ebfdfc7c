//! The largest wide entity of the most bytes: 99 parts, and each of them has exactly 1 MiB.

use tablesdk::{DynamicEntity, ErrorKind, Properties, Value};

use super::messages;
use crate::on_both_transports;

const MIB: usize = 1024 * 1024;
const PARTS: usize = 99;
/// The strings of a part that are as long as a string may be. Another value fills what is left.
const STRINGS: usize = 15;

/// An entity whose parts have 1 MiB each, and the last one that many bytes more. The numbers are
/// those of the service: a character has two bytes, and a property 8 and 4 beside its name and its
/// value.
fn largest(letter: &str, more: usize) -> DynamicEntity {
    let (partition, row) = ("ann", "largest");
    let version = 8 + 2 * "TablesdkVersion".len() + 4 + 2 * 16;
    let names = "P0100".len() * (PARTS - 1) + (PARTS - 2);
    let names = 8 + 2 * "TablesdkParts".len() + 4 + 2 * names;
    let property = 8 + 2 * "P0000".len() + 4;
    let mut properties = Properties::new();
    for part in 0..PARTS {
        let of_key = 4 + 2 * (partition.len() + row.len());
        let own = if part == 0 {
            of_key + names
        } else {
            of_key + 2 * "!0123456789abcdef!01".len()
        };
        for index in 0..STRINGS {
            properties.set(format!("P{part:02}{index:02}"), letter.repeat(32 * 1024));
        }
        let rest = MIB - own - version - STRINGS * (property + 64 * 1024) - property;
        let rest = if part == PARTS - 1 { rest + more } else { rest };
        properties.set(format!("P{part:02}99"), Value::Binary(vec![7; rest]));
    }
    DynamicEntity::new(partition, row).with_properties(properties)
}

on_both_transports! {
    async fn an_entity_of_99_mib_is_written_read_replaced_and_deleted(subject: Subject) {
        let table = subject.table().await;
        let maps = table.wide::<DynamicEntity>();
        let stored = async || table.query::<DynamicEntity>().partition("ann").count().await.unwrap();
        let entity = largest("a", 0);
        maps.insert(&entity).await.unwrap();
        assert_eq!(stored().await, PARTS);
        let mut found = maps.get(("ann", "largest")).await.unwrap().unwrap();
        // Not `assert_eq`, which would print 99 MiB.
        assert!(found.properties() == entity.properties());

        let entity = largest("b", 0);
        *found.properties_mut() = entity.properties().clone();
        maps.replace(&mut found).await.unwrap();
        assert_eq!(stored().await, PARTS);
        drop(found);
        let found = maps.get(("ann", "largest")).await.unwrap().unwrap();
        assert!(found.properties() == entity.properties());

        assert!(maps.delete(("ann", "largest")).await.unwrap());
        assert_eq!(stored().await, 0);
    }
}

#[tokio::test]
async fn one_byte_or_property_more_is_refused_before_anything_is_sent() {
    let (server, table) = messages().await;
    let maps = table.wide::<DynamicEntity>();
    let journal = server.journal();
    let with = |name| largest("a", 0).with(name, true);
    for entity in [largest("a", 1), with("P9999More"), with("A")] {
        let error = maps.insert(&entity).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let expected = "the properties fill 100 entities, more than the 99 of a wide entity";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    assert_eq!(journal.requests().count(), 0);
}
