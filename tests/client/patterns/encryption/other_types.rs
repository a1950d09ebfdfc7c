//! Properties that were decrypted for an enum are not stored in plain text by way of a variant or a
//! field that holds any property.

use tablesdk::{DynamicEntity, Error, ErrorKind, Properties, TableClient, TableEntity};

use super::{binary, start, stored};

#[derive(Clone, Debug, TableEntity)]
#[table(entity_type = "Patient", partition_key = "Ward", row_key = "{id}")]
struct Patient {
    id: String,
    #[table(encrypt)]
    number: String,
}

/// An entity of a newer program.
#[derive(Clone, Debug, TableEntity)]
#[table(entity_type = "Newborn", partition_key = "Ward", row_key = "{id}")]
struct Newborn {
    id: String,
    #[table(encrypt)]
    number: String,
    weight: i32,
}

#[derive(Clone, Debug, TableEntity)]
#[table(entity_type = "Visitor", partition_key = "Ward", row_key = "{id}")]
struct Visitor {
    id: String,
    visits: i32,
    #[table(rest)]
    rest: Properties,
}

#[derive(Clone, Debug, TableEntity)]
enum Person {
    Patient(Patient),
    Visitor(Visitor),
    #[table(other)]
    Other(DynamicEntity),
}

fn assert_refused(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Input);
    let message = "property \"number\" was encrypted where it was read, and would be stored in plain text: write it as its own type, or remove it";
    assert!(error.to_string().ends_with(message), "{error}");
}

async fn assert_encrypted(raw: &TableClient) {
    assert!(binary(&stored(raw, "1").await, "number").len() > 46);
}

#[tokio::test]
async fn an_entity_of_an_unknown_type_stays_encrypted() {
    let (_server, table, raw) = start().await;
    let newborn = Newborn {
        id: "1".to_owned(),
        number: "12-345".to_owned(),
        weight: 3_500,
    };
    table.insert(&newborn).await.unwrap();
    let found = table.get::<Person>(("Ward", "1")).await.unwrap().unwrap();
    let Person::Other(mut other) = found.into_inner() else {
        panic!("it is of a type that the enum does not have");
    };
    other.properties_mut().set("weight", 3_600);
    assert_refused(&table.upsert_replace(&other).await.unwrap_err());
    assert_encrypted(&raw).await;
    // The enum encrypts it again.
    let other = Person::Other(other);
    table.upsert_replace(&other).await.unwrap();
    assert_encrypted(&raw).await;
    let read = table.get(Newborn::key("1")).await.unwrap().unwrap();
    assert_eq!((read.number.as_str(), read.weight), ("12-345", 3_600));
    // What was not encrypted can be stored alone.
    let Person::Other(mut other) = other else {
        unreachable!()
    };
    other.properties_mut().remove("number");
    table.upsert_merge(&other).await.unwrap();
}

#[tokio::test]
async fn the_rest_of_another_variant_stays_encrypted() {
    let (_server, table, raw) = start().await;
    let patient = Patient {
        id: "1".to_owned(),
        number: "12-345".to_owned(),
    };
    table.insert(&patient).await.unwrap();
    let visitor = Visitor {
        id: "1".to_owned(),
        visits: 1,
        rest: Properties::new(),
    };
    table.upsert_merge(&visitor).await.unwrap();
    let found = table.get::<Person>(("Ward", "1")).await.unwrap().unwrap();
    let Person::Visitor(visitor) = found.into_inner() else {
        panic!("it has the type of the last write");
    };
    assert_refused(&table.upsert_replace(&visitor).await.unwrap_err());
    table
        .upsert_replace(&Person::Visitor(visitor))
        .await
        .unwrap();
    assert_encrypted(&raw).await;
    // As its own type, it is read as it is stored.
    let visitor = table.get(Visitor::key("1")).await.unwrap().unwrap();
    table.upsert_replace(&*visitor).await.unwrap();
    assert_encrypted(&raw).await;
}
