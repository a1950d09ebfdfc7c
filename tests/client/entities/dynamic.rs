//! Entities without a struct: every property keeps its exact type, they are accepted wherever a struct is, and they convert to and
//! from structs.

use tablesdk::{DynamicEntity, ErrorKind, Properties, TableEntity, Timestamp, Value};

use crate::{Employee, on_both_transports};

fn every_type() -> Properties {
    let at: Timestamp = "2024-03-15T10:20:30.1234567Z".parse().unwrap();
    let guid = "c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap();
    Properties::from_iter([
        ("z", Value::Binary(b"bytes".to_vec())),
        ("Boolean", Value::Boolean(false)),
        ("DateTime", Value::DateTime(at)),
        ("Double", Value::Double(5.0)),
        ("Infinite", Value::Double(f64::NEG_INFINITY)),
        ("Guid", Value::Guid(guid)),
        ("Int32", Value::Int32(5)),
        ("Int64", Value::Int64(5)),
        ("Größe", Value::from("5")),
    ])
}

on_both_transports! {
    async fn properties_keep_their_types_and_order(subject: Subject) {
        let table = subject.table().await;
        let entity = DynamicEntity::new("p", "r").with_properties(every_type());
        let mut stored = table.insert(&entity).await.unwrap();
        assert_eq!(stored.properties(), &every_type());
        let read = table.get::<DynamicEntity>(("p", "r")).await.unwrap().unwrap();
        assert_eq!(read.properties(), &every_type());
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
        assert_eq!(again.properties().len(), 8);
        assert!(table.delete_stored(&again).await.unwrap());
    }

    async fn dynamic_columns_compare_by_name_and_type(subject: Subject) {
        let table = subject.table().await;
        table.insert(&DynamicEntity::new("p", "r").with_properties(every_type())).await.unwrap();
        let found = table
            .query::<DynamicEntity>()
            .partition("p")
            .filter(|e| e.property("Int64").eq(5_i64) & e.property("Größe").ne("6") & e.property("RowKey").ge("r"))
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
fn a_dynamic_entity_has_no_schema() {
    assert!(DynamicEntity::SCHEMA.properties().is_empty());
}
