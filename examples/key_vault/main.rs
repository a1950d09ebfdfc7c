//! Encrypted properties whose keys a key in Azure Key Vault wraps, which never leaves the vault:
//! `cargo run --example key_vault`.
//!
//! It inserts an employee with an encrypted property, and reads it. It reads these environment
//! variables:
//!
//! | variable | value |
//! |---|---|
//! | `AZURE_KEY_VAULT_KEY` | the key, such as `https://contoso.vault.azure.net/keys/tables`; without it, [`local`] stands in for the vault |
//! | `AZURE_STORAGE_CONNECTION_STRING` | the account; without it, a server in this process |
//!
//! The key is an RSA key. The identity needs the role "Key Vault Crypto User" on it: the
//! permissions to get the key, to wrap and to unwrap. Who may wrap and may write the table of the
//! keys chooses the keys, as the guide to encryption says.
//!
//! After a new version of the key was made in the vault, `Keyring::rewrap` wraps all keys with it,
//! and the older version can then be disabled.

mod local;
mod provider;
#[cfg(test)]
mod tests;

use std::env;
use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_identity::DeveloperToolsCredential;
use azure_security_keyvault_keys::KeyClientOptions;
use tablesdk::TableEntity;
use tablesdk::encryption::Keyring;

use crate::provider::{AnyError, KeyVault};

#[derive(Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(encrypt)]
    insurance_number: String,
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let (service, _server) = tablesdk_examples::connect()
        .await
        .map_err(|error| error.to_string())?;
    let vault = if let Ok(key) = env::var("AZURE_KEY_VAULT_KEY") {
        // On Azure, a `ManagedIdentityCredential`: see the example `managed_identity`.
        let credential: Arc<dyn TokenCredential> = DeveloperToolsCredential::new(None)?;
        KeyVault::open(&key, credential, KeyClientOptions::default()).await?
    } else {
        println!("AZURE_KEY_VAULT_KEY is not set: a stand-in for the vault");
        local::Vault::new().open().await?
    };
    let keys = service.table("TablesdkKeys");
    keys.create_table().if_missing().await?;
    let keyring = Keyring::open(&keys, vault).await?;
    let table = service.table("Employees").with_encryption(keyring);
    table.create_table().if_missing().await?;
    let ada = Employee {
        department: "Sales".to_owned(),
        id: "1".to_owned(),
        insurance_number: "AB 12 34 56 C".to_owned(),
    };
    table.upsert_replace(&ada).await?;
    let ada = table.get(Employee::key("Sales", "1")).await?;
    println!("{:?}", ada.ok_or("she does not work here")?.into_inner());
    Ok(())
}
