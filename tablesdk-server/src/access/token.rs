//! Bearer tokens: what one is good for is decided by whoever runs the server; how it is refused, by the service's rules.
//!
//! Knows no issuer and no form of tokens, and keeps none. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory>.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use tablesdk_protocol::operation::QueryOptions;
use tablesdk_protocol::{ErrorCode, ServiceError};

use super::knows_challenge;
use crate::context::Context;

/// Decides what a bearer token is good for; given to
/// [`Builder::token_verifier`](crate::Builder::token_verifier).
///
/// A function of account and token is one. It is asked with every request, before anything of the request is looked at, and
/// while it answers others may have to wait: what takes long, such as fetching the keys of an issuer, is better done beforehand.
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
/// for (token, status) in [("admin", 200), ("guest", 403), ("stranger", 401)] {
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
    /// What the token allows its bearer in that account.
    ///
    /// # Errors
    ///
    /// When it allows nothing.
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

/// Something that the bearer of a token may be allowed to do, as the service's roles divide it.
///
/// Stored access policies are not among it: the service does not have them for tokens.
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
    const ALL: [Self; 9] = [
        Self::AddEntities,
        Self::CreateTables,
        Self::DeleteEntities,
        Self::DeleteTables,
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

/// What the bearer of a token may do.
///
/// ```
/// use tablesdk_server::{TokenAction, TokenGrant};
///
/// let reader = TokenGrant::none().with(TokenAction::ReadEntities).with(TokenAction::ReadTables);
/// assert!(reader.allows(TokenAction::ReadEntities));
/// assert!(!reader.allows(TokenAction::AddEntities));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenGrant(u16);

impl TokenGrant {
    /// Everything that a token can allow.
    pub fn all() -> Self {
        let grant = |grant: Self, action| grant.with(action);
        TokenAction::ALL.into_iter().fold(Self::none(), grant)
    }

    /// Nothing.
    pub const fn none() -> Self {
        Self(0)
    }

    /// The same, and this.
    #[must_use]
    pub const fn with(self, action: TokenAction) -> Self {
        Self(self.0 | action.bit())
    }

    /// Whether an action is allowed.
    pub const fn allows(self, action: TokenAction) -> bool {
        self.0 & action.bit() != 0
    }

    /// Refuses what the token does not allow.
    pub(super) fn require(self, actions: &[TokenAction]) -> Result<(), ServiceError> {
        if actions.iter().all(|action| self.allows(*action)) {
            Ok(())
        } else {
            Err(ErrorCode::AuthorizationPermissionMismatch.into())
        }
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

/// Why a token allows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// Its bearer is somebody, but has no business with this account: 403.
    Forbidden,
    /// It is none of ours, or not good at this time. The answer is the service's challenge: where to get one.
    Invalid,
}

/// How a server deals with tokens.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    /// Who decides; without anybody, no token is good.
    pub(crate) verifier: Option<Arc<dyn TokenVerifier>>,
    /// Whether somebody else makes sure that nobody reads them on their way.
    pub(crate) over_http: bool,
}

impl Tokens {
    /// What a token in the request allows.
    pub(super) fn authenticate(
        &self,
        context: &Context,
        query: &str,
        token: &str,
    ) -> Result<TokenGrant, ServiceError> {
        let options = QueryOptions::parse(query).unwrap_or_default();
        if options.get("comp") == Some("acl") {
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

/// What a request with a token that is not good is told.
fn challenge(context: &Context) -> ServiceError {
    if knows_challenge(context) {
        let message = ErrorCode::NoAuthenticationInformation.message();
        ServiceError::new(ErrorCode::InvalidAuthenticationInfo, message)
            .with_status(StatusCode::UNAUTHORIZED)
    } else {
        ErrorCode::AuthenticationFailed.into()
    }
}
