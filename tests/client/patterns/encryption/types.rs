//! Fields of every kind, and enums.

use harness::client;
use serde::{Deserialize, Serialize};
use tablesdk::{DynamicEntity, EdmType, Guid, TableEntity, TableProperties, Timestamp};
use tablesdk_server::TableServer;

use super::{binary, keyring};

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
#[table(entity_type = "Every")]
struct Every {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
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
#[table(entity_type = "Plain")]
struct Plain {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
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
        department: "Ward".to_owned(),
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
            email: "ada@contoso.com".to_owned(),
            phone: None,
        },
        newer: "newer".to_owned(),
        rest: tablesdk::Properties::default(),
    }
}

#[tokio::test]
async fn fields_of_every_kind_are_encrypted() {
    let server = TableServer::in_process();
    let raw = client(&server).table("Tests");
    raw.create_table().await.unwrap();
    let table = raw.with_encryption(keyring());
    let every = every();
    assert_eq!(*table.insert(&every).await.unwrap(), every);
    let found = table.get(Every::key("Ward", "1")).await.unwrap().unwrap();
    assert_eq!(
        *found, every,
        "the second properties are not part of the rest"
    );
    let stored = raw
        .get::<DynamicEntity>(("Ward", "1"))
        .await
        .unwrap()
        .unwrap();
    let plain: Vec<_> = stored
        .properties()
        .iter()
        .filter(|(_, value)| value.edm_type() != EdmType::Binary)
        .collect();
    assert_eq!(plain.len(), 1, "{plain:?}");
    assert_eq!(stored.properties().iter().count(), 1 + 12 + 9);
    let query = || table.query::<Every>().partition("Ward");
    let counts = [
        query()
            .filter(|e| e.binary.eq(&[0_u8, 255][..]))
            .count()
            .await,
        query().filter(|e| e.boolean.eq(true)).count().await,
        query()
            .filter(|e| e.date_time.eq(every.date_time))
            .count()
            .await,
        query().filter(|e| e.double.eq(-0.5)).count().await,
        query().filter(|e| e.guid.eq(every.guid)).count().await,
        query().filter(|e| e.int32.eq(i32::MIN)).count().await,
        query()
            .filter(|e| e.int64.is_in([1, i64::MAX]))
            .count()
            .await,
        query().filter(|e| e.string.eq("")).count().await,
        query()
            .filter(|e| e.work.email.eq("ada@contoso.com") & !e.string.eq("x"))
            .count()
            .await,
    ];
    assert!(
        counts.iter().all(|count| *count.as_ref().unwrap() == 1),
        "{counts:?}"
    );
    assert_eq!(
        query()
            .filter(|e| e.string.eq("x") | e.int32.is_in([0; 0]))
            .count()
            .await
            .unwrap(),
        0
    );
    let selected = query().select(|e| (e.address, e.at, e.work.email, e.newer));
    let selected = selected.one().await.unwrap().unwrap();
    assert_eq!(
        selected,
        (
            every.address.clone(),
            every.at.unix_ticks() / 10_000_000,
            every.work.email.clone(),
            every.newer.clone()
        )
    );

    // As a variant, beside entities that encrypt nothing.
    let plain = Plain {
        department: "Ward".to_owned(),
        id: "2".to_owned(),
        name: "Bob".to_owned(),
    };
    table.insert(&Either::Plain(plain.clone())).await.unwrap();
    table
        .upsert_replace(&Either::Every(every.clone()))
        .await
        .unwrap();
    let both = table
        .query::<Either>()
        .partition("Ward")
        .collect()
        .await
        .unwrap();
    let both: Vec<_> = both.into_iter().map(tablesdk::Stored::into_inner).collect();
    assert_eq!(both, [Either::Every(every), Either::Plain(plain)]);
}

#[tokio::test]
async fn an_alias_is_decrypted_under_its_own_name() {
    #[derive(TableEntity)]
    struct Before {
        #[table(partition_key)]
        department: String,
        #[table(row_key)]
        id: String,
        #[table(encrypt)]
        older: String,
    }

    #[derive(Debug, TableEntity)]
    struct After {
        #[table(partition_key)]
        department: String,
        #[table(row_key)]
        id: String,
        #[table(encrypt, alias = "older")]
        newer: String,
    }

    let server = TableServer::in_process();
    let table = client(&server).table("Tests").with_encryption(keyring());
    table.create_table().await.unwrap();
    let before = Before {
        department: "Ward".to_owned(),
        id: "1".to_owned(),
        older: "value".to_owned(),
    };
    table.insert(&before).await.unwrap();
    let after = table
        .modify(After::key("Ward", "1"), |_| Ok(()))
        .await
        .unwrap();
    assert_eq!(after.newer, "value");
    let after = table.get(After::key("Ward", "1")).await.unwrap().unwrap();
    assert_eq!(
        (
            after.department.as_str(),
            after.id.as_str(),
            after.newer.as_str()
        ),
        ("Ward", "1", "value")
    );
}

/// Otherwise the service would see which entities have one value in both.
#[tokio::test]
async fn equal_values_of_two_properties_have_different_second_properties() {
    #[derive(TableEntity)]
    struct Account {
        #[table(partition_key)]
        department: String,
        #[table(row_key)]
        id: String,
        #[table(encrypt(eq))]
        payer: String,
        #[table(encrypt(eq))]
        payee: String,
    }

    let server = TableServer::in_process();
    let raw = client(&server).table("Tests");
    raw.create_table().await.unwrap();
    let account = Account {
        department: "Ward".to_owned(),
        id: "1".to_owned(),
        payer: "ada".to_owned(),
        payee: "ada".to_owned(),
    };
    let table = raw.with_encryption(keyring());
    table.insert(&account).await.unwrap();
    let stored = raw.get::<DynamicEntity>(("Ward", "1")).await;
    let stored = stored.unwrap().unwrap();
    assert_ne!(binary(&stored, "payer__eq"), binary(&stored, "payee__eq"));
}

#[tokio::test]
async fn the_rest_does_not_replace_a_second_property() {
    let server = TableServer::in_process();
    let raw = client(&server).table("Tests");
    raw.create_table().await.unwrap();
    let table = raw.with_encryption(keyring());
    let mut every = every();
    every.rest.set("string__eq", "of the program");
    table.insert(&every).await.unwrap();
    let by_string = table.query::<Every>().filter(|e| e.string.eq(""));
    let found = by_string.one().await.unwrap().expect("it is found");
    assert_eq!(found.rest, tablesdk::Properties::default());
}
