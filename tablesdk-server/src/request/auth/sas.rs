//! Verifies shared access signatures: the signature of the account, the validity period, the client
//! address and the protocol.
//!
//! If the signature is invalid, the response says only that authentication failed. Permissions are
//! checked later. See
//! <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>.

use std::sync::Arc;

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::{
    Permissions, Sas, SasAddresses, SasKeyRange, SasProtocol, SasTime, Services, SignedSas,
};
use tablesdk_protocol::{ErrorCode, ServiceError, SignedIdentifier, TableName, Timestamp};

use super::delegation::{self, TokenUser};
use super::{Principal, TableGrant, policy};
use crate::request::context::Context;

/// Verifies the signature in the query string. `user` is the one that the token of the request
/// names.
///
/// The order of the checks is the service's.
pub(super) fn authenticate(
    keys: &[SharedKey],
    context: &Context,
    query: &str,
    policies: impl FnOnce(&TableName) -> Result<Option<Arc<[SignedIdentifier]>>, ServiceError>,
    user: impl FnOnce() -> Result<Option<TokenUser>, ServiceError>,
) -> Result<Principal, ServiceError> {
    let failed = || ServiceError::from(ErrorCode::AuthenticationFailed);
    let sas = SignedSas::parse(query).map_err(|_| failed())?;
    let delegation = match sas.sas() {
        Sas::Table(sas) => sas.delegation.as_deref(),
        Sas::Account(_) => None,
    };
    // Before the signature, which takes many attempts to check: most that are over end here.
    if let Some(delegation) = delegation {
        let (start, expiry) = (delegation.start.at(), delegation.expiry.at());
        check(context, (Some(start), expiry), None, None)?;
    }
    let of_signer = match delegation {
        // SERVICE: the other flavors do not know these fields, so that the signature is not one of
        // the account.
        Some(_) if !context.flavor.has_user_delegation() => None,
        Some(delegation) => delegation::signer(keys, &sas, delegation),
        None => sas.is_signed_by(keys).then(Permissions::all),
    };
    let of_signer = of_signer.ok_or_else(failed)?;
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
            if let Some(delegation) = &sas.delegation {
                let is_permitted = match delegation.user_id {
                    Some(_) => user()?.is_some_and(|user| user.may_use(delegation)),
                    None => true,
                };
                if !is_permitted {
                    return Err(failed());
                }
            }
            Ok(Principal::TableSas(Box::new(TableGrant {
                table: sas.table,
                permissions: delegation::common(terms.permissions, of_signer),
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
