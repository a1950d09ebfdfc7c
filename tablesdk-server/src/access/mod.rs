//! Who sends a request, and what that one may do.
//!
//! A credential is checked before anything is said about what it asks for; once that is decoded, the principal is asked about
//! it, and about each change of a batch by itself. Knows signatures, tokens and clocks, tables, conditions and keys, but neither
//! properties nor storage. Nothing here logs: what it handles are secrets. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-requests-to-azure-storage>.

mod authorize;
mod policy;
mod sas;
mod shared_key;
mod token;

use http::header;
use http::request::Parts;
use tablesdk_protocol::auth::sas::{AccountSas, SasKeyRange, SignedSas, TablePermissions};
use tablesdk_protocol::auth::{Scheme, SharedKey};
use tablesdk_protocol::{ErrorCode, ServiceError, SignedIdentifier, TableName};

pub(crate) use authorize::{Change, ChangeKind};
pub(crate) use token::Tokens;
pub use token::{TokenAction, TokenGrant, TokenRefusal, TokenVerifier};

use crate::context::Context;

/// Who sends a request, and so what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Whoever has a key of the account: may do everything there.
    Account,
    /// Whoever was given an account SAS that holds for tables now.
    AccountSas(Box<AccountSas>),
    /// Whoever was given a table SAS that holds now.
    TableSas(Box<TableGrant>),
    /// Whoever has a token that is good here.
    Token(TokenGrant),
}

/// What a table SAS grants, completed by the stored access policy that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableGrant {
    table: TableName,
    permissions: TablePermissions,
    keys: SasKeyRange,
}

/// Finds out who sends the request; any of the account's keys will do.
///
/// `policies` looks up the stored access policies of a table, for a signature that names one; `None` for a missing table.
pub(crate) fn authenticate(
    keys: &[SharedKey],
    tokens: &Tokens,
    context: &Context,
    head: &Parts,
    policies: impl FnOnce(&TableName) -> Result<Option<Vec<SignedIdentifier>>, ServiceError>,
) -> Result<Principal, ServiceError> {
    let query = head.uri.query().unwrap_or_default();
    let has_sas = SignedSas::is_in(query);
    if !head.headers.contains_key(header::AUTHORIZATION) {
        if has_sas {
            return sas::authenticate(keys, context, query, policies);
        }
        return Err(refuse_anonymous(context));
    }
    // SERVICE: unsure. Clients that sign a URL with a SAS in it rely on this: the header wins. Where the header is not valid, the usual
    // emulator takes a SAS that is.
    authenticate_header(keys, tokens, context, head).or_else(|error| {
        if has_sas {
            sas::authenticate(keys, context, query, policies).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Finds out who sends a request with an `Authorization` header.
fn authenticate_header(
    keys: &[SharedKey],
    tokens: &Tokens,
    context: &Context,
    head: &Parts,
) -> Result<Principal, ServiceError> {
    let query = head.uri.query().unwrap_or_default();
    let mut credentials = head.headers.get_all(header::AUTHORIZATION).iter();
    let credential = credentials.next();
    let malformed = || ServiceError::from(ErrorCode::InvalidAuthenticationInfo);
    if credentials.next().is_some() {
        return Err(malformed());
    }
    let credential = credential.and_then(|credential| credential.to_str().ok());
    let credential = credential.ok_or_else(malformed)?;
    let (scheme, credential) = credential.split_once(' ').ok_or_else(malformed)?;
    let scheme = match scheme {
        "SharedKey" => Scheme::SharedKey,
        "SharedKeyLite" => Scheme::SharedKeyLite,
        _ if scheme.eq_ignore_ascii_case("Bearer") => {
            let granted = tokens.authenticate(context, query, credential.trim())?;
            return Ok(Principal::Token(granted));
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

/// What kind of credential a request has, good or not; the request log tells it.
pub(crate) fn kind(head: &Parts) -> &'static str {
    let Some(credential) = head.headers.get(header::AUTHORIZATION) else {
        return if SignedSas::is_in(head.uri.query().unwrap_or_default()) {
            "sas"
        } else {
            "none"
        };
    };
    match credential.as_bytes().split(|byte| *byte == b' ').next() {
        Some(b"SharedKey") => "shared_key",
        Some(b"SharedKeyLite") => "shared_key_lite",
        Some(scheme) if scheme.eq_ignore_ascii_case(b"Bearer") => "bearer",
        _ => "unknown",
    }
}

/// What a request without a credential is told.
fn refuse_anonymous(context: &Context) -> ServiceError {
    if knows_challenge(context) {
        ErrorCode::NoAuthenticationInformation.into()
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}

// SERVICE: older versions know no challenge. Dates of this form compare as texts.
fn knows_challenge(context: &Context) -> bool {
    context.version() >= Some("2019-12-12")
}
