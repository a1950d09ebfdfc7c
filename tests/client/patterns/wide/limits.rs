//! The largest wide entities, and one more.

use harness::Subject;
use tablesdk::entity::ValueRef;
use tablesdk::entity::{EntityError, EntityProblem, PropertyReader, PropertyWriter, Schema};
use tablesdk::key::EntityKey;
use tablesdk::wide::WideEntity;
use tablesdk::{DynamicEntity, ErrorKind, Properties, RetryPolicy, Value};

use super::{messages, numbers, rows};
use crate::on_both_transports;

/// That many properties. A map takes long to fill: it looks for each name.
#[derive(Debug, PartialEq)]
struct Numbers(usize);

impl WideEntity for Numbers {
    type Columns = ();

    const SCHEMA: Schema = Schema::new("Numbers", &[]);

    fn columns() {}

    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError> {
        let mut count = 0;
        while let Some(property) = reader.next_property() {
            assert_eq!(property.name(), format!("P{count:05}"));
            count += 1;
        }
        Ok(Self(count))
    }

    fn entity_key(&self) -> Result<EntityKey, EntityError> {
        Ok(EntityKey::new("ann", "numbers")?)
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        (0..self.0)
            .try_for_each(|index| writer.value(&format!("P{index:05}"), &ValueRef::Boolean(true)))
    }
}

/// An entity whose size, as the service counts it, is that many bytes if it is stored as one.
fn of_size(bytes: usize) -> DynamicEntity {
    let (partition, row) = ("ann", "bytes");
    let own = 8 + 2 * "TablesdkVersion".len() + 4 + 2 * 16;
    let mut left = bytes - (4 + 2 * (partition.len() + row.len())) - own;
    let mut properties = Properties::new();
    for index in 0.. {
        let name = format!("P{index:02}");
        let head = 8 + 2 * name.len() + 4;
        let value = (left - head).min(64 * 1024);
        properties.set(name, Value::Binary(vec![7; value]));
        left -= head + value;
        if left == 0 {
            break;
        }
    }
    DynamicEntity::new(partition, row).with_properties(properties)
}

on_both_transports! {
    async fn a_wide_entity_has_at_most_24848_properties(subject: Subject) {
        let table = subject.service.table("Numbers");
        table.create_table().await.unwrap();
        let numbers = table.wide::<Numbers>();
        let stored = async || table.query::<DynamicEntity>().partition("ann").count().await.unwrap();
        for (count, parts) in [(251, 1), (252, 2), (501, 2), (502, 3), (24_848, 99)] {
            numbers.upsert_replace(&Numbers(count)).await.unwrap();
            assert_eq!(stored().await, parts, "{count}");
            let found = numbers.get(("ann", "numbers")).await.unwrap();
            assert_eq!(found.unwrap().into_inner(), Numbers(count));
        }
        let error = numbers.upsert_replace(&Numbers(24_849)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().ends_with("the properties fill 100 entities, more than the 99 of a wide entity"), "{error}");
        // In the last transaction, the intent, the head and the siblings are 100 changes.
        numbers.upsert_replace(&Numbers(24_848)).await.unwrap();
        assert_eq!(stored().await, 99);
        assert!(numbers.delete(("ann", "numbers")).await.unwrap());
        assert_eq!(stored().await, 0);
    }

    async fn a_part_has_at_most_1_mib(subject: Subject) {
        let table = subject.service.table("Bytes");
        table.create_table().await.unwrap();
        let maps = table.wide::<DynamicEntity>();
        for (bytes, parts) in [(1024 * 1024, 1), (1024 * 1024 + 1, 2)] {
            let entity = of_size(bytes);
            maps.upsert_replace(&entity).await.unwrap();
            let found = maps.get(("ann", "bytes")).await.unwrap().unwrap();
            assert_eq!(found.properties(), entity.properties());
            let stored = table.query::<DynamicEntity>().partition("ann").count().await.unwrap();
            assert_eq!(stored, parts, "{bytes}");
        }
    }

    async fn a_row_key_leaves_room_for_those_of_siblings(subject: Subject) {
        let table = subject.service.table("Keys");
        table.create_table().await.unwrap();
        let maps = table.wide::<DynamicEntity>();
        for (units, count) in [(492, 252), (512, 251)] {
            let entity = numbers(&"k".repeat(units), count);
            maps.insert(&entity).await.unwrap();
            let found = maps.get(("ann", "k".repeat(units))).await.unwrap().unwrap();
            assert_eq!(found.properties(), entity.properties());
        }
        let error = maps.insert(&numbers(&"k".repeat(493), 252)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("513"), "{error}");
    }
}

/// A write is one transaction for as long as its request has 4 MiB.
#[tokio::test]
async fn a_request_has_at_most_4_mib() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let maps = table.wide::<DynamicEntity>();
    let insert = async |row: &str, more: usize| {
        // A character takes two bytes of an entity, and one of the request.
        let properties = (0..127).map(|index| (format!("P{index:03}"), "x".repeat(32 * 1024)));
        let properties = properties.chain([("P127".to_owned(), "x".repeat(more))]);
        let entity = DynamicEntity::new("ann", row).with_properties(properties.collect());
        let before = proxy.sent().len();
        maps.insert(&entity).await.unwrap();
        let sent = proxy.sent().into_iter().skip(before);
        let sent: Vec<_> = sent.map(|request| request.body.len()).collect();
        assert!(maps.get(("ann", row)).await.unwrap().is_some());
        sent
    };
    let first = insert("a", 100).await;
    let room = 4 * 1024 * 1024 - first[0];
    assert_eq!((first.len(), room > 0), (1, true), "{first:?}");
    assert_eq!(insert("b", 100 + room).await, [4 * 1024 * 1024]);
    assert_eq!(insert("c", 101 + room).await.len(), 2);
}

#[tokio::test]
async fn a_property_of_the_client_is_not_one_of_the_entity() {
    let (server, table) = messages().await;
    let maps = table.wide::<DynamicEntity>();
    for name in ["TablesdkVersion", "TablesdkParts"] {
        let entity = DynamicEntity::new("ann", "1").with(name, 1);
        let error = maps.insert(&entity).await.unwrap_err();
        let problem = error.downcast_ref::<EntityError>().unwrap().problem();
        let is_its = matches!(problem, EntityProblem::Value { property, .. } if property == name);
        assert!(is_its, "{error}");
    }
    assert_eq!(rows(&server).len(), 0);
}
