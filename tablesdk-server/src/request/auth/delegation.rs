//! User delegation keys: the server issues a key to the user of a token, and checks the signatures
//! that were made with it.
//!
//! No key is stored. The value of a key is an HMAC of its fields by the key of the account, so that
//! servers over one database agree, a key outlives a restart, and replacing the key of the account
//! revokes it. This module knows no table and no operation. See
//! <https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>.

use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::{
    Delegation, FIRST_VERSION_WITH_DELEGATION, KeyTerms, Permissions, SasGuid, SasTime, SasVersion,
    SignedSas, UserDelegationKey,
};
use tablesdk_protocol::{ErrorCode, Guid, ServiceError, Timestamp};

use super::{Principal, TokenAction, TokenGrant};

/// The user that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenUser {
    pub(super) tenant_id: Guid,
    pub(super) object_id: Guid,
}

impl TokenUser {
    /// Returns true if a signature that names a user names this one.
    // SERVICE: without a tenant of its own, the user is one of the tenant of the key.
    pub(super) fn may_use(self, delegation: &Delegation) -> bool {
        let tenant = delegation.user_tenant_id.as_ref();
        let tenant = tenant.unwrap_or(&delegation.tenant_id).id();
        let user = delegation.user_id.as_ref().map(SasGuid::id);
        user == Some(self.object_id) && tenant == self.tenant_id
    }
}

impl Principal {
    /// The key for the user of a token.
    ///
    /// # Errors
    ///
    /// When the credential is no token, its token names no user or may not have a key, or a time is
    /// out of range.
    pub(crate) fn issue(
        &self,
        account_key: &SharedKey,
        version: Option<&str>,
        now: Timestamp,
        terms: &KeyTerms,
    ) -> Result<UserDelegationKey, ServiceError> {
        let (grant, user) = self.user()?;
        let start = terms.start.clone().unwrap_or_else(|| now.into());
        let longest = now.saturating_add(LIFETIME_MAX);
        let end = terms.expiry.at();
        // SERVICE: the documentation has the limits, but not the errors.
        if end <= now || end <= start.at() || end > longest || start.at() > longest {
            return Err(ErrorCode::InvalidXmlNodeValue.into());
        }
        let version = version.unwrap_or(FIRST_VERSION_WITH_DELEGATION);
        let version = SasVersion::parse(version);
        let version = version.map_err(|_| ServiceError::from(ErrorCode::InvalidHeaderValue))?;
        let (object_id, tenant_id) = (user.object_id, user.tenant_id);
        // SERVICE: times of a key have no fractions of a second.
        let (start, end) = (SasTime::from(start.at()), SasTime::from(end));
        let mut delegation = Delegation::new(object_id, tenant_id, start, end, version);
        delegation.user_tenant_id.clone_from(&terms.user_tenant_id);
        let value = value(account_key, &delegation, rights(grant));
        let key = UserDelegationKey::new(account_key.account(), delegation, value.expose());
        key.map_err(|_| ErrorCode::InternalError.into())
    }

    fn user(&self) -> Result<(TokenGrant, TokenUser), ServiceError> {
        let Self::Token(grant) = self else {
            // SERVICE: as for blobs.
            let message = "Only authentication scheme Bearer is supported";
            return Err(ServiceError::new(ErrorCode::AuthenticationFailed, message));
        };
        if !grant.allows(TokenAction::GetUserDelegationKey) {
            return Err(ErrorCode::AuthorizationPermissionMismatch.into());
        }
        let user = grant.user().ok_or_else(|| {
            let message = "The token names no user, so there is no user delegation key for it: the token verifier calls TokenGrant::of_user.";
            ServiceError::new(ErrorCode::AuthorizationFailure, message)
        })?;
        Ok((*grant, user))
    }
}

/// The permissions of the user who got the key that made a signature. `None` if no such key made
/// it.
// SERVICE: the service looks up the roles of the user at each request. Here they are those of the
// token that got the key, and part of its value: each set of them is tried, the largest first.
pub(super) fn signer(
    account_keys: &[SharedKey],
    sas: &SignedSas,
    delegation: &Delegation,
) -> Option<Permissions> {
    for key in account_keys {
        let account = key.account();
        let text = sas.sas().string_to_sign(account);
        for rights in each_set() {
            let value = value(key, delegation, rights);
            let key = SharedKey::new(account, value.expose()).ok()?;
            // The holder of the key knows the rights: the duration reveals nothing else.
            if sas.has_signature(&key.sign(&text)) {
                return Some(rights);
            }
        }
    }
    None
}

/// The value of a key: what an account key signs begins with a verb, an account, a permission or a
/// time, and never with these words.
fn value(
    account_key: &SharedKey,
    delegation: &Delegation,
    rights: Permissions,
) -> tablesdk_protocol::auth::Signature {
    let mut key = delegation.clone();
    key.user_id = None;
    let fields = key.signed_values().join("\n");
    let account = account_key.account();
    account_key.sign(&format!(
        "user delegation key\n{account}\n{rights}\n{fields}"
    ))
}

/// The permissions of a token on entities.
fn rights(grant: TokenGrant) -> Permissions {
    let allowed = RIGHTS.iter().filter(|(action, _)| grant.allows(*action));
    allowed.fold(Permissions::empty(), |set, (_, right)| set | *right)
}

fn each_set() -> impl Iterator<Item = Permissions> {
    (0..1 << RIGHTS.len()).rev().map(|set: u32| {
        let chosen = RIGHTS.iter().enumerate();
        let chosen = chosen.filter(|(index, _)| set & (1 << index) != 0);
        chosen.fold(Permissions::empty(), |all, (_, (_, right))| all | *right)
    })
}

/// The permissions of both.
pub(super) fn common(of_sas: Permissions, of_signer: Permissions) -> Permissions {
    let rights = RIGHTS.iter().map(|(_, right)| *right);
    let both = rights.filter(|right| of_sas.contains(*right) && of_signer.contains(*right));
    both.fold(Permissions::empty(), Permissions::union)
}

const RIGHTS: [(TokenAction, Permissions); 4] = [
    (TokenAction::ReadEntities, Permissions::READ),
    (TokenAction::AddEntities, Permissions::ADD),
    (TokenAction::UpdateEntities, Permissions::UPDATE),
    (TokenAction::DeleteEntities, Permissions::DELETE),
];

/// From the request on.
const LIFETIME_MAX: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 60 * 60);
