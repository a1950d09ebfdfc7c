//! Properties that only clients with a key can read: the keys, and the form of what is stored.
//!
//! A field marked `#[table(encrypt)]` is encrypted by the client before it is sent, and decrypted after it was read. See
//! [the guide](crate::guide::encryption).
//!
//! Needs the feature `encryption`.

mod entity;
mod envelope;
mod keyring;
mod literal;
mod local_key;
mod provider;

pub use keyring::Keyring;
pub use local_key::LocalKey;
pub use provider::{ContentKey, KeyProvider, ProviderFuture, WrappedKey};

pub(crate) use entity::Cipher;
pub(crate) use envelope::DataKey;
pub(crate) use keyring::{KeySource, Keys, NEW_KEY_WAITS, SourceFuture};
pub(crate) use literal::sealed_literal;
