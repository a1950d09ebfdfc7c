//! `sas` of a service client: a signature for an account.

use tablesdk_protocol::auth::sas::{
    AccountPermissions, AccountSas, ResourceTypes, Sas as Granted, Services,
};

use super::terms::{InvalidTerms, Terms, refused, term_options};
use super::url::SasUrl;
use crate::error::Error;
use crate::pipeline::PipelineHandle;

/// Builds and signs a shared access signature for an account. See
/// [`TableServiceClient::sas`](crate::TableServiceClient::sas).
///
/// Permissions and kinds of resource add up. If another option is set twice, the last value counts.
/// [`sign`](Self::sign) reports bad input.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use std::time::{Duration, SystemTime};
/// use tablesdk::TableServiceClient;
/// use tablesdk::sas::{AccountPermissions, ResourceTypes};
///
/// let url = service
///     .sas()
///     .on(ResourceTypes::OBJECT)
///     .allow(AccountPermissions::READ | AccountPermissions::ADD)
///     .starts_at(SystemTime::now() - Duration::from_secs(600)) // clocks differ
///     .expires_in(Duration::from_secs(3600))
///     .sign()?;
///
/// // Entities of all tables, but not the tables themselves.
/// let guest = TableServiceClient::from_sas_url(&url.expose())?;
/// guest.table("Employees").insert(&Employee::new("Sales", "1", "Ada")).await?;
/// assert!(guest.table("Employees").delete_table().await.unwrap_err().is_denied());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is signed until `sign` is called"]
pub struct AccountSasBuilder {
    pipeline: PipelineHandle,
    services: Services,
    resource_types: ResourceTypes,
    permissions: AccountPermissions,
    terms: Terms,
}

impl AccountSasBuilder {
    pub(crate) fn new(pipeline: PipelineHandle) -> Self {
        Self {
            pipeline,
            services: Services::TABLE,
            resource_types: ResourceTypes::default(),
            permissions: AccountPermissions::default(),
            terms: Terms::default(),
        }
    }

    /// Allows this as well, with every kind of resource that it holds for.
    pub fn allow(mut self, permissions: AccountPermissions) -> Self {
        self.permissions |= permissions;
        self
    }

    /// Makes the signature valid for this kind of resource as well. Without any kind, the signature
    /// is valid for nothing.
    pub fn on(mut self, resource_types: ResourceTypes) -> Self {
        self.resource_types |= resource_types;
        self
    }

    /// Makes the signature valid for these services; for tables by default. Tables must be among
    /// them.
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Signs it with the account key that the client has. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the service would refuse it, or it would
    /// be of no use: nothing is allowed, there is no kind of resource, tables are not among the
    /// services, it never expires, expires before it starts or has expired.
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) when the client has no account
    /// key.
    pub fn sign(mut self) -> Result<SasUrl, Error> {
        let (start, expiry) = self.terms.times(self.pipeline.now())?;
        let expiry = expiry.ok_or_else(|| refused(InvalidTerms::NoExpiry))?;
        for (is_missing, problem) in [
            (self.permissions.is_empty(), InvalidTerms::NoPermission),
            (self.resource_types.is_empty(), InvalidTerms::NoResourceType),
            (
                !self.services.contains(Services::TABLE),
                InvalidTerms::NoTables,
            ),
        ] {
            if is_missing {
                return Err(refused(problem));
            }
        }
        let mut sas = AccountSas::new(self.services, self.resource_types, self.permissions, expiry);
        sas.start = start;
        sas.addresses = self.terms.addresses;
        sas.protocol = self.terms.protocol;
        SasUrl::sign(&self.pipeline, None, Granted::from(sas))
    }
}

term_options!(AccountSasBuilder);
