//! The program with a vault that has several versions of the key, that does not respond, and whose
//! key encrypted entities of an older SDK.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{DynamicEntity, ErrorKind, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use crate::Employee;
use crate::local::{KEY, Vault};

async fn tables(server: &TableServer) -> (TableClient, TableClient) {
    let service = TableServiceClient::in_process(server);
    let (keys, table) = (service.table("Keys"), service.table("Employees"));
    keys.create_table().await.unwrap();
    table.create_table().await.unwrap();
    (keys, table)
}

fn ada() -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id: "1".to_owned(),
        insurance_number: "AB 12 34 56 C".to_owned(),
    }
}

async fn insurance_number(table: &TableClient, keyring: Keyring) -> String {
    let table = table.with_encryption(keyring);
    let found = table.get(Employee::key("Sales", "1")).await.unwrap();
    found.unwrap().into_inner().insurance_number
}

#[tokio::test]
async fn a_new_version_of_the_key_wraps_and_the_older_one_is_then_not_needed() {
    let server = TableServer::in_process();
    let (keys, table) = tables(&server).await;
    let vault = Vault::new();
    let keyring = Keyring::open(&keys, vault.open().await.unwrap())
        .await
        .unwrap();
    table.with_encryption(keyring).insert(&ada()).await.unwrap();
    assert_eq!(
        vault.state().requests,
        [
            "/keys/tables/",
            "/keys/tables/1/wrapkey",
            "/keys/tables/1/unwrapkey"
        ]
    );
    vault.state().versions.push("2".to_owned());
    let keyring = Keyring::open(&keys, vault.open().await.unwrap())
        .await
        .unwrap();
    assert_eq!(keyring.rewrap().await.unwrap(), 1);
    vault.state().versions.remove(0);
    let keyring = Keyring::open(&keys, vault.open().await.unwrap())
        .await
        .unwrap();
    assert_eq!(insurance_number(&table, keyring).await, "AB 12 34 56 C");
}

#[tokio::test]
async fn an_outage_of_the_vault_is_an_error_of_the_credential() {
    let server = TableServer::in_process();
    let (keys, table) = tables(&server).await;
    let vault = Vault::new();
    let keyring = Keyring::open(&keys, vault.open().await.unwrap())
        .await
        .unwrap();
    table
        .with_encryption(keyring.clone())
        .insert(&ada())
        .await
        .unwrap();
    let provider = vault.open().await.unwrap();
    vault.state().is_out = true;
    let error = Keyring::open(&keys, provider).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    // The keys that are loaded are used for an hour.
    assert_eq!(insurance_number(&table, keyring).await, "AB 12 34 56 C");
}

#[tokio::test]
async fn a_key_id_of_another_vault_is_not_asked() {
    let server = TableServer::in_process();
    let (keys, _) = tables(&server).await;
    let vault = Vault::new();
    Keyring::open(&keys, vault.open().await.unwrap())
        .await
        .unwrap();
    let rows = keys
        .query::<DynamicEntity>()
        .filter(|e| e.property("RowKey").ne("current"));
    let mut row = rows.one().await.unwrap().unwrap();
    for id in [
        "https://evil.example/keys/tables/1",
        &format!("{KEY}/../1"),
        KEY,
    ] {
        row.properties_mut().set("WrappedBy", id);
        keys.replace(&mut row).await.unwrap();
        let provider = vault.open().await.unwrap();
        let before = vault.state().requests.len();
        let error = Keyring::open(&keys, provider).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credential);
        assert_eq!(vault.state().requests.len(), before);
    }
}

/// The entity of .NET's SDK has the id of its key in it, which is here that of the vault.
#[tokio::test]
async fn an_entity_that_an_older_sdk_encrypted_with_the_key_of_the_vault_is_read() {
    let server = TableServer::in_process();
    let (_, table) = tables(&server).await;
    let vault = Vault::new();
    let wrapped = BASE64_STANDARD.decode("TuG5Sds0DLESUApoKQy7lnZB7nV3flyXxk8KIx4IfjwDIpdKE6HFT5eEwAlw2GhW6o9dhZEMEnPq9qwaTJGwa7mxyjyHvwXQ0dRehvx9yclnt1Z4cP9url7IEJmI4A04Puq4Bfqi8XocuWTVIxJktkVXMj6KYTFOjeR4GscEJSE4nYqIuQMCVrWY3QZ6gIhsl5XNnTWz4khCe+jVEdDekGZzM1z5JjLn+5HqvFva6Mjbp3nkA1pV7Yr8KCVVvGkKaIvUriWH79j/OIyOiNaiqBcasqwZfse0qlWIn5duYMzJHtVVbR3PzQgWcIkPVe7/az8izFeq+k3j3/2FKoAyHA==").unwrap();
    let key = BASE64_STANDARD
        .decode("zGyRaKAsRjL3f8rL/sYrWaSRTvzYN9C4DLWuSZkw9tc=")
        .unwrap();
    let id = ("1".to_owned(), "RSA-OAEP".to_owned(), wrapped.clone());
    vault.state().wrapped.insert(id, key);
    let metadata = format!(
        r#"{{"WrappedContentKey":{{"KeyId":"{KEY}/1","EncryptedKey":"{}","Algorithm":"RSA-OAEP"}},"EncryptionAgent":{{"Protocol":"1.0","EncryptionAlgorithm":"AES_CBC_256"}},"ContentEncryptionIV":"p/qPIoiHQYpw876k6V2O7w==","KeyWrappingMetadata":{{"EncryptionLibrary":".NET 9.3.2"}}}}"#,
        BASE64_STANDARD.encode(&wrapped)
    );
    let binary = |text: &str| BASE64_STANDARD.decode(text).unwrap();
    let stored = DynamicEntity::new("net", "rsa")
        .with("Secret1", binary("BvxvJJxRdt6iTdS5KOfuww=="))
        .with("_ClientEncryptionMetadata1", metadata)
        .with(
            "_ClientEncryptionMetadata2",
            binary("+bK369Ug8BsTDFyN8/YNWw=="),
        );
    table.insert(&stored).await.unwrap();
    let keyring = Keyring::new(LocalKey::new("2024-01", [7; 32]))
        .also_older_sdks(vault.open().await.unwrap())
        .resolver(|_, _, name| name == "Secret1");
    let table = table.with_encryption(keyring);
    let read = || async { table.get::<DynamicEntity>(("net", "rsa")).await };
    let found = read().await.unwrap().unwrap();
    assert_eq!(
        found.properties().read::<String>("Secret1").unwrap(),
        "wrapped by RSA"
    );
    // A key that the vault did not wrap, and one that is not there.
    vault.state().wrapped.clear();
    assert_eq!(read().await.unwrap_err().kind(), ErrorKind::Data);
    vault.state().is_out = true;
    assert_eq!(read().await.unwrap_err().kind(), ErrorKind::Credential);
}
