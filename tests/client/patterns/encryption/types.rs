//! Fields of every kind, and enums.

use tablesdk::{EdmType, Properties, TableEntity};

use super::every::{Every, every};
use super::{EMAIL, binary, start, stored};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Plain", partition_key = "Ward", row_key = "{id}")]
struct Plain {
    id: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[expect(clippy::large_enum_variant, reason = "a test")]
enum Either {
    Every(Every),
    Plain(Plain),
}

#[tokio::test]
async fn fields_of_every_kind_are_encrypted() {
    let (_server, table, raw) = start().await;
    let every = Every {
        int32: i32::MIN,
        int64: i64::MAX,
        string: String::new(),
        ..every("1")
    };
    assert_eq!(*table.insert(&every).await.unwrap(), every);
    let found = table.get(Every::key("1")).await.unwrap().unwrap();
    // The second properties are not part of the rest.
    assert_eq!(*found, every);
    let stored = stored(&raw, "1").await;
    let values = stored.properties().iter();
    let plain = values.filter(|(_, value)| value.edm_type() != EdmType::Binary);
    assert_eq!(plain.count(), 2, "{stored:?}");
    assert_eq!(stored.properties().len(), 2 + 12 + 9);
    let e = Every::columns();
    for (filter, expected) in [
        (e.binary.eq(&every.binary), 1),
        (e.boolean.eq(true), 1),
        (e.date_time.eq(every.date_time), 1),
        (e.double.eq(every.double), 1),
        (e.guid.eq(every.guid), 1),
        (e.int32.eq(i32::MIN), 1),
        (e.int64.is_in([1, i64::MAX]), 1),
        (e.string.eq(""), 1),
        (e.work.email.eq(EMAIL) & !e.string.eq("x"), 1),
        (e.string.eq("x") | e.int32.is_in([0; 0]), 0),
    ] {
        let found = table.query::<Every>().filter(|_| filter.clone());
        assert_eq!(found.count().await.unwrap(), expected, "{filter:?}");
    }
    let selected = table.query::<Every>();
    let selected = selected.select(|e| (e.address, e.at, e.work.email, e.newer));
    let seconds = every.at.unix_ticks() / 10_000_000;
    let Every {
        address,
        work,
        newer,
        ..
    } = every.clone();
    assert_eq!(
        selected.one().await.unwrap(),
        Some((address, seconds, work.email, newer))
    );

    // As a variant, beside entities that encrypt nothing.
    let plain = Plain {
        id: "2".to_owned(),
        name: "Bob".to_owned(),
    };
    table.insert(&Either::Plain(plain.clone())).await.unwrap();
    let changed = Either::Every(every.clone());
    table.upsert_replace(&changed).await.unwrap();
    let both = table.query::<Either>().values().collect().await.unwrap();
    assert_eq!(both, [Either::Every(every), Either::Plain(plain)]);
}

#[tokio::test]
async fn an_alias_is_decrypted_under_its_own_name() {
    #[derive(TableEntity)]
    #[table(partition_key = "Ward", row_key = "{id}")]
    struct Before {
        id: String,
        #[table(encrypt)]
        older: String,
    }

    #[derive(Debug, TableEntity)]
    #[table(partition_key = "Ward", row_key = "{id}")]
    struct After {
        id: String,
        #[table(encrypt, alias = "older")]
        newer: String,
    }

    let (_server, table, _) = start().await;
    let before = Before {
        id: "1".to_owned(),
        older: "value".to_owned(),
    };
    table.insert(&before).await.unwrap();
    let after = table.modify(After::key("1"), |_| Ok(())).await.unwrap();
    assert_eq!(after.newer, "value");
    let after = table.get(After::key("1")).await.unwrap().unwrap();
    assert_eq!((after.id.as_str(), after.newer.as_str()), ("1", "value"));
}

/// Otherwise the service would see which entities have one value in both.
#[tokio::test]
async fn equal_values_of_two_properties_have_different_second_properties() {
    #[derive(TableEntity)]
    #[table(partition_key = "Ward", row_key = "{id}")]
    struct Account {
        id: String,
        #[table(encrypt(eq))]
        payer: String,
        #[table(encrypt(eq))]
        payee: String,
    }

    let (_server, table, raw) = start().await;
    let account = Account {
        id: "1".to_owned(),
        payer: "ada".to_owned(),
        payee: "ada".to_owned(),
    };
    table.insert(&account).await.unwrap();
    let stored = stored(&raw, "1").await;
    assert_ne!(binary(&stored, "payer__eq"), binary(&stored, "payee__eq"));
}

#[tokio::test]
async fn the_rest_does_not_replace_a_second_property() {
    let (_server, table, _) = start().await;
    let mut every = every("1");
    every.rest.set("string__eq", "of the program");
    table.insert(&every).await.unwrap();
    let by_string = table
        .query::<Every>()
        .filter(|e| e.string.eq(&every.string));
    let found = by_string.one().await.unwrap().expect("it is found");
    assert_eq!(found.rest, Properties::default());
}
