//! `user_delegation_key`: Get User Delegation Key; and `delegate` of a signature, which gets a key
//! when the client has none that is valid long enough.

use std::sync::Arc;
use std::time::Duration;

use tablesdk_protocol::auth::sas::{KeyTerms, SasTime, UserDelegationKey};
use tablesdk_protocol::limits::CLOCK_SKEW_SECONDS_MAX;
use tablesdk_protocol::operation::user_delegation_key::{Request, Response};
use tablesdk_protocol::{Guid, Timestamp};

use super::Action;
use crate::action::refusal::{malformed, refused};
use crate::error::Error;
use crate::pipeline::{Effect, PipelineHandle};
use crate::sas::{SasUrl, TableSasBuilder};

/// Gets a [`UserDelegationKey`]. See
/// [`TableServiceClient::user_delegation_key`](crate::TableServiceClient::user_delegation_key).
#[derive(Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct GetUserDelegationKey {
    pipeline: PipelineHandle,
    lifetime: Duration,
    user_tenant_id: Option<Guid>,
}

impl GetUserDelegationKey {
    pub(crate) const fn new(pipeline: PipelineHandle, lifetime: Duration) -> Self {
        Self {
            pipeline,
            lifetime,
            user_tenant_id: None,
        }
    }

    /// The tenant of the users that signatures of the key may
    /// [name](TableSasBuilder::for_user). Without it, they are users of the tenant of the key.
    pub const fn for_users_of(mut self, tenant_id: Guid) -> Self {
        self.user_tenant_id = Some(tenant_id);
        self
    }

    async fn run(self) -> Result<UserDelegationKey, Error> {
        if self.lifetime.is_zero() || self.lifetime > LIFETIME_MAX {
            return Err(refused(OPERATION, InvalidLifetime));
        }
        let expiry = self.pipeline.service_now().saturating_add(self.lifetime);
        get(self.pipeline, expiry, self.user_tenant_id).await
    }
}

action!(impl[] GetUserDelegationKey, pipeline => UserDelegationKey);

impl TableSasBuilder {
    /// Signs it with a user delegation key of the client, whose credential is an
    /// [`EntraId`](crate::EntraId). The client keeps the key for all signatures: the first one
    /// sends a request, and then one in six days does, however many callers wait for it. Each
    /// signature that is valid for longer sends one.
    ///
    /// The client does not learn that the account has revoked its keys, or that a role has changed:
    /// [`update_credential`](crate::TableServiceClient::update_credential) makes it get a new key.
    ///
    /// ```no_run
    /// # async fn sign(table: tablesdk::TableClient) -> Result<(), tablesdk::Error> {
    /// use std::time::Duration;
    /// use tablesdk::sas::Permissions;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let url = table.sas().allow(Permissions::READ).expires_in(hour).delegate().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The [guide](crate::guide::credentials#user-delegation) has a program that runs.
    ///
    /// # Errors
    ///
    /// The errors of [`sign_with`](Self::sign_with), before anything is sent. A signature may be
    /// valid for seven days. [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) when the
    /// client has no tokens. `AuthorizationPermissionMismatch` when the roles of its identity do
    /// not allow it to get a key.
    pub fn delegate(self) -> Action<SasUrl> {
        let pipeline = self.pipeline().clone();
        Action::new(&pipeline, |pipeline| async move {
            let unsigned = self.delegated()?;
            let key = kept(pipeline, unsigned.expiry()).await?;
            unsigned.sign_with(&key)
        })
    }
}

/// The key that the credential of the client keeps, if it is valid until then; or a new one.
async fn kept(pipeline: PipelineHandle, until: Timestamp) -> Result<UserDelegationKey, Error> {
    // By the clock that made `until`: that of the service may be a second behind.
    if until > pipeline.now().saturating_add(LIFETIME_MAX) {
        return Err(refused(OPERATION, InvalidLifetime));
    }
    let now = pipeline.service_now();
    let get = || {
        let expiry = until.max(now.saturating_add(KEPT));
        let got = get(pipeline.clone(), expiry, None);
        async move { got.await.map_err(Arc::new) }
    };
    let key = pipeline.kept_key(until, get).await;
    key.map_err(|error| error.with_operation(OPERATION))
}

async fn get(
    pipeline: PipelineHandle,
    expiry: Timestamp,
    user_tenant_id: Option<Guid>,
) -> Result<UserDelegationKey, Error> {
    let endpoint = &pipeline.endpoint;
    let account = endpoint.account().ok_or_else(|| {
        let problem = "the endpoint does not name the account, which is a part of each signature: use the account's own host, and not a custom domain";
        Error::configuration_message(problem).with_operation(OPERATION)
    })?;
    // The clock of the service may be behind.
    let start = pipeline.service_now().saturating_sub(AHEAD);
    let mut terms = KeyTerms::new(Some(SasTime::from(start)), SasTime::from(expiry));
    terms.user_tenant_id = user_tenant_id.map(Into::into);
    let request = Request { terms }.encode(endpoint);
    let response = pipeline.send(OPERATION, Effect::ReadNow, &request).await?;
    let response = Response::decode(account, &response);
    Ok(response.map_err(|error| malformed(OPERATION, error))?.key)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "a user delegation key, and a signature that it makes, is valid for at most seven days, and for more than no time"
)]
struct InvalidLifetime;

const OPERATION: &str = "get user delegation key";

const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long a key that the client keeps is valid: less than the service allows, since its clock may
/// be behind.
const KEPT: Duration = Duration::from_secs(6 * 24 * 60 * 60);

const AHEAD: Duration = Duration::from_secs(CLOCK_SKEW_SECONDS_MAX);
