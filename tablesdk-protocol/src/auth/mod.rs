//! Shared Key, Shared Key Lite and shared access signatures: what is signed, and with what.
//!
//! Client and server compute the same string from the same request parts; neither direction does
//! any I/O. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>.

mod access_policy;
pub mod sas;
mod shared_key;
mod string_to_sign;

pub use access_policy::{
    AccessPolicy, SignedIdentifier, SignedIdentifierError, check_signed_identifiers,
};
pub use shared_key::{InvalidKeyError, SharedKey, Signature};
pub use string_to_sign::{Scheme, canonicalized_resource, documented_secondary, string_to_sign};
