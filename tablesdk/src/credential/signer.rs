//! A credential in use, and the slot that holds it, where another credential can replace it while
//! requests are in flight.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::{Clock, Endpoint};

use super::cache::TokenKind;
use super::kept_key::KeptKey;
use super::{Credential, EntraId, Sas, TokenCache};
use crate::error::Error;
use crate::transport::Backend;

/// A credential, ready to be used for one account.
#[derive(Debug)]
pub(crate) enum Signer {
    Anonymous,
    Sas(Sas),
    SasSource(Arc<TokenCache>),
    SharedKey(SharedKey),
    Token(TokenSigner),
}

/// The tokens of an identity.
#[derive(Debug)]
pub(crate) struct TokenSigner {
    pub(crate) cache: Arc<TokenCache>,
    /// The user delegation key of the identity.
    pub(crate) key: KeptKey,
    /// The signature that each request has as well.
    pub(crate) sas: Option<Sas>,
}

/// The account that a credential is for.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) secondary: Option<&'a Endpoint>,
    pub(crate) backend: Backend,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl Signer {
    fn new(credential: Credential, account: &Account<'_>) -> Result<Self, Error> {
        Ok(match credential {
            Credential::Anonymous => Self::Anonymous,
            Credential::Sas(sas) => Self::Sas(sas),
            Credential::SharedKey(key) => Self::SharedKey(key),
            Credential::SasSource(source) => {
                let cache = Self::cache(source.into_tokens(), TokenKind::Sas, account);
                Self::SasSource(Arc::new(cache))
            }
            Credential::EntraId(entra_id) => {
                let sas = entra_id.sas.clone();
                let cache = Self::token_cache(entra_id, account)?;
                Self::Token(TokenSigner {
                    cache: Arc::new(cache),
                    key: KeptKey::new(),
                    sas,
                })
            }
        })
    }

    fn token_cache(entra_id: EntraId, account: &Account<'_>) -> Result<TokenCache, Error> {
        let &Account {
            endpoint,
            secondary,
            ..
        } = account;
        if !endpoint.is_https() || secondary.is_some_and(|secondary| !secondary.is_https()) {
            return Err(Error::configuration_message(
                "a token is sent only over https: others on the network could use it",
            ));
        }
        for text in [&entra_id.audience, &entra_id.tenant].into_iter().flatten() {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(Error::configuration_message(
                    "the audience or the tenant of the tokens is empty, or has characters that are not allowed",
                ));
            }
        }
        Ok(Self::cache(entra_id, TokenKind::Bearer, account))
    }

    fn cache(entra_id: EntraId, kind: TokenKind, account: &Account<'_>) -> TokenCache {
        let (endpoint, clock) = (account.endpoint.clone(), Arc::clone(account.clock));
        TokenCache::new(entra_id, kind, endpoint, account.backend, clock)
    }
}

/// Holds the current credential of a client. A request that has taken a credential out uses it to
/// its end.
// A slot and not a credential that changes itself: whether a credential has been replaced is a
// comparison of pointers. The state of the HMAC is prepared when a key is made, and not for a
// request.
pub(crate) struct CredentialSlot(RwLock<Arc<Signer>>);

impl CredentialSlot {
    pub(crate) fn new(credential: Credential, account: &Account<'_>) -> Result<Self, Error> {
        let signer = Signer::new(credential, account)?;
        Ok(Self(RwLock::new(Arc::new(signer))))
    }

    pub(crate) fn current(&self) -> Arc<Signer> {
        // Nothing panics while it is held.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(
        &self,
        credential: Credential,
        account: &Account<'_>,
    ) -> Result<(), Error> {
        let signer = Arc::new(Signer::new(credential, account)?);
        let old = std::mem::replace(
            &mut *self.0.write().unwrap_or_else(PoisonError::into_inner),
            signer,
        );
        // Wiped when the last request lets go of it, and not under the lock.
        drop(old);
        Ok(())
    }
}

impl fmt::Debug for CredentialSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current().fmt(f)
    }
}
