//! Encrypted properties: what is stored, what each operation does with them, and what is detected.

mod every;
mod expiring;
mod hidden_values;
pub(super) mod keys;
mod logs;
mod older_sdks;
mod operations;
mod other_types;
mod outcomes;
mod page_tokens;
mod resolver;
mod rival_keys;
pub(super) mod secrets;
mod tampering;
mod types;
mod vault;

use harness::client;
use tablesdk::action::QueryEntities;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, TableClient, TableEntity, TableServiceClient, Value};
use tablesdk_server::TableServer;

const EMAIL: &str = "ada@contoso.com";

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id}"
)]
pub(super) struct Patient {
    pub(super) department: String,
    pub(super) id: String,
    #[table(encrypt)]
    pub(super) name: String,
    #[table(encrypt(eq))]
    pub(super) email: String,
    #[table(encrypt)]
    pub(super) born: Option<i32>,
    pub(super) visits: i64,
}

impl Patient {
    pub(super) fn new(id: &str, email: &str) -> Self {
        Self {
            department: "Ward".to_owned(),
            id: id.to_owned(),
            name: "Ada Lovelace".to_owned(),
            email: email.to_owned(),
            born: Some(1815),
            visits: 1,
        }
    }

    fn ada() -> Self {
        Self::new("1", EMAIL)
    }
}

pub(super) fn january() -> LocalKey {
    LocalKey::new("2024-01", [7; 32])
}

pub(super) fn february() -> LocalKey {
    LocalKey::new("2024-02", [8; 32])
}

fn keyring() -> Keyring {
    Keyring::new(january())
}

/// A table with keys, and the same table without.
async fn tables(service: &TableServiceClient) -> (TableClient, TableClient) {
    let raw = service.table("Patients");
    raw.create_table().await.unwrap();
    (raw.with_encryption(keyring()), raw)
}

/// A server, a table with keys, and the same table without.
async fn start() -> (TableServer, TableClient, TableClient) {
    let server = TableServer::in_process();
    let (table, raw) = tables(&client(&server)).await;
    (server, table, raw)
}

/// Inserts patients who have the email of Ada.
async fn insert(table: &TableClient, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        let patient = Patient::new(&id.to_string(), EMAIL);
        table.insert(&patient).await.unwrap();
    }
}

async fn get(table: &TableClient, id: &str) -> Patient {
    let found = table.get(Patient::key("Ward", id)).await.unwrap();
    found.expect("it exists").into_inner()
}

/// The patients who have the email of Ada.
fn with_email(table: &TableClient) -> QueryEntities<Patient> {
    table.query::<Patient>().filter(|p| p.email.eq(EMAIL))
}

async fn stored(raw: &TableClient, id: &str) -> DynamicEntity {
    let found = raw.get::<DynamicEntity>(("Ward", id)).await.unwrap();
    found.expect("it exists").into_inner()
}

fn binary(entity: &DynamicEntity, name: &str) -> Vec<u8> {
    match entity.properties().get(name) {
        Some(Value::Binary(bytes)) => bytes.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// Asserts that a text contains no key and no value of the tests, in any of their forms.
fn assert_no_secret(text: &str) {
    for secret in ["Lovelace", "contoso", "1815", "0707", "7, 7", "BwcH"] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    // As filters and base64 have them.
    assert!(!text.contains("6164614063"), "{text}");
    assert!(!text.contains("YWRhQGNvbnRvc28"), "{text}");
}
