//! Errors about the value of an encrypted property do not show it.

use serde::{Deserialize, Serialize};
use tablesdk::{ErrorKind, TableEntity};

use super::start;

/// More than an `Edm.Int64` can have.
const BADGE: u64 = 9_999_999_999_999_999_999;

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "Ward", row_key = "{id}")]
struct Stored {
    id: String,
    #[table(encrypt)]
    number: i32,
    #[table(encrypt, with = "tablesdk::entity::u64_as_int64")]
    badge: u64,
    #[table(encrypt(eq), with = "tablesdk::entity::u64_as_int64")]
    pass: u64,
    #[table(encrypt)]
    address: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Address {
    city: String,
}

/// Reads the number into a type that is too small.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "Ward", row_key = "{id}")]
struct WithSmallNumber {
    id: String,
    #[table(encrypt)]
    number: u8,
}

/// Reads the text as JSON.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "Ward", row_key = "{id}")]
struct WithJson {
    id: String,
    #[table(encrypt, json)]
    address: Address,
}

fn stored(badge: u64) -> Stored {
    Stored {
        id: "1".to_owned(),
        number: 424_242,
        badge,
        pass: 1,
        address: "\"Lovelace\"".to_owned(),
    }
}

fn assert_hidden(error: &tablesdk::Error, kind: ErrorKind, message: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().ends_with(message), "{error}");
    let whole = format!("{error:?} {error:#}");
    for secret in ["424242", "9999999999", "Lovelace"] {
        assert!(!whole.contains(secret), "{whole}");
    }
}

#[tokio::test]
async fn an_error_of_a_read_does_not_show_an_encrypted_value() {
    let (_server, table, _) = start().await;
    table.insert(&stored(1)).await.unwrap();
    let number =
        "property \"number\": the value (not shown) is out of range: a u8 is from 0 to 255";
    let numbers = || table.query::<WithSmallNumber>();
    let resolved = numbers().resolve(|row| Ok(row.properties().read::<u8>("number")?));
    for error in [
        table
            .get::<WithSmallNumber>(("Ward", "1"))
            .await
            .unwrap_err(),
        numbers().collect().await.unwrap_err(),
        resolved.collect().await.unwrap_err(),
        numbers().select(|e| e.number).collect().await.unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Aborted));
        assert_hidden(&error, error.kind(), number);
    }
    let json = "property \"address\": the value (not shown) cannot be read: the reason is not shown, because the property is encrypted";
    let addresses = table.query::<WithJson>();
    for error in [
        table.get::<WithJson>(("Ward", "1")).await.unwrap_err(),
        addresses.select(|e| e.address).collect().await.unwrap_err(),
    ] {
        assert_hidden(&error, ErrorKind::Data, json);
    }
}

#[tokio::test]
async fn an_error_of_a_write_does_not_show_an_encrypted_value() {
    let (_server, table, _) = start().await;
    let wrong = stored(BADGE);
    let message = "the value (not shown) is out of range";
    let patch = table.patch(Stored::key("1"));
    let patch = patch.set(|e| e.badge, BADGE);
    for error in [
        table.insert(&wrong).await.unwrap_err(),
        table.upsert_merge(&wrong).await.unwrap_err(),
        table.batch("Ward").insert(&wrong).await.unwrap_err(),
        patch.await.unwrap_err(),
    ] {
        assert!(error.to_string().contains(message), "{error}");
        assert_hidden(&error, ErrorKind::Input, "");
    }
    let query = table.query::<Stored>().filter(|e| e.pass.eq(BADGE));
    assert!(!format!("{query:?}").contains("99999"));
    assert_hidden(&query.collect().await.unwrap_err(), ErrorKind::Input, "");
    table.insert(&stored(1)).await.unwrap();
    let modify = table.modify(Stored::key("1"), |entity| {
        entity.badge = BADGE;
        Ok(())
    });
    assert_hidden(&modify.await.unwrap_err(), ErrorKind::Input, "");
}
