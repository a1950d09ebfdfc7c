//! Fields of every kind, and enums.

use serde::{Deserialize, Serialize};
use tablesdk::{EdmType, Guid, TableEntity, TableProperties, Timestamp};

use super::{EMAIL, binary, start, stored};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Address {
    city: String,
}

#[derive(Clone, Debug, PartialEq, TableProperties)]
struct Contact {
    #[table(encrypt(eq))]
    email: String,
    #[table(encrypt)]
    phone: Option<String>,
}

/// Instants as the seconds since 1970.
mod seconds {
    use tablesdk::Timestamp;
    use tablesdk::entity::ValueError;

    pub(super) type Property = i64;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        clippy::unnecessary_wraps,
        reason = "the derive calls it so"
    )]
    pub(super) fn to_property(at: &Timestamp) -> Result<i64, ValueError> {
        Ok(at.unix_ticks() / 10_000_000)
    }

    pub(super) fn from_property(seconds: i64) -> Result<Timestamp, ValueError> {
        Timestamp::from_unix_ticks(seconds * 10_000_000).map_err(ValueError::unwritable)
    }
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Every", partition_key = "Ward", row_key = "{id}")]
struct Every {
    id: String,
    #[table(encrypt(eq))]
    binary: Vec<u8>,
    #[table(encrypt(eq))]
    boolean: bool,
    #[table(encrypt(eq))]
    date_time: Timestamp,
    #[table(encrypt(eq))]
    double: f64,
    #[table(encrypt(eq))]
    guid: Guid,
    #[table(encrypt(eq))]
    int32: i32,
    #[table(encrypt(eq))]
    int64: i64,
    #[table(encrypt(eq))]
    string: String,
    #[table(encrypt, json)]
    address: Address,
    #[table(encrypt, with = "seconds")]
    at: Timestamp,
    #[table(flatten, prefix = "work_")]
    work: Contact,
    #[table(encrypt, default, alias = "older")]
    newer: String,
    #[table(rest)]
    rest: tablesdk::Properties,
}

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

fn every() -> Every {
    Every {
        id: "1".to_owned(),
        binary: vec![0, 255],
        boolean: true,
        date_time: "2024-03-15T10:20:30.1234567Z".parse().unwrap(),
        double: -0.5,
        guid: Guid::from_bytes([7; 16]),
        int32: i32::MIN,
        int64: i64::MAX,
        string: String::new(),
        address: Address {
            city: "London".to_owned(),
        },
        at: "2024-03-15T10:20:30Z".parse().unwrap(),
        work: Contact {
            email: EMAIL.to_owned(),
            phone: None,
        },
        newer: "newer".to_owned(),
        rest: tablesdk::Properties::default(),
    }
}

#[tokio::test]
async fn fields_of_every_kind_are_encrypted() {
    let (_server, table, raw) = start().await;
    let every = every();
    assert_eq!(*table.insert(&every).await.unwrap(), every);
    let found = table.get(Every::key("1")).await.unwrap().unwrap();
    // The second properties are not part of the rest.
    assert_eq!(*found, every);
    let stored = stored(&raw, "1").await;
    let values = stored.properties().iter();
    let plain = values.filter(|(_, value)| value.edm_type() != EdmType::Binary);
    assert_eq!(plain.count(), 1, "{stored:?}");
    assert_eq!(stored.properties().len(), 1 + 12 + 9);
    let e = Every::columns();
    for (filter, expected) in [
        (e.binary.eq(&[0_u8, 255][..]), 1),
        (e.boolean.eq(true), 1),
        (e.date_time.eq(every.date_time), 1),
        (e.double.eq(-0.5), 1),
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
    let mut every = every();
    every.rest.set("string__eq", "of the program");
    table.insert(&every).await.unwrap();
    let by_string = table.query::<Every>().filter(|e| e.string.eq(""));
    let found = by_string.one().await.unwrap().expect("it is found");
    assert_eq!(found.rest, tablesdk::Properties::default());
}
