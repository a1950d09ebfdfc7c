//! The provider: it knows Key Vault, and neither tables nor how values are encrypted.

use std::error::Error;
use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_core::http::StatusCode;
use azure_security_keyvault_keys::models::{
    EncryptionAlgorithm, KeyClientWrapKeyOptions, KeyOperationParameters,
};
use azure_security_keyvault_keys::{KeyClient, KeyClientOptions, ResourceExt as _, ResourceId};
use tablesdk::encryption::{ContentKey, KeyProvider, ProviderFuture, WrappedKey};

pub type AnyError = Box<dyn Error + Send + Sync>;

/// An RSA key in a vault.
pub struct KeyVault {
    client: KeyClient,
    /// The id of the key without a version.
    key: String,
    name: String,
    /// The version that wraps.
    version: String,
}

impl KeyVault {
    /// A key such as `https://contoso.vault.azure.net/keys/tables`. Its newest version wraps. One
    /// request, which needs the permission to get the key.
    pub async fn open(
        key: &str,
        credential: Arc<dyn TokenCredential>,
        options: KeyClientOptions,
    ) -> Result<Self, AnyError> {
        let ResourceId {
            vault_url, name, ..
        } = key.parse()?;
        let client = KeyClient::new(&vault_url, credential, Some(options))?;
        let newest = client.get_key(&name, None).await?.into_model()?;
        let version = newest
            .resource_id()?
            .version
            .ok_or("the key has no version")?;
        Ok(Self {
            client,
            key: format!("{vault_url}/keys/{name}"),
            name,
            version,
        })
    }

    /// The version of this key in the id of a key.
    fn version_of<'i>(&self, id: &'i str) -> Option<&'i str> {
        let version = id.strip_prefix(&self.key)?.strip_prefix('/')?;
        let is_version = version.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_version && !version.is_empty()).then_some(version)
    }
}

impl KeyProvider for KeyVault {
    fn key_id(&self) -> String {
        format!("{}/{}", self.key, self.version)
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        Box::pin(async move {
            let parameters = parameters(EncryptionAlgorithm::RsaOaep256, key.as_bytes());
            let options = of_version(&self.version);
            let wrapped = self
                .client
                .wrap_key(&self.name, parameters.try_into()?, Some(options))
                .await?;
            Ok(wrapped
                .into_model()?
                .result
                .ok_or("the vault returned no key")?)
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        Box::pin(async move {
            let algorithm = match wrapped.algorithm() {
                None => EncryptionAlgorithm::RsaOaep256,
                Some("RSA-OAEP" | "RSA") => EncryptionAlgorithm::RsaOaep,
                Some(_) => return Err(wrapped.refusal()),
            };
            // The id comes from a table: another program may have written one of its own.
            let version = self
                .version_of(wrapped.key_id())
                .ok_or_else(|| wrapped.refusal())?;
            let parameters = parameters(algorithm, wrapped.as_bytes());
            let key = match self
                .client
                .unwrap_key(&self.name, version, parameters.try_into()?, None)
                .await
            {
                // A version that the vault does not have may be another program's invention.
                Err(error)
                    if matches!(
                        error.http_status(),
                        Some(StatusCode::BadRequest | StatusCode::NotFound)
                    ) =>
                {
                    return Err(wrapped.refusal());
                }
                key => key?
                    .into_model()?
                    .result
                    .ok_or("the vault returned no key")?,
            };
            Ok(ContentKey::new(
                key.try_into().map_err(|_| wrapped.refusal())?,
            ))
        })
    }
}

fn parameters(algorithm: EncryptionAlgorithm, value: &[u8]) -> KeyOperationParameters {
    KeyOperationParameters {
        algorithm: Some(algorithm),
        value: Some(value.to_vec()),
        ..KeyOperationParameters::default()
    }
}

fn of_version(version: &str) -> KeyClientWrapKeyOptions<'_> {
    KeyClientWrapKeyOptions {
        key_version: Some(version.to_owned()),
        ..KeyClientWrapKeyOptions::default()
    }
}
