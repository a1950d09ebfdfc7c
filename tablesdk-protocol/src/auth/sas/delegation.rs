//! The user delegation SAS: a table SAS that a key of an Entra ID user signed, and not a key of the
//! account.
//!
//! Knows the fields, the layout of what is signed, and the key. Which keys exist is the service's.
//! See <https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>.
// SERVICE: all of it is from the documentation; no exchange was recorded.

use std::fmt;

use super::{Fields, InvalidSasError, SasGuid, SasTime, SasVersion};
use crate::auth::{InvalidKeyError, SharedKey};
use crate::types::{Guid, Timestamp};

/// The fields of a user delegation SAS that name its key and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delegation {
    /// `skoid`: the user who got the key.
    pub object_id: SasGuid,
    /// `sktid`: the tenant of that user.
    pub tenant_id: SasGuid,
    /// `skt`: from when on the key is valid.
    pub start: SasTime,
    /// `ske`: until when the key is valid.
    pub expiry: SasTime,
    /// `skv`: the version of the request that got the key.
    pub version: SasVersion,
    /// `skdutid`: the tenant of the users that signatures may name.
    pub user_tenant_id: Option<SasGuid>,
    /// `sduoid`: the only user who may use the signature.
    pub user_id: Option<SasGuid>,
}

impl Delegation {
    /// The fields of a key that is for all users.
    pub fn new(
        object_id: Guid,
        tenant_id: Guid,
        start: impl Into<SasTime>,
        expiry: impl Into<SasTime>,
        version: SasVersion,
    ) -> Self {
        Self {
            object_id: object_id.into(),
            tenant_id: tenant_id.into(),
            start: start.into(),
            expiry: expiry.into(),
            version,
            user_tenant_id: None,
            user_id: None,
        }
    }

    /// `None` if the query has none of the fields.
    pub(super) fn parse(fields: &Fields<'_>) -> Result<Option<Self>, InvalidSasError> {
        let missing = |field| InvalidSasError { field };
        let Some(object_id) = fields.parse("skoid", SasGuid::parse)? else {
            fields.refuse(&DELEGATION_FIELDS)?;
            return Ok(None);
        };
        fields.refuse(&["si"])?;
        if fields.require("sks")? != SERVICE {
            return Err(missing("sks"));
        }
        let version = SasVersion::parse(fields.require("skv")?).map_err(|_| missing("skv"))?;
        if version.is_before(FIRST_VERSION_WITH_DELEGATION) {
            return Err(missing("skv"));
        }
        let tenant_id = fields.parse("sktid", SasGuid::parse)?;
        let start = fields.parse("skt", SasTime::parse)?;
        let expiry = fields.parse("ske", SasTime::parse)?;
        Ok(Some(Self {
            object_id,
            tenant_id: tenant_id.ok_or_else(|| missing("sktid"))?,
            start: start.ok_or_else(|| missing("skt"))?,
            expiry: expiry.ok_or_else(|| missing("ske"))?,
            version,
            user_tenant_id: fields.parse("skdutid", SasGuid::parse)?,
            user_id: fields.parse("sduoid", SasGuid::parse)?,
        }))
    }

    /// In the order in which they are signed, and stand in a URL.
    pub(super) fn fields(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("skoid", Some(self.object_id.as_str())),
            ("sktid", Some(self.tenant_id.as_str())),
            ("skt", Some(self.start.as_str())),
            ("ske", Some(self.expiry.as_str())),
            ("sks", Some(SERVICE)),
            ("skv", Some(self.version.as_str())),
            ("skdutid", self.user_tenant_id.as_ref().map(SasGuid::as_str)),
            ("sduoid", self.user_id.as_ref().map(SasGuid::as_str)),
        ]
    }

    /// The values of the fields, in the order in which they are signed; empty where one is absent.
    pub fn signed_values(&self) -> [&str; 8] {
        self.fields().map(|(_, value)| value.unwrap_or_default())
    }
}

/// The terms of a user delegation key, as a request names them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyTerms {
    /// From when on the key is valid; `None` for the time of the request.
    pub start: Option<SasTime>,
    /// Until when the key is valid.
    pub expiry: SasTime,
    /// The tenant of the users that signatures of the key may name.
    pub user_tenant_id: Option<SasGuid>,
}

impl KeyTerms {
    /// The terms of a key that is valid between two times.
    pub const fn new(start: Option<SasTime>, expiry: SasTime) -> Self {
        Self {
            start,
            expiry,
            user_tenant_id: None,
        }
    }
}

/// A user delegation key: signs for the entities of tables until it expires, with the rights of the
/// user who got it.
///
/// `Debug` does not show its value, which is wiped when the key is dropped.
#[derive(Clone)]
pub struct UserDelegationKey {
    delegation: Delegation,
    key: SharedKey,
}

impl UserDelegationKey {
    /// A key of an account, with its value in Base64.
    ///
    /// # Errors
    ///
    /// When the value is not Base64, or empty. The error never holds the value.
    #[doc(hidden)]
    pub fn new(
        account: &str,
        delegation: Delegation,
        value: &str,
    ) -> Result<Self, InvalidKeyError> {
        let key = SharedKey::new(account, value)?;
        Ok(Self { delegation, key })
    }

    /// The object id of the user who got the key, in Microsoft Entra ID.
    pub const fn object_id(&self) -> Guid {
        self.delegation.object_id.id()
    }

    /// The tenant of that user.
    pub const fn tenant_id(&self) -> Guid {
        self.delegation.tenant_id.id()
    }

    /// The time from which the key is valid.
    pub const fn starts_at(&self) -> Timestamp {
        self.delegation.start.at()
    }

    /// The time until which the key is valid. No signature of the key is valid longer.
    pub const fn expires_at(&self) -> Timestamp {
        self.delegation.expiry.at()
    }

    /// The fields that each signature of the key repeats.
    #[doc(hidden)]
    pub const fn delegation(&self) -> &Delegation {
        &self.delegation
    }

    /// The account, and the value as a key of it.
    #[doc(hidden)]
    pub const fn key(&self) -> &SharedKey {
        &self.key
    }
}

impl fmt::Debug for UserDelegationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDelegationKey")
            .field("account", &self.key.account())
            .field("object_id", &self.object_id())
            .field("tenant_id", &self.tenant_id())
            .field("starts_at", &self.starts_at())
            .field("expires_at", &self.expires_at())
            .finish_non_exhaustive()
    }
}

/// The names of the fields that only a user delegation SAS has.
pub(super) const DELEGATION_FIELDS: [&str; 8] = [
    "skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid", "sduoid",
];

/// From this version on there is a user delegation SAS for tables.
pub const FIRST_VERSION_WITH_DELEGATION: &str = "2025-07-05";

/// `sks`: the table service.
const SERVICE: &str = "t";
