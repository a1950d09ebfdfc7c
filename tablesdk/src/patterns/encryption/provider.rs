//! Providers, which wrap and unwrap the content keys.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;

use tablesdk_protocol::Guid;
use zeroize::Zeroizing;

use super::envelope::{Secret, proof};

/// Wraps and unwraps the keys that encrypt values: a key in a vault, or a
/// [`LocalKey`](super::LocalKey). A [`Keyring`](super::Keyring) that is
/// [opened](super::Keyring::open) with it keeps the wrapped keys in a table.
///
/// It is asked once for each key when the keyring is opened, and again when the keys are an hour
/// old. An implementation keeps nothing. Its error ends the operations that need the key, and must
/// not contain the key.
///
/// For Azure Key Vault, with an HTTP client and a token of the program:
///
/// ```
/// use tablesdk::encryption::{ContentKey, KeyProvider, ProviderFuture, WrappedKey};
/// # struct Http;
/// # impl Http {
/// #     async fn post(&self, _: String, _: Vec<u8>) -> Result<Vec<u8>, std::io::Error> { Ok(vec![]) }
/// # }
///
/// struct KeyVault {
///     http: Http,
///     /// Such as `https://contoso.vault.azure.net/keys/tables/`.
///     key: String,
///     /// The newest one, such as `0123`.
///     version: String,
/// }
///
/// impl KeyProvider for KeyVault {
///     fn key_id(&self) -> String {
///         format!("{}{}", self.key, self.version)
///     }
///
///     fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
///         Box::pin(async move {
///             let url = format!("{}/wrapkey?api-version=7.4", self.key_id());
///             // Of the vault, this is JSON with Base64.
///             Ok(self.http.post(url, key.as_bytes().to_vec()).await?)
///         })
///     }
///
///     fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
///         Box::pin(async move {
///             // It comes from the table: another program may have written a URL of its own.
///             let version = wrapped.key_id().strip_prefix(&self.key).unwrap_or_default();
///             if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
///                 return Err(wrapped.refusal());
///             }
///             // This provider reads no entities of older SDKs: those would be `RSA-OAEP`.
///             if wrapped.algorithm().is_some() {
///                 return Err(wrapped.refusal());
///             }
///             let url = format!("{}{version}/unwrapkey?api-version=7.4", self.key);
///             let bytes = self.http.post(url, wrapped.as_bytes().to_vec()).await?;
///             Ok(ContentKey::new(bytes.try_into().map_err(|_| "a key has 32 bytes")?))
///         })
///     }
/// }
/// ```
pub trait KeyProvider: Send + Sync + 'static {
    /// The id of the key that wraps now, with its version. It is stored beside each wrapped key.
    fn key_id(&self) -> String;

    /// Wraps a key with the key of [`key_id`](Self::key_id).
    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>>;

    /// Unwraps a key with the key that wrapped it. The key of an entity of an older SDK has an
    /// [algorithm](WrappedKey::algorithm).
    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey>;
}

/// The future that the functions of a [`KeyProvider`] return. The trait has an example.
pub type ProviderFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// The key that encrypts values. `Debug` does not show it, and its memory is overwritten when it is
/// dropped.
///
/// ```
/// use tablesdk::encryption::ContentKey;
///
/// let key = ContentKey::new([7; 32]);
/// assert_eq!(key.as_bytes(), &[7; 32]);
/// assert_eq!(format!("{key:?}"), "ContentKey");
/// ```
pub struct ContentKey(pub(crate) Secret);

impl ContentKey {
    /// The key of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The proof that the key belongs to that id.
    pub(crate) fn proof_of(&self, id: Guid) -> Vec<u8> {
        proof(&self.0, id).to_vec()
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey")
    }
}

/// A key that is wrapped, as it is stored. [`KeyProvider`] has an example.
pub struct WrappedKey {
    pub(crate) key_id: String,
    pub(crate) bytes: Vec<u8>,
    /// That of an older SDK.
    pub(crate) algorithm: Option<String>,
}

impl WrappedKey {
    /// The id of the key that wrapped it, as the table has it. Compare it before it becomes a part
    /// of a URL: who may write the table chooses it.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The content key in the form in which the provider has wrapped it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The algorithm by which an [older SDK](super::Keyring::also_older_sdks) has wrapped the key,
    /// as the entity has it: `A256KW`, `RSA-OAEP` (with SHA-1), or `RSA` for the same; `None` for a
    /// key that this provider has wrapped. [`KeyProvider`] has an example.
    pub fn algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// The error of a provider whose key did not wrap this one. For an entity of an older SDK it
    /// becomes the error of a value that was changed. Any other error of a provider, such as that
    /// of a vault that does not respond, is
    /// [`ErrorKind::Credential`](crate::ErrorKind::Credential). [`KeyProvider`] has an example.
    pub fn refusal(&self) -> Box<dyn StdError + Send + Sync> {
        Box::new(OtherKey)
    }
}

/// A provider's key did not wrap a key.
#[derive(Debug, thiserror::Error)]
#[error("the key was not wrapped by a key of the provider")]
pub(super) struct OtherKey;

impl fmt::Debug for WrappedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WrappedKey").field(&self.key_id).finish()
    }
}
