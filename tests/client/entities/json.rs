//! Results of a web handler: entities, pages, keys and ETags as JSON, by serde.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tablesdk::entity::Exact;
use tablesdk::key::{Desc, Escaped, Shard};
use tablesdk::query::Page;
use tablesdk::{DynamicEntity, ETag, Guid, Properties, TableEntity, Timestamp, Value};

use super::*;

/// An entity as its handler returns it, in camel case.
#[derive(Debug, Clone, PartialEq, Serialize, TableEntity)]
#[table(rename_all = "PascalCase")]
#[serde(rename_all = "camelCase")]
struct Claim {
    #[table(partition_key)]
    claimed_by: String,
    #[table(row_key)]
    id: String,
    amount_paid: Option<f64>,
    paid_at: Timestamp,
    reference: Guid,
    #[table(rest)]
    #[serde(flatten)]
    rest: Properties,
}

fn claim(id: &str) -> Claim {
    Claim {
        claimed_by: "jonesj".to_owned(),
        id: id.to_owned(),
        amount_paid: Some(12.5),
        paid_at: "2024-03-15T10:20:30.5Z".parse().unwrap(),
        reference: Guid::default(),
        rest: [("Approved", true)].into_iter().collect(),
    }
}

fn json_of_claim(id: &str) -> serde_json::Value {
    json!({
        "claimedBy": "jonesj",
        "id": id,
        "amountPaid": 12.5,
        "paidAt": "2024-03-15T10:20:30.5Z",
        "reference": "00000000-0000-0000-0000-000000000000",
        "Approved": true,
    })
}

on_both_transports! {
async fn a_page_is_written_with_its_token_and_read_back(subject: Subject) {
    let table = subject.table().await;
    for id in ["1", "2"] {
        table.insert(&claim(id)).await.unwrap();
    }
    let query = || table.query::<Claim>().partition("jonesj").page_size(1);
    let first = query().page(None).await.unwrap();
    let next = first.next.clone().expect("there is a second claim");
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!(json, json!({ "items": [json_of_claim("1")], "next": next.to_string() }));

    let read: Page<serde_json::Value> = serde_json::from_value(json).unwrap();
    let second = query().page(read.next).await.unwrap();
    assert_eq!(second.items[0].id, "2");
    let last = table.query::<Claim>().partition("jonesj").page(None).await.unwrap();
    let json = serde_json::to_value(last).unwrap();
    assert_eq!(json, json!({ "items": [json_of_claim("1"), json_of_claim("2")], "next": null }));
}

async fn plain_json_has_the_timestamp_and_no_etag(subject: Subject) {
    let table = subject.table().await;
    let stored = table.insert(&DynamicEntity::new("Sales", "1")).await.unwrap();
    let timestamp = stored.timestamp().unwrap();
    assert_eq!(
        serde_json::to_value(&stored).unwrap(),
        json!({ "PartitionKey": "Sales", "RowKey": "1", "Timestamp": timestamp.to_string() })
    );
}

async fn the_exact_form_loses_nothing(subject: Subject) {
    let table = subject.table().await;
    table.insert(&of_every_type()).await.unwrap();
    let stored = table.get::<DynamicEntity>(("Sales", "1")).await.unwrap().unwrap();
    assert!(stored.etag() == stored.clone().into_inner().etag().unwrap());

    let text = serde_json::to_string(&stored.exact()).unwrap();
    let Exact(read) = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *stored, "{text}");
    // A negative zero equals a positive one, but has another text.
    assert_eq!(serde_json::to_string(&read.exact()).unwrap(), text);
    // It is what the table takes, too.
    table.replace_if(&read, ETag::ANY).await.unwrap();
}
}

/// NaN is not in it: it equals nothing.
pub(crate) fn of_every_type() -> DynamicEntity {
    let at: Timestamp = "2024-03-15T10:20:30.1234567Z".parse().unwrap();
    DynamicEntity::new("Sales", "1")
        .with("Binary", b"binary".to_vec())
        .with("Boolean", true)
        .with("DateTime", at)
        .with("Double", 3.0)
        .with("Small", 5e-324)
        .with("NegativeZero", -0.0)
        .with("Infinity", f64::NEG_INFINITY)
        .with("Guid", Guid::from_bytes([7; 16]))
        .with("Int32", -5)
        .with("Int64", i64::MAX)
        .with("Five", 5_i64)
        .with("String", "\"ä\" 7")
        .with("LikeADate", "2024-03-15T10:20:30Z")
}

#[test]
fn a_dynamic_entity_is_plain_json() {
    let text = serde_json::to_string(&of_every_type()).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"PartitionKey":"Sales","RowKey":"1","Binary":"YmluYXJ5","Boolean":true,"#,
            r#""DateTime":"2024-03-15T10:20:30.1234567Z","Double":3.0,"Small":5e-324,"NegativeZero":-0.0,"#,
            r#""Infinity":"-Infinity","Guid":"07070707-0707-0707-0707-070707070707","Int32":-5,"#,
            r#""Int64":9223372036854775807,"Five":5,"String":"\"ä\" 7","LikeADate":"2024-03-15T10:20:30Z"}"#
        )
    );
}

#[test]
fn the_exact_form_is_that_of_the_service() {
    let text = serde_json::to_string(&Exact(of_every_type())).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"PartitionKey":"Sales","RowKey":"1","Binary@odata.type":"Edm.Binary","Binary":"YmluYXJ5","#,
            r#""Boolean":true,"DateTime@odata.type":"Edm.DateTime","DateTime":"2024-03-15T10:20:30.1234567Z","#,
            r#""Double@odata.type":"Edm.Double","Double":3.0,"Small@odata.type":"Edm.Double","Small":5e-324,"#,
            r#""NegativeZero@odata.type":"Edm.Double","NegativeZero":-0.0,"#,
            r#""Infinity@odata.type":"Edm.Double","Infinity":"-Infinity","#,
            r#""Guid@odata.type":"Edm.Guid","Guid":"07070707-0707-0707-0707-070707070707","Int32":-5,"#,
            r#""Int64@odata.type":"Edm.Int64","Int64":"9223372036854775807","Five@odata.type":"Edm.Int64","Five":"5","#,
            r#""String":"\"ä\" 7","LikeADate":"2024-03-15T10:20:30Z"}"#
        )
    );
}

#[test]
fn the_exact_form_keeps_a_nan() {
    let entity = DynamicEntity::new("Sales", "1").with("NaN", f64::NAN);
    let text = serde_json::to_string(&entity.exact()).unwrap();
    let Exact(read) = serde_json::from_str(&text).unwrap();
    let Some(Value::Double(number)) = read.properties().get("NaN") else {
        panic!("{text}");
    };
    assert!(number.is_nan());
}

#[test]
fn a_malformed_exact_form_is_refused() {
    for (text, reason) in [
        (r#"{"RowKey":"1"}"#, "PartitionKey"),
        (r#"{"PartitionKey":"a","RowKey":1}"#, "RowKey"),
        (r#"{"PartitionKey":"a","RowKey":"1","RowKey":"2"}"#, "twice"),
        (r#"{"PartitionKey":"a","RowKey":"1","N":[1]}"#, "N"),
        (r#"{"PartitionKey":"a","RowKey":"1","N":{}}"#, "N"),
        (
            r#"{"PartitionKey":"a","RowKey":"1","N@odata.type":"Edm.Int32","N":"x"}"#,
            "Int32",
        ),
        (
            r#"{"PartitionKey":"a","RowKey":"1","N@odata.type":"Edm.Duration","N":"x"}"#,
            "Edm.Duration",
        ),
        (r#"{"PartitionKey":"a","RowKey":"1","odata.etag":"*"}"#, "*"),
        ("[]", "an entity with both keys"),
    ] {
        let error = serde_json::from_str::<Exact>(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn names_that_mean_something_else_are_not_written() {
    let named = |name| DynamicEntity::new("Sales", "1").with(name, 1);
    for name in ["RowKey", "Timestamp", "N@odata.type", "odata.etag"] {
        let entity = named(name);
        assert!(serde_json::to_string(&entity).is_err(), "{name:?}");
        assert!(serde_json::to_string(&entity.exact()).is_err(), "{name:?}");
    }
    // What a backend with other rules has stored.
    for name in ["first-name", "", "@"] {
        let entity = named(name);
        let text = serde_json::to_string(&entity.exact()).unwrap();
        assert_eq!(serde_json::from_str::<Exact>(&text).unwrap().0, entity);
    }
}

#[test]
fn parts_of_keys_are_written_and_read() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Parts {
        at: Desc<Timestamp>,
        path: Escaped<String>,
        shard: Shard<16>,
    }
    let parts = Parts {
        at: Desc("2024-03-15T10:20:30Z".parse().unwrap()),
        path: Escaped("a/b".to_owned()),
        shard: Shard::new(7).unwrap(),
    };
    let json = json!({ "at": "2024-03-15T10:20:30Z", "path": "a/b", "shard": 7 });
    assert_eq!(serde_json::to_value(&parts).unwrap(), json);
    let read = serde_json::from_value::<Parts>(json.clone());
    assert_eq!(read.unwrap(), parts);
    for (member, value) in [("at", json!("yesterday")), ("shard", json!(16))] {
        let mut json = json.clone();
        json[member] = value;
        serde_json::from_value::<Parts>(json).unwrap_err();
    }
}
