//! Credentials that come from your code: token sources for [`EntraId`], and
//! [`SasSource`] for shared access signatures.
//!
//! [`Credential`] lists the kinds. The [guide to credentials](crate::guide::credentials) says which
//! one to use for what. `Debug` of a credential shows no secret.
//!
//! Knows nothing of requests: what a credential does to one is the pipeline's.

mod audience;
mod cache;
mod challenge;
#[cfg(feature = "identity")]
mod identity;
mod kept_key;
pub(crate) mod kinds;
pub(crate) mod sas;
mod sas_source;
mod signer;
pub(crate) mod token;

pub use sas_source::SasSource;
pub use token::{AccessToken, TokenCredential, TokenError, TokenFuture, TokenRequest};

pub(crate) use cache::{Bearer, Presented, TokenCache};
pub(crate) use kinds::Credential;
pub(crate) use sas::Sas;
pub(crate) use signer::{Account, CredentialSlot, Signer};
pub(crate) use token::EntraId;
