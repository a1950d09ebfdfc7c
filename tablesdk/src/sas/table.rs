//! `sas` of a table client: a signature for entities of a table.

use std::fmt;
use std::ops::RangeInclusive;

use tablesdk_protocol::auth::sas::{
    FIRST_VERSION_WITH_DELEGATION, Permissions, Sas as Granted, SasKeyRange, SasTime, SasVersion,
    TableSas, UserDelegationKey,
};
use tablesdk_protocol::limits::POLICY_ID_LENGTH_MAX;
use tablesdk_protocol::{Guid, PartitionKey, TableName, Timestamp};

use super::key_range::{self, SasKeys};
use super::terms::{InvalidTerms, OPERATION, OptionProblem, Terms, refused, term_options};
use super::url::SasUrl;
use crate::entity::key::IntoPartitionKey;
use crate::error::Error;
use crate::pipeline::{PipelineHandle, Table};

/// Builds and signs a shared access signature for entities of a table. See
/// [`TableClient::sas`](crate::TableClient::sas).
///
/// Permissions add up. If another option is set twice, the last value counts. [`sign`](Self::sign)
/// reports bad input.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # for id in ["1", "5", "9"] {
/// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
/// # }
/// use std::net::Ipv4Addr;
/// use std::time::Duration;
/// use tablesdk::TableClient;
/// use tablesdk::sas::Permissions;
///
/// let url = table
///     .sas()
///     .allow(Permissions::READ | Permissions::DELETE)
///     .keys(Employee::key("Sales", "1")..=Employee::key("Sales", "5"))
///     .expires_in(Duration::from_secs(3600))
///     .ip(Ipv4Addr::LOCALHOST)
///     .sign()?;
///
/// // A client with the URL sees those entities alone.
/// let guest = TableClient::from_sas_url(&url.expose())?;
/// assert_eq!(guest.query::<Employee>().count().await?, 2);
/// assert!(guest.delete(Employee::key("Sales", "9")).await.unwrap_err().is_denied());
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is signed until `sign` is called"]
pub struct TableSasBuilder {
    table: Table,
    permissions: Permissions,
    policy: Option<Policy>,
    keys: SasKeyRange,
    user_id: Option<Guid>,
    terms: Terms,
}

#[derive(Debug)]
struct Policy {
    id: String,
    /// The signature may say what the policy leaves open.
    is_partial: bool,
}

impl TableSasBuilder {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            permissions: Permissions::default(),
            policy: None,
            keys: SasKeyRange::default(),
            user_id: None,
            terms: Terms::default(),
        }
    }

    /// Allows this as well.
    pub fn allow(mut self, permissions: Permissions) -> Self {
        self.permissions |= permissions;
        self
    }

    /// Covers the entities in that range of keys alone. Both ends are in it: `first..=last`,
    /// `first..`, or `..=last`.
    ///
    /// Outside the range, a get finds nothing, a query returns nothing, and a write is refused as
    /// `AuthorizationFailure`.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use tablesdk::TableClient;
    /// use tablesdk::sas::Permissions;
    /// # use std::time::Duration;
    /// # for id in ["001", "999"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    ///
    /// let url = table
    ///     .sas()
    ///     .allow(Permissions::READ)
    ///     .keys(Employee::key("Sales", "001")..=Employee::key("Sales", "499"))
    ///     .expires_in(Duration::from_secs(3600))
    ///     .sign()?;
    /// let guest = TableClient::from_sas_url(&url.expose())?;
    /// assert_eq!(guest.query::<Employee>().count().await?, 1);
    /// assert!(guest.get(Employee::key("Sales", "999")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(mut self, keys: impl SasKeys) -> Self {
        let ends = keys.into_ends().map_err(OptionProblem::from);
        let range = ends.and_then(|ends| key_range::between(ends).map_err(OptionProblem::from));
        self.keys = self.terms.note(range).unwrap_or_default();
        self
    }

    /// Covers one partition alone.
    pub fn partition(mut self, partition: impl IntoPartitionKey) -> Self {
        let key = partition.into_partition_key().map_err(OptionProblem::from);
        self.keys = self.partitions_between(key.map(|key| (key.clone(), key)));
        self
    }

    /// Covers the partitions from the first to the last alone, both included.
    pub fn partitions<P: IntoPartitionKey>(mut self, partitions: RangeInclusive<P>) -> Self {
        let (first, last) = partitions.into_inner();
        let first = first.into_partition_key().map_err(OptionProblem::from);
        let last = last.into_partition_key().map_err(OptionProblem::from);
        self.keys = self.partitions_between(first.and_then(|first| Ok((first, last?))));
        self
    }

    fn partitions_between(
        &mut self,
        ends: Result<(PartitionKey, PartitionKey), OptionProblem>,
    ) -> SasKeyRange {
        let range = ends.and_then(|(first, last)| {
            key_range::partitions(first, last).map_err(OptionProblem::from)
        });
        self.terms.note(range).unwrap_or_default()
    }

    /// Grants what a [stored access policy](super::StoredAccessPolicy) of the table says,
    /// permissions and times: it can be changed, and deleted, after the signature was given away.
    ///
    /// The policy sets everything: permissions and times of the signature itself are an error here.
    /// For a policy that leaves some of them open, use
    /// [`with_partial_policy`](Self::with_partial_policy).
    pub fn with_policy(self, id: impl Into<String>) -> Self {
        self.policy(id.into(), false)
    }

    /// Grants what a [stored access policy](super::StoredAccessPolicy) of the table grants. The
    /// signature itself sets what the policy leaves open: permissions, start or expiry. If both set
    /// the same one, the service refuses the request with `AuthenticationFailed`.
    pub fn with_partial_policy(self, id: impl Into<String>) -> Self {
        self.policy(id.into(), true)
    }

    // Two methods, because the service refuses a signature that repeats what the policy says, and
    // the client does not know the policy. The usual form takes nothing in addition to the policy.
    fn policy(mut self, id: String, is_partial: bool) -> Self {
        let length = id.chars().count();
        if length == 0 || length > POLICY_ID_LENGTH_MAX || id.chars().any(char::is_control) {
            self.terms.note::<(), _>(Err(InvalidTerms::PolicyId));
        }
        self.policy = Some(Policy { id, is_partial });
        self
    }

    /// Allows only this user of Microsoft Entra ID, by object id. A request then needs the
    /// signature and a token of that user, which [`EntraId::with_sas`](crate::EntraId::with_sas)
    /// sends. Only a [user delegation key](UserDelegationKey) signs it.
    pub const fn for_user(mut self, object_id: Guid) -> Self {
        self.user_id = Some(object_id);
        self
    }

    /// Signs it with the account key that the client has. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the service would refuse the signature,
    /// or when the signature would be useless: it allows nothing, never expires, expires before it
    /// starts or has expired, its keys end before they start, it has a policy and terms of its own,
    /// or the name of the table breaks the rules.
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) when the client has no account
    /// key.
    pub fn sign(self) -> Result<SasUrl, Error> {
        if self.user_id.is_some() {
            return Err(refused(InvalidTerms::UserWithoutDelegation));
        }
        let unsigned = self.unsigned()?;
        let table = Some(unsigned.sas.table.clone());
        SasUrl::sign(&unsigned.table.pipeline, table, unsigned.sas.into())
    }

    /// Signs it with a user delegation key, which any client of the account can have
    /// [got](crate::TableServiceClient::user_delegation_key). Nothing is sent. The signature allows
    /// what both the options here and the roles of the user of the key allow.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) as for [`sign`](Self::sign), and when the
    /// signature is valid longer than the key, names a stored access policy, or the key is one of
    /// another account.
    pub fn sign_with(self, key: &UserDelegationKey) -> Result<SasUrl, Error> {
        self.delegated()?.sign_with(key)
    }

    /// The checked fields for a user delegation key.
    pub(crate) fn delegated(self) -> Result<Unsigned, Error> {
        if self.policy.is_some() {
            return Err(refused(InvalidTerms::PolicyAndDelegation));
        }
        self.unsigned()
    }

    pub(crate) const fn pipeline(&self) -> &PipelineHandle {
        &self.table.pipeline
    }

    fn unsigned(mut self) -> Result<Unsigned, Error> {
        let pipeline = &self.table.pipeline;
        let name: TableName = self.table.checked_name(OPERATION)?;
        if self.keys != SasKeyRange::default() && !pipeline.has_sas_keys() {
            return Err(refused(InvalidTerms::KeysOnCosmosDb));
        }
        let (start, expiry) = self.terms.times(pipeline.now())?;
        let permissions = Some(self.permissions).filter(|permissions| !permissions.is_empty());
        let mut sas = match self.policy {
            Some(Policy { id, is_partial }) => {
                let says_anything = permissions.is_some() || start.is_some() || expiry.is_some();
                if says_anything && !is_partial {
                    return Err(refused(InvalidTerms::PolicyAndTerms));
                }
                let mut sas = TableSas::with_policy(name.clone(), id);
                sas.permissions = permissions.map(Into::into);
                sas.expiry = expiry;
                sas
            }
            None => {
                let permissions = permissions.ok_or_else(|| refused(InvalidTerms::NoPermission))?;
                let expiry = expiry.ok_or_else(|| refused(InvalidTerms::NoExpiry))?;
                TableSas::new(name.clone(), permissions, expiry)
            }
        };
        sas.start = start;
        sas.addresses = self.terms.addresses;
        sas.protocol = self.terms.protocol;
        sas.keys = self.keys;
        Ok(Unsigned {
            table: self.table,
            user_id: self.user_id,
            sas,
        })
    }
}

/// A shared access signature that has been checked.
pub(crate) struct Unsigned {
    table: Table,
    user_id: Option<Guid>,
    sas: TableSas,
}

impl Unsigned {
    /// Until when it is valid; a policy may say so, and then it is not known here.
    pub(crate) fn expiry(&self) -> Timestamp {
        self.sas.expiry.as_ref().map_or(Timestamp::MAX, SasTime::at)
    }

    pub(crate) fn sign_with(self, key: &UserDelegationKey) -> Result<SasUrl, Error> {
        let account = self.table.endpoint().account();
        if account.is_some_and(|account| account != key.key().account()) {
            return Err(refused(InvalidTerms::OtherAccount));
        }
        if self.expiry() > key.expires_at() {
            return Err(refused(InvalidTerms::OutlivesKey(key.expires_at())));
        }
        let mut sas = self.sas;
        let mut delegation = key.delegation().clone();
        delegation.user_id = self.user_id.map(Into::into);
        sas.version = SasVersion::parse(FIRST_VERSION_WITH_DELEGATION).map_err(refused)?;
        sas.delegation = Some(Box::new(delegation));
        let (endpoint, table) = (self.table.endpoint(), sas.table.clone());
        SasUrl::signed_by(key.key(), endpoint, Some(table), Granted::from(sas))
    }
}

term_options!(TableSasBuilder);

impl fmt::Debug for TableSasBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSasBuilder")
            .field("table", &self.table.name())
            .field("permissions", &self.permissions)
            .field("policy", &self.policy)
            .field("keys", &self.keys)
            .field("user_id", &self.user_id)
            .field("terms", &self.terms)
            .finish()
    }
}
