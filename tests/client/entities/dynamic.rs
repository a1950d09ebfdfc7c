//! Entities without a struct: every property keeps its exact type, they are accepted wherever a
//! struct is, and they convert to and from structs.

use std::ops::Bound;

use tablesdk::entity::DynamicColumn;
use tablesdk::query::AccessClass;
use tablesdk::{DynamicEntity, ErrorKind, Properties, Stored, TableEntity, TableServiceClient};
use tablesdk_server::TableServer;

use crate::json::of_every_type;
use crate::{Employee, on_both_transports};

fn every_type() -> Properties {
    let entity = of_every_type().with("Größe", "5");
    entity.properties().clone()
}

on_both_transports! {
    async fn properties_keep_their_types_and_order(subject: Subject) {
        let table = subject.table().await;
        let entity = DynamicEntity::new("p", "r").with_properties(every_type());
        let mut stored = table.insert(&entity).await.unwrap();
        assert_eq!(stored.properties(), &every_type());
        let read = table.get::<DynamicEntity>(("p", "r")).await.unwrap().unwrap();
        assert_eq!(read.properties(), &every_type());
        let names = |properties: &Properties| -> Vec<String> {
            properties.iter().map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(names(read.properties()), names(&every_type()));
        assert_eq!((read.partition_key(), read.row_key()), ("p", "r"));
        // Both the value and what is around it know the version.
        assert_eq!(DynamicEntity::etag(&read), Some(read.etag()));
        assert_eq!(DynamicEntity::timestamp(&read), read.timestamp());
        assert_eq!(*read, *stored);

        stored.properties_mut().remove("Double");
        stored.properties_mut().set("Int32", "now a text");
        table.replace(&mut stored).await.unwrap();
        let again = table.get::<DynamicEntity>(("p", "r")).await.unwrap().unwrap();
        assert_eq!(*again, *stored);
        // The service sorts them at each write but an insert, and the emulator does not.
        assert_eq!(again.properties().len(), 13);
        assert!(table.delete_stored(&again).await.unwrap());
    }

    async fn dynamic_columns_compare_by_name_and_type(subject: Subject) {
        let table = subject.table().await;
        table.insert(&DynamicEntity::new("p", "r").with_properties(every_type())).await.unwrap();
        let found = table
            .query::<DynamicEntity>()
            .partition("p")
            .filter(|e| e.property("Five").eq(5_i64) & e.property("Größe").ne("6") & e.property("RowKey").ge("r"))
            .select(|e| e.properties(["Double", "Missing", "Int32", "Double"]))
            .collect()
            .await
            .unwrap();
        let names: Vec<_> = found[0].properties().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Double", "Int32"]);
        assert_eq!((found[0].partition_key(), found[0].key().row_key().as_str()), ("p", "r"));
        let error = table.query::<DynamicEntity>().filter(|e| e.property("a eq 1 or b").eq(1)).collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(format!("{error:?}").contains("which is not the name of a property"), "{error:?}");
    }

    async fn dynamic_columns_have_ranges_prefixes_and_lists(subject: Subject) {
        let table = subject.table().await;
        for (row_key, town, age) in [("1", "Oslo", 17), ("2", "Bergen", 18), ("3", "Osterøy", 64), ("x", "Oslo", 65)] {
            let person = DynamicEntity::new("p", row_key).with("Town", town).with("Age", age);
            table.insert(&person).await.unwrap();
        }
        let e = DynamicEntity::columns();
        let all = table.query::<DynamicEntity>().collect().await.unwrap();
        let last = all.iter().map(Stored::timestamp).max().unwrap().unwrap();
        let none: [&str; 0] = [];
        for (filter, expected) in [
            (e.property("Age").between(18..65), "23"),
            (e.property("Age").between(..=17), "1"),
            (e.property("Age").between((Bound::Excluded(18), Bound::Unbounded)), "3x"),
            (e.property("Age").between(..), "123x"),
            (e.property("Town").between("Oslo".."Oslp"), "1x"),
            (e.property("Town").starts_with("Os"), "13x"),
            (e.property("Town").starts_with(""), "123x"),
            (e.property("Town").is_in(["Bergen", "Osterøy"]), "23"),
            (e.property("Town").is_in(none), ""),
            (!e.property("Age").is_in([17, 18]), "3x"),
            (e.property("PartitionKey").eq("p") & e.property("RowKey").between("2".."x"), "23"),
            (e.property("PartitionKey").starts_with("p") & e.property("RowKey").is_in(["1", "x"]), "1x"),
            (e.property("Timestamp").between(..=last), "123x"),
            (e.property("Timestamp").gt(last), ""),
        ] {
            let text = filter.to_string();
            let found = table.query::<DynamicEntity>().filter(|_| filter).collect().await.unwrap();
            let found: String = found.iter().map(|it| DynamicEntity::row_key(it)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    async fn structs_and_dynamic_entities_convert(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() };
        let dynamic = DynamicEntity::from_entity(&ada).unwrap();
        table.insert(&dynamic).await.unwrap();
        let read = Employee::find(&table).await.unwrap();
        assert_eq!(*read, ada);
        assert_eq!(dynamic.to_entity::<Employee>().unwrap(), ada);
        let mut wrong = dynamic.clone();
        wrong.properties_mut().set("Age", 36_i64);
        let error = wrong.to_entity::<Employee>().unwrap_err().to_string();
        assert_eq!(error, "property \"Age\": expected Edm.Int32, found Edm.Int64");
        wrong.properties_mut().remove("Age");
        let error = wrong.to_entity::<Employee>().unwrap_err().to_string();
        assert!(error.starts_with("property \"Age\" is missing, expected Edm.Int32"), "{error}");
    }
}

#[test]
fn keys_by_name_are_found_as_keys() {
    let server = TableServer::in_process();
    let table = TableServiceClient::in_process(&server).table("Any");
    for (row_key, expected) in [
        (e("RowKey").eq("1"), AccessClass::Point),
        (e("RowKey").starts_with("1"), AccessClass::RowRange),
        (e("RowKey").between("1"..), AccessClass::RowRange),
    ] {
        let query = table.query::<DynamicEntity>();
        let query = query.filter(|_| e("PartitionKey").eq("p") & row_key);
        assert_eq!(query.explain().unwrap().access(), expected);
    }
}

#[test]
fn dynamic_columns_refuse_what_is_absent() {
    for filter in [
        e("Age").between(None::<i32>..),
        e("Age").is_in([Some(1), None]),
        e("Age").eq(None::<i32>),
    ] {
        let text = filter.to_string();
        assert!(
            text.contains("an absent property satisfies no comparison"),
            "{text}"
        );
    }
}

fn e(name: &str) -> DynamicColumn {
    DynamicEntity::columns().property(name)
}

#[test]
fn a_dynamic_entity_has_no_schema() {
    assert!(DynamicEntity::SCHEMA.properties().is_empty());
}
