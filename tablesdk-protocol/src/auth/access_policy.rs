//! Stored access policies: what a table keeps for shared access signatures that name it.
//!
//! Knows neither how they travel nor how they are stored. See
//! <https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy>.

use std::collections::HashSet;

use crate::auth::sas::{Permissions, SasLetters};
use crate::types::Timestamp;
use crate::types::limits::{POLICIES_MAX, POLICY_ID_LENGTH_MAX};

/// A stored access policy of a table, under its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the service has these two")]
pub struct SignedIdentifier {
    /// The id by which a shared access signature names the policy, in its field `si`: 1 to 64
    /// characters.
    pub id: String,
    /// The policy.
    pub policy: AccessPolicy,
}

/// A stored access policy. `None` leaves a field to the shared access signature that names the
/// policy; a field that is set here must be absent there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the service has these three")]
pub struct AccessPolicy {
    /// From when on it grants anything.
    pub start: Option<Timestamp>,
    /// Until when.
    pub expiry: Option<Timestamp>,
    /// The permissions that it grants.
    pub permissions: Option<SasLetters<Permissions>>,
}

impl AccessPolicy {
    /// Returns true if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks the policies of one table.
///
/// # Errors
///
/// When there are more than five, or an id is empty, longer than 64 characters, or repeated. The
/// service would return `InvalidXmlDocument`.
pub fn check_signed_identifiers(
    identifiers: &[SignedIdentifier],
) -> Result<(), SignedIdentifierError> {
    if identifiers.len() > POLICIES_MAX {
        return Err(SignedIdentifierError::TooMany);
    }
    let mut ids = HashSet::new();
    for SignedIdentifier { id, .. } in identifiers {
        let length = id.chars().count();
        if length == 0 || length > POLICY_ID_LENGTH_MAX || id.chars().any(char::is_control) {
            return Err(SignedIdentifierError::Id);
        }
        if !ids.insert(id) {
            return Err(SignedIdentifierError::Duplicate { id: id.clone() });
        }
    }
    Ok(())
}

/// An error in the stored access policies of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignedIdentifierError {
    /// The same id twice.
    #[error("two stored access policies have the id {id:?}")]
    Duplicate {
        /// The id.
        id: String,
    },
    /// An invalid id.
    #[error("the id of a stored access policy has 1 to 64 characters, and no control characters")]
    Id,
    /// More than the service takes.
    #[error("a table has at most five stored access policies")]
    TooMany,
}
