//! Properties that only clients with a key can read: the keys, and the form of what is stored.
//!
//! A field marked `#[table(encrypt)]` is encrypted by the client before it is sent, and decrypted
//! after it was read. See [the guide](crate::guide::encryption).
//!
//! Needs the feature `encryption`.

#[cfg(feature = "encryption")]
mod clients;
pub(crate) mod column;
#[cfg(feature = "encryption")]
mod entity;
#[cfg(feature = "encryption")]
mod envelope;
#[cfg(feature = "encryption")]
pub(crate) mod extension;
#[cfg(feature = "encryption")]
mod keyring;
#[cfg(feature = "encryption")]
mod literal;
#[cfg(feature = "encryption")]
mod local_key;
#[cfg(feature = "encryption")]
mod marked;
#[cfg(feature = "encryption")]
mod older;
#[cfg(feature = "encryption")]
mod provider;
#[cfg(feature = "encryption")]
mod stored_keys;

#[cfg(feature = "encryption")]
pub use column::EncryptedColumn;
#[cfg(feature = "encryption")]
pub use keyring::Keyring;
#[cfg(feature = "encryption")]
pub use local_key::LocalKey;
#[cfg(feature = "encryption")]
pub use provider::{ContentKey, KeyProvider, ProviderFuture, WrappedKey};

#[cfg(feature = "encryption")]
#[doc(hidden)]
pub use extension::encrypts;
#[cfg(feature = "encryption")]
pub(crate) use marked::check_not_resolved;

/// The derive refuses encrypted properties without the feature.
#[cfg(not(feature = "encryption"))]
#[doc(hidden)]
pub const fn encrypts(_: &mut crate::entity::attached::Extensions<'_>) {}

/// No client has a keyring without the feature.
#[cfg(not(feature = "encryption"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature, it is an error")]
pub(crate) const fn check_not_resolved(
    _: &crate::entity::Schema,
    _: &crate::pipeline::Table,
) -> Result<(), crate::error::Error> {
    Ok(())
}
