//! Tables whose names and types no Rust program would have chosen.

use tablesdk::{DynamicEntity, Guid, Timestamp, Value};
use tablesdk_cli::infer::Sample;

use crate::generated::{mixed, names, types, wide, words};
use crate::{reads_back, table};

#[tokio::test]
async fn names_that_are_no_fields_of_rust() {
    let (_server, table) = table("Names").await;
    for row in ["a", "b"] {
        let mut entity = DynamicEntity::new("p", row);
        for (number, name) in (1..).zip(NAMES) {
            entity.properties_mut().set(*name, number);
        }
        table.insert(&entity).await.unwrap();
    }
    reads_back::<names::Name>(&table, "names").await;
}

/// Keywords, names that meet, names of the derive, and characters that act on a reader.
const NAMES: &[&str] = &[
    "type",
    "Self",
    "self",
    "crate",
    "super",
    "_",
    "__",
    "_1",
    "async",
    "Async",
    "ASYNC",
    "gen",
    "Name",
    "name",
    "NAME",
    "FirstName",
    "firstName",
    "first_name",
    "First_Name",
    "HTTPStatus",
    "HttpStatus",
    "ETag",
    "etag",
    "timestamp",
    "partition_key",
    "PartitionKey_",
    "row_key",
    "rowKey",
    "other",
    "EntityTypes",
    "TablesdkOwn",
    "Größe",
    "größe",
    "Grosse",
    "名前",
    "啊",
    "a\u{202e}b",
    "a\u{202e}b__n",
    "a\u{202e}b__sha",
    "a\u{200d}b",
    "Å",
    "A\u{30a}",
    "x\u{203f}y",
    "A_very_long_name_of_a_property_that_no_line_of_source_could_contain_together_with_its_attribute_in_full",
];

#[tokio::test]
async fn kinds_with_names_that_are_no_types() {
    let (_server, table) = table("Types").await;
    for (number, kind) in (0..).zip([
        "Option",
        "String",
        "Self",
        "match",
        "a \"b\" {c}",
        "Row",
        "Types",
        "1st",
        "🦀",
        "Timestamp",
        "PartitionKey",
        "Other",
    ]) {
        let entity = DynamicEntity::new("p", format!("{number:02}"))
            .with("row-kind_".replace('-', "_"), kind);
        let own = format!("of_{number}");
        table
            .insert(&entity.with(own, Timestamp::UNIX_EPOCH))
            .await
            .unwrap();
    }
    reads_back::<types::TypeRow>(&table, "types").await;
}

#[tokio::test]
async fn row_keys_with_words_of_rust() {
    let (_server, table) = table("Words").await;
    for word in [
        "self",
        "type",
        "clone",
        "from",
        "rows",
        "timestamp",
        "Option",
        "E",
    ] {
        for number in [1, 22] {
            let entity = DynamicEntity::new("p", format!("{word}_{number:03}"));
            let entity = entity.with(format!("Of{word}"), number);
            table.insert(&entity.with(word, number)).await.unwrap();
        }
    }
    reads_back::<words::WordRow>(&table, "words").await;
}

#[tokio::test]
async fn properties_of_several_types() {
    let (_server, table) = table("Mixed").await;
    let guid: Guid = "0e4a1b62-90e3-4c1e-8f6f-2b9a1f6c7d10".parse().unwrap();
    for (row, values) in (0..).zip([
        [
            Value::Int32(1),
            Value::Int32(1),
            Value::Int32(1),
            Value::Boolean(true),
        ],
        [
            Value::Int64(1 << 40),
            Value::Double(1.5),
            Value::String("many".into()),
            Value::Guid(guid),
        ],
        [
            Value::Int32(-1),
            Value::Double(f64::NAN),
            Value::Double(-0.0),
            Value::Binary(vec![1]),
        ],
    ]) {
        let mut entity = DynamicEntity::new("p", format!("{row:03}"));
        for (name, value) in ["Integers", "Numbers", "Amount", "Anything"]
            .into_iter()
            .zip(values)
        {
            entity.properties_mut().set(name, value);
        }
        if row > 0 {
            entity.properties_mut().set(
                "OptionalNumber",
                if row == 1 {
                    Value::Int32(7)
                } else {
                    Value::Double(0.5)
                },
            );
        }
        table.insert(&entity).await.unwrap();
    }
    reads_back::<mixed::Mixed>(&table, "mixed").await;
}

#[tokio::test]
async fn more_properties_than_a_struct_may_have() {
    let (_server, table) = table("Wide").await;
    for row in 0..3 {
        let mut entity = DynamicEntity::new("p", format!("{row:03}"));
        entity.properties_mut().set("Shared", "x");
        for number in 0..100 {
            entity
                .properties_mut()
                .set(format!("Of{row}_{number}"), true);
        }
        table.insert(&entity).await.unwrap();
    }
    reads_back::<wide::Wide>(&table, "wide").await;
}

#[test]
fn a_property_that_no_field_can_have_is_among_the_others() {
    let mut sample = Sample::default();
    let entity = DynamicEntity::new("p", "r").with("Name", "Ada");
    // Not all services refuse such names.
    sample.add(
        &entity
            .with("a-b", 1)
            .with("x²", true)
            .with("\u{202e}\n`", 1),
    );
    let module = sample.module("Odd", None).unwrap().to_string();
    syn::parse_file(&module).unwrap();
    assert!(module.contains("pub other: Properties,"), "{module}");
    for line in [
        "/// * `a-b`: `Edm.Int32` in 1\n",
        "/// * `x²`: `Edm.Boolean` in 1\n",
        "/// * `\\u{202e}\\n``: `Edm.Int32` in 1\n",
    ] {
        assert!(module.contains(line), "{module}");
    }
}
