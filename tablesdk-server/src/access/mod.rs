//! Who sends a request: its credential is checked here, before anything is said about what it asks for.
//!
//! Knows signatures and clocks, but neither properties nor storage. Nothing here logs: what it handles are secrets. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-requests-to-azure-storage>.

mod shared_key;

use http::header;
use http::request::Parts;
use tablesdk_protocol::auth::{Scheme, SharedKey};
use tablesdk_protocol::{ErrorCode, ServiceError};

use crate::context::Context;

/// Who sends a request, and so what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Whoever has a key of the account: may do everything there.
    Account,
}

/// Finds out who sends the request; any of the account's keys will do.
pub(crate) fn authenticate(
    keys: &[SharedKey],
    context: &Context,
    head: &Parts,
) -> Result<Principal, ServiceError> {
    let mut credentials = head.headers.get_all(header::AUTHORIZATION).iter();
    let Some(credential) = credentials.next() else {
        return Err(refuse_anonymous(context, head));
    };
    let malformed = || ServiceError::from(ErrorCode::InvalidAuthenticationInfo);
    if credentials.next().is_some() {
        return Err(malformed());
    }
    let credential = credential.to_str().map_err(|_| malformed())?;
    let (scheme, credential) = credential.split_once(' ').ok_or_else(malformed)?;
    let scheme = match scheme {
        "SharedKey" => Scheme::SharedKey,
        "SharedKeyLite" => Scheme::SharedKeyLite,
        _ if scheme.eq_ignore_ascii_case("Bearer") => {
            return Err(ServiceError::new(
                ErrorCode::NotImplemented,
                "Bearer tokens are not implemented by this server yet.",
            ));
        }
        _ => return Err(malformed()),
    };
    let (account, signature) = credential
        .trim()
        .split_once(':')
        .filter(|(account, signature)| !account.is_empty() && !signature.is_empty())
        .ok_or_else(malformed)?;
    shared_key::verify(keys, scheme, account, signature, context, head)?;
    Ok(Principal::Account)
}

/// What a request without an `Authorization` header is told.
fn refuse_anonymous(context: &Context, head: &Parts) -> ServiceError {
    let query = head.uri.query().unwrap_or_default();
    if query.split('&').any(|pair| pair.starts_with("sig=")) {
        return ServiceError::new(
            ErrorCode::NotImplemented,
            "Shared access signatures are not implemented by this server yet.",
        );
    }
    // SERVICE: older versions know no challenge. Dates of this form compare as texts.
    if context.version() >= Some(FIRST_VERSION_WITH_CHALLENGE) {
        ErrorCode::NoAuthenticationInformation.into()
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}

const FIRST_VERSION_WITH_CHALLENGE: &str = "2019-12-12";
