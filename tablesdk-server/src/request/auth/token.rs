//! Bearer tokens. The operator's [`TokenVerifier`] decides what a token permits; a refusal follows
//! the service's rules.
//!
//! This module knows no issuer and no token format, and stores no tokens. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory>.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use tablesdk_protocol::operation::QueryOptions;
use tablesdk_protocol::{ErrorCode, Guid, ServiceError};

use super::delegation::TokenUser;
use super::knows_challenge;
use crate::request::context::Context;

/// Decides what a bearer token permits; set with
/// [`TableServerBuilder::token_verifier`](crate::TableServerBuilder::token_verifier).
///
/// A function of account and token implements this trait. The server calls it once for every
/// request with a token, before it decodes the operation. The call is synchronous, and other
/// requests may have to wait until it returns. Do slow work, such as fetching the keys of an
/// issuer, beforehand.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bytes::Bytes;
/// use tablesdk_server::{TableServer, TokenAction, TokenGrant, TokenRefusal, Transport as _};
///
/// // A real one would check the signature, the audience and the time, and read the roles.
/// let verify = |_account: &str, token: &str| match token {
///     "admin" => Ok(TokenGrant::all()),
///     "guest" => Ok(TokenGrant::none().with(TokenAction::ReadEntities)),
///     _ => Err(TokenRefusal::Invalid),
/// };
/// let server = TableServer::builder()
///     .token_verifier(verify)
///     .tokens_over_http()
///     .in_process()?;
/// for (token, status) in [("admin", 200), ("guest", 403), ("unknown", 401)] {
///     let request = http::Request::get(format!("{}/Tables", server.endpoint()))
///         .header("authorization", format!("Bearer {token}"))
///         .header("x-ms-version", "2020-12-06")
///         .body(Bytes::new())?;
///     assert_eq!(server.transport().send(request).await?.status(), status);
/// }
/// # Ok(())
/// # }
/// ```
pub trait TokenVerifier: Send + Sync {
    /// Returns the permissions that the token grants in the account.
    ///
    /// # Errors
    ///
    /// When the token grants no permissions.
    fn verify(&self, account: &str, token: &str) -> Result<TokenGrant, TokenRefusal>;
}

impl<F> TokenVerifier for F
where
    F: Fn(&str, &str) -> Result<TokenGrant, TokenRefusal> + Send + Sync,
{
    fn verify(&self, account: &str, token: &str) -> Result<TokenGrant, TokenRefusal> {
        self(account, token)
    }
}

/// A permission that a token can grant. The division into actions follows the service's roles.
///
/// There is no action for stored access policies: the service does not support them with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenAction {
    /// Insert entities. With [`TokenAction::UpdateEntities`], also upsert them.
    AddEntities,
    /// Create tables.
    CreateTables,
    /// Delete entities.
    DeleteEntities,
    /// Delete tables.
    DeleteTables,
    /// Get a user delegation key, which signs with the permissions of the token on entities. The
    /// token must name a [user](TokenGrant::of_user).
    GetUserDelegationKey,
    /// Read and query entities.
    ReadEntities,
    /// Read the properties and the statistics of the service.
    ReadService,
    /// List tables.
    ReadTables,
    /// Update and merge entities.
    UpdateEntities,
    /// Change the properties of the service.
    WriteService,
}

impl TokenAction {
    const ALL: [Self; 10] = [
        Self::AddEntities,
        Self::CreateTables,
        Self::DeleteEntities,
        Self::DeleteTables,
        Self::GetUserDelegationKey,
        Self::ReadEntities,
        Self::ReadService,
        Self::ReadTables,
        Self::UpdateEntities,
        Self::WriteService,
    ];

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The set of actions that a token grants, and the user that it names.
///
/// ```
/// use tablesdk_server::{TokenAction, TokenGrant};
///
/// let reader = TokenGrant::none().with(TokenAction::ReadEntities).with(TokenAction::ReadTables);
/// assert!(reader.allows(TokenAction::ReadEntities));
/// assert!(!reader.allows(TokenAction::AddEntities));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenGrant {
    actions: u16,
    user: Option<TokenUser>,
}

impl TokenGrant {
    /// All actions.
    pub fn all() -> Self {
        let grant = |grant: Self, action| grant.with(action);
        TokenAction::ALL.into_iter().fold(Self::none(), grant)
    }

    /// No actions.
    pub const fn none() -> Self {
        Self {
            actions: 0,
            user: None,
        }
    }

    /// Returns the grant with an action added.
    #[must_use]
    pub const fn with(self, action: TokenAction) -> Self {
        let actions = self.actions | action.bit();
        Self { actions, ..self }
    }

    /// Returns the grant for a user: the claims `tid` and `oid` of the token. Only a token that
    /// names its user gets a user delegation key, and may use a signature for one user.
    ///
    /// ```
    /// use tablesdk_server::TokenGrant;
    ///
    /// let (tenant_id, object_id) = (
    ///     "72f988bf-86f1-41af-91ab-2d7cd011db47".parse()?,
    ///     "c9da6455-213d-42c9-9a79-3e9149a57833".parse()?,
    /// );
    /// let grant = TokenGrant::all().of_user(tenant_id, object_id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn of_user(self, tenant_id: Guid, object_id: Guid) -> Self {
        let user = Some(TokenUser {
            tenant_id,
            object_id,
        });
        Self { user, ..self }
    }

    pub(super) const fn user(self) -> Option<TokenUser> {
        self.user
    }

    /// Returns true if the grant contains an action.
    pub const fn allows(self, action: TokenAction) -> bool {
        self.actions & action.bit() != 0
    }
}

impl fmt::Debug for TokenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions = TokenAction::ALL.into_iter();
        f.debug_set()
            .entries(actions.filter(|action| self.allows(*action)))
            .finish()
    }
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// The token is valid, but grants no access to this account: status 403.
    Forbidden,
    /// The token is unknown, malformed, expired or not valid yet. The response is the service's
    /// challenge, which names the authority that issues tokens.
    Invalid,
}

/// The token settings of a server.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    /// Checks the tokens. Without a verifier, every token is refused.
    pub(crate) verifier: Option<Arc<dyn TokenVerifier>>,
    /// True if tokens are accepted over unencrypted connections.
    pub(crate) over_http: bool,
}

impl Tokens {
    /// The permissions that the token of a request grants.
    pub(super) fn authenticate(
        &self,
        context: &Context,
        options: Option<&QueryOptions>,
        token: &str,
    ) -> Result<TokenGrant, ServiceError> {
        if options.and_then(|options| options.get("comp")) == Some("acl") {
            // SERVICE: stored access policies do not exist for tokens.
            return Err(ErrorCode::ResourceNotFound.into());
        }
        let Some(verifier) = &self.verifier else {
            return Err(challenge(context));
        };
        if !self.over_http && !context.endpoint().is_https() {
            let message = "Authentication scheme Bearer is not allowed with HTTP.";
            return Err(ServiceError::new(ErrorCode::AuthenticationFailed, message));
        }
        let granted = verifier.verify(context.account(), token);
        granted.map_err(|refusal| match refusal {
            TokenRefusal::Forbidden => ErrorCode::AuthorizationFailure.into(),
            TokenRefusal::Invalid => challenge(context),
        })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("verifier", &self.verifier.is_some())
            .field("over_http", &self.over_http)
            .finish()
    }
}

/// The error for a request with an invalid token.
fn challenge(context: &Context) -> ServiceError {
    if knows_challenge(context) {
        let message = ErrorCode::NoAuthenticationInformation.message();
        ServiceError::new(ErrorCode::InvalidAuthenticationInfo, message)
            .with_status(StatusCode::UNAUTHORIZED)
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}
