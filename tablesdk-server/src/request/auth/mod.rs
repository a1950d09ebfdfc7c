//! Authentication and authorization of requests.
//!
//! The credential is checked before the response says anything about the resource. Once the request
//! is decoded, the principal authorizes it, and each change of a batch separately. This module
//! knows signatures, tokens and clocks, tables, conditions and keys, but neither properties nor
//! storage. Nothing here logs, because this code handles secrets. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-requests-to-azure-storage>.

mod authorize;
mod delegation;
mod policy;
mod sas;
mod shared_key;
mod token;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, header};
use tablesdk_protocol::auth::sas::{AccountSas, Permissions, SasKeyRange, SignedSas};
use tablesdk_protocol::auth::{Scheme, SharedKey};
use tablesdk_protocol::operation::QueryOptions;
use tablesdk_protocol::{ErrorCode, ServiceError, SignedIdentifier, TableName};

pub(crate) use authorize::Write;
pub(crate) use token::Tokens;
pub use token::{TokenAction, TokenGrant, TokenRefusal, TokenVerifier};

use crate::request::context::Context;

/// The authenticated sender of a request, with its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// A client with a key of the account. All operations on the account are allowed.
    Account,
    /// A client with an account SAS that is valid now and includes the table service.
    AccountSas(Box<AccountSas>),
    /// A client with a table SAS that is valid now.
    TableSas(Box<TableGrant>),
    /// A client with a bearer token that the verifier accepts.
    Token(TokenGrant),
}

/// The permissions of a table SAS, completed by the stored access policy that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableGrant {
    table: TableName,
    permissions: Permissions,
    keys: SasKeyRange,
}

/// Authenticates a request. Any of the account's keys is accepted.
///
/// `options` are those of the query string; `None` if it is malformed. `policies` looks up the
/// stored access policies of a table, for a signature that names one. It returns `None` for a
/// missing table.
pub(crate) fn authenticate(
    keys: &[SharedKey],
    tokens: &Tokens,
    context: &Context,
    head: &Parts,
    options: Option<&QueryOptions>,
    policies: impl FnOnce(&TableName) -> Result<Option<Arc<[SignedIdentifier]>>, ServiceError>,
) -> Result<Principal, ServiceError> {
    let query = head.uri.query().unwrap_or_default();
    let has_sas = SignedSas::is_in(query);
    let authorization = head.headers.get(header::AUTHORIZATION);
    let is_bearer = authorization.is_some_and(is_bearer);
    let user = || {
        if !is_bearer {
            return Ok(None);
        }
        let principal = authenticate_header(keys, tokens, context, head, options)?;
        Ok(principal.token_user())
    };
    // SERVICE: unsure. A user delegation SAS and a token belong together: the signature decides.
    let has_delegation = context.flavor.has_user_delegation() && SignedSas::is_delegated_in(query);
    if has_sas && is_bearer && has_delegation {
        // A token that is not valid is refused, also where the signature is for all users.
        let user = user()?;
        return sas::authenticate(keys, context, query, policies, || Ok(user));
    }
    if authorization.is_none() {
        if has_sas {
            return sas::authenticate(keys, context, query, policies, user);
        }
        return Err(refuse_anonymous(context));
    }
    // SERVICE: unsure. Clients that sign a URL with a SAS in it rely on this: the header wins.
    // Where the header is not valid, the usual emulator takes a SAS that is.
    authenticate_header(keys, tokens, context, head, options).or_else(|error| {
        if has_sas {
            sas::authenticate(keys, context, query, policies, || Ok(None)).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Authenticates a request by its `Authorization` header.
fn authenticate_header(
    keys: &[SharedKey],
    tokens: &Tokens,
    context: &Context,
    head: &Parts,
    options: Option<&QueryOptions>,
) -> Result<Principal, ServiceError> {
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
            let granted = tokens.authenticate(context, options, credential.trim())?;
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

/// Returns true if the header `Authorization` has the scheme of tokens.
fn is_bearer(credential: &HeaderValue) -> bool {
    let scheme = credential.as_bytes().split(|byte| *byte == b' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Bearer"))
}

/// The kind of credential of a request, valid or not, for the request log.
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

/// The error for a request without a credential.
fn refuse_anonymous(context: &Context) -> ServiceError {
    if knows_challenge(context) {
        ErrorCode::NoAuthenticationInformation.into()
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}

// SERVICE: older versions have no challenge. Dates of this form compare as strings.
fn knows_challenge(context: &Context) -> bool {
    context.version() >= Some("2019-12-12")
}
