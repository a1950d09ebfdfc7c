//! Verifies shared access signatures: the signature of the account, the validity period, the client
//! address and the protocol.
//!
//! If the signature is invalid, the response says only that authentication failed. Permissions are
//! checked later. See
//! <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>.

use std::sync::Arc;

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::{
    Sas, SasAddresses, SasKeyRange, SasProtocol, SasTime, Services, SignedSas,
};
use tablesdk_protocol::{ErrorCode, ServiceError, SignedIdentifier, TableName, Timestamp};

use super::{Principal, TableGrant, policy};
use crate::request::context::Context;

/// Verifies the signature in the query string. The order of the checks is the service's.
pub(super) fn authenticate(
    keys: &[SharedKey],
    context: &Context,
    query: &str,
    policies: impl FnOnce(&TableName) -> Result<Option<Arc<[SignedIdentifier]>>, ServiceError>,
) -> Result<Principal, ServiceError> {
    let failed = || ServiceError::from(ErrorCode::AuthenticationFailed);
    let sas = SignedSas::parse(query).map_err(|_| failed())?;
    if !sas.is_signed_by(keys) {
        return Err(failed());
    }
    match sas.into_sas() {
        Sas::Account(sas) => {
            let start = sas.start.as_ref().map(SasTime::at);
            let period = (start, sas.expiry.at());
            check(context, period, sas.addresses.as_ref(), sas.protocol)?;
            if !sas.services.set().contains(Services::TABLE) {
                return Err(ErrorCode::AuthorizationServiceMismatch.into());
            }
            Ok(Principal::AccountSas(Box::new(sas)))
        }
        Sas::Table(sas) => {
            if !context.flavor.has_sas_keys() && sas.keys != SasKeyRange::default() {
                let message =
                    "Shared access signature with PartitionKey or RowKey are not supported";
                return Err(ServiceError::new(ErrorCode::NotImplemented, message));
            }
            let stored = match &sas.policy {
                Some(_) => policies(&sas.table)?.unwrap_or_default(),
                None => Arc::default(),
            };
            let terms = policy::terms(&sas, &stored).ok_or_else(failed)?;
            let period = (terms.start, terms.expiry);
            check(context, period, sas.addresses.as_ref(), sas.protocol)?;
            Ok(Principal::TableSas(Box::new(TableGrant {
                table: sas.table,
                permissions: terms.permissions,
                keys: if context.flavor.checks_sas_keys() {
                    sas.keys
                } else {
                    SasKeyRange::default()
                },
            })))
        }
    }
}

/// Checks the conditions of a signature in the order of the service.
fn check(
    context: &Context,
    (start, expiry): (Option<Timestamp>, Timestamp),
    addresses: Option<&SasAddresses>,
    protocol: Option<SasProtocol>,
) -> Result<(), ServiceError> {
    // The clock of the client is given no tolerance, unlike for the date of a signed request.
    let is_valid_now = start.is_none_or(|start| start <= context.now) && context.now < expiry;
    // A request without a socket has no address, so it never has an allowed one.
    let addresses = addresses.filter(|_| context.flavor.checks_sas_addresses());
    let is_allowed_address =
        addresses.is_none_or(|allowed| context.peer.is_some_and(|peer| allowed.contains(peer)));
    let is_allowed_protocol = protocol != Some(SasProtocol::Https) || context.endpoint().is_https();
    Err(if !is_valid_now {
        ErrorCode::AuthenticationFailed.into()
    } else if !is_allowed_address {
        ErrorCode::AuthorizationSourceIPMismatch.into()
    } else if !is_allowed_protocol {
        ErrorCode::AuthorizationProtocolMismatch.into()
    } else {
        return Ok(());
    })
}
