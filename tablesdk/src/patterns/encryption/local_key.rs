//! A key that the program has in memory.

use std::error::Error as StdError;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _};
use zeroize::Zeroizing;

use super::envelope::{DataKey, Secret, derive};
use super::{ContentKey, KeyProvider, ProviderFuture, WrappedKey, older};

/// A secret of 32 bytes with a name, from a file, a variable of the environment or a secret store.
/// It encrypts values itself, see [`Keyring::new`](super::Keyring::new), or other keys.
///
/// The name is stored with what was encrypted, as a hash, and errors show it. A name belongs to one
/// secret: a new secret gets a new name. `Debug` does not show the secret, and the memory is
/// overwritten when the last clone is dropped.
///
/// ```
/// use tablesdk::encryption::LocalKey;
///
/// let key = LocalKey::new("2024-01", [7; 32]);
/// assert_eq!(format!("{key:?}"), r#"LocalKey("2024-01")"#);
/// ```
#[derive(Clone)]
pub struct LocalKey {
    pub(super) name: Arc<str>,
    pub(super) secret: Arc<Secret>,
}

impl LocalKey {
    /// A key with that name. The secret must be random: it is no password.
    pub fn new(name: impl Into<String>, secret: [u8; 32]) -> Self {
        Self {
            name: name.into().into(),
            secret: Arc::new(Zeroizing::new(secret)),
        }
    }

    pub(super) fn into_data_key(self) -> DataKey {
        DataKey::named(&self.name, self.secret)
    }
}

impl LocalKey {
    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new((&*derive(&self.secret, &[b"tablesdk.wrap.1"])).into())
    }

    /// The key of an entity that an older SDK encrypted with the secret itself.
    fn unwrap_of_older_sdk(
        &self,
        wrapped: &WrappedKey,
    ) -> Result<ContentKey, Box<dyn StdError + Send + Sync>> {
        if wrapped.algorithm() != Some("A256KW") || wrapped.key_id() != &*self.name {
            return Err(wrapped.refusal());
        }
        older::unwrap(&self.secret, wrapped.as_bytes()).map_err(|_| wrapped.refusal())
    }
}

impl KeyProvider for LocalKey {
    fn key_id(&self) -> String {
        self.name.to_string()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        let mut nonce = [0; 12];
        getrandom::fill(&mut nonce).expect("the operating system gives random bytes");
        let wrapped = self.cipher().encrypt(&nonce.into(), &key.as_bytes()[..]);
        let wrapped = wrapped.map(|wrapped| [&nonce[..], &wrapped].concat());
        Box::pin(ready(
            wrapped.map_err(|_| "the key cannot be wrapped".into()),
        ))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        if wrapped.algorithm().is_some() {
            return Box::pin(ready(self.unwrap_of_older_sdk(wrapped)));
        }
        let key = wrapped.as_bytes().split_first_chunk::<12>();
        let key = key.and_then(|(nonce, bytes)| {
            let key = self.cipher().decrypt(&(*nonce).into(), bytes).ok()?;
            let key = Zeroizing::new(key);
            Some(ContentKey::new(key.as_slice().try_into().ok()?))
        });
        let key = key.ok_or_else(|| {
            let (wrapped_by, own) = (wrapped.key_id(), self.key_id());
            format!("the key that {wrapped_by:?} has wrapped cannot be unwrapped with {own:?}")
                .into()
        });
        Box::pin(ready(key))
    }
}

/// The first key wraps, and each unwraps what it has wrapped.
impl KeyProvider for Vec<LocalKey> {
    fn key_id(&self) -> String {
        self.first().map(LocalKey::key_id).unwrap_or_default()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        match self.first() {
            Some(first) => first.wrap(key),
            None => Box::pin(ready(Err("there is no key".into()))),
        }
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        match self.iter().find(|key| key.key_id() == wrapped.key_id()) {
            Some(key) => key.unwrap(wrapped),
            None if wrapped.algorithm().is_some() => Box::pin(ready(Err(wrapped.refusal()))),
            None => {
                let error = format!("there is no key {:?}", wrapped.key_id());
                Box::pin(ready(Err(error.into())))
            }
        }
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalKey").field(&self.name).finish()
    }
}
