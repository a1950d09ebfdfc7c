//! Verifies shared access signatures: the signature of the account, the validity period, the client address and the protocol.
//!
//! If the signature is invalid, the response says only that authentication failed. Permissions are checked later. See
//! <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>.

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::{Sas, SasAddresses, SasProtocol, SasTime, Services, SignedSas};
use tablesdk_protocol::{ErrorCode, ServiceError, SignedIdentifier, TableName, Timestamp};

use super::{Principal, TableGrant, policy};
use crate::request::context::Context;

/// Verifies the signature in the query string. The order of the checks is the service's.
pub(super) fn authenticate(
    keys: &[SharedKey],
    context: &Context,
    query: &str,
    policies: impl FnOnce(&TableName) -> Result<Option<Vec<SignedIdentifier>>, ServiceError>,
) -> Result<Principal, ServiceError> {
    let failed = || ServiceError::from(ErrorCode::AuthenticationFailed);
    let sas = SignedSas::parse(query).map_err(|_| failed())?;
    if !sas.is_signed_by(keys) {
        return Err(failed());
    }
    match sas.into_sas() {
        Sas::Account(sas) => {
            let start = sas.start.as_ref().map(SasTime::at);
            check_time(context, start, sas.expiry.at())?;
            check_address(context, sas.addresses.as_ref())?;
            check_protocol(context, sas.protocol)?;
            if !sas.services.set().contains(Services::TABLE) {
                return Err(ErrorCode::AuthorizationServiceMismatch.into());
            }
            Ok(Principal::AccountSas(Box::new(sas)))
        }
        Sas::Table(sas) => {
            let stored = match &sas.policy {
                Some(_) => policies(&sas.table)?.unwrap_or_default(),
                None => Vec::new(),
            };
            let terms = policy::terms(&sas, &stored).ok_or_else(failed)?;
            check_time(context, terms.start, terms.expiry)?;
            check_address(context, sas.addresses.as_ref())?;
            check_protocol(context, sas.protocol)?;
            Ok(Principal::TableSas(Box::new(TableGrant {
                table: sas.table,
                permissions: terms.permissions,
                keys: sas.keys,
            })))
        }
    }
}

/// The clock of the client is given no tolerance, unlike for the date of a signed request.
fn check_time(
    context: &Context,
    start: Option<Timestamp>,
    expiry: Timestamp,
) -> Result<(), ServiceError> {
    let has_started = start.is_none_or(|start| start <= context.now);
    if has_started && context.now < expiry {
        Ok(())
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
}

/// A request without a socket has no address, so it never has an allowed one.
fn check_address(context: &Context, allowed: Option<&SasAddresses>) -> Result<(), ServiceError> {
    let is_allowed = allowed.is_none_or(|allowed| {
        let peer = context.peer;
        peer.is_some_and(|peer| allowed.contains(peer))
    });
    if is_allowed {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationSourceIPMismatch.into())
    }
}

fn check_protocol(context: &Context, allowed: Option<SasProtocol>) -> Result<(), ServiceError> {
    if allowed == Some(SasProtocol::Https) && !context.endpoint().is_https() {
        Err(ErrorCode::AuthorizationProtocolMismatch.into())
    } else {
        Ok(())
    }
}
