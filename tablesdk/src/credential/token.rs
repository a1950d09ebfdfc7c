//! Tokens of Microsoft Entra ID, and where they come from: a trait that takes a few lines to
//! implement.
//!
//! The trait is not that of `azure_core`, which brings a tree of crates: `identity.rs` adapts it
//! behind a feature.
//!
//! Knows no issuer and asks none: that is what implementations are for. See
//! <https://learn.microsoft.com/azure/storage/tables/authorize-access-azure-active-directory>.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tablesdk_protocol::Timestamp;
use zeroize::Zeroizing;

use super::Sas;

/// Gets tokens from wherever they come from: Microsoft Entra ID, a managed identity, a file that
/// something else keeps up to date.
///
/// A function that takes a [`TokenRequest`] and returns a future is one:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::{Duration, SystemTime};
/// use tablesdk::credential::{AccessToken, TokenRequest};
/// use tablesdk::{EntraId, TableServiceClient};
///
/// let credential = |request: TokenRequest| async move {
///     assert_eq!(request.scopes(), ["https://storage.azure.com/.default"]);
///     // Here the issuer is asked.
///     let expires_at = SystemTime::now() + Duration::from_secs(3600);
///     AccessToken::new("eyJ0…", expires_at)
/// };
/// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
///     .credential(EntraId::new(credential))
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// It is asked for one token at a time, on a task of its own, and has a minute to answer. The
/// client keeps the token, asks for the next one before it expires, and asks no more than that,
/// however many requests there are. An implementation keeps nothing, and tries as often as it finds
/// sensible: its error ends the operations that wait for the token.
pub trait TokenCredential: Send + Sync {
    /// A new token.
    fn token(&self, request: TokenRequest) -> TokenFuture<'_>;
}

impl<F, R> TokenCredential for F
where
    F: Fn(TokenRequest) -> R + Send + Sync,
    R: Future<Output = Result<AccessToken, TokenError>> + Send + 'static,
{
    fn token(&self, request: TokenRequest) -> TokenFuture<'_> {
        Box::pin(self(request))
    }
}

/// The future that [`TokenCredential::token`] returns.
///
/// ```
/// use std::path::PathBuf;
/// use std::time::{Duration, SystemTime};
/// use tablesdk::EntraId;
/// use tablesdk::credential::{AccessToken, TokenCredential, TokenFuture, TokenRequest};
///
/// /// A file that something else keeps up to date.
/// struct TokenFile(PathBuf);
///
/// impl TokenCredential for TokenFile {
///     fn token(&self, _request: TokenRequest) -> TokenFuture<'_> {
///         Box::pin(async move {
///             let token = std::fs::read_to_string(&self.0)?;
///             let expires_at = SystemTime::now() + Duration::from_secs(300);
///             AccessToken::new(token.trim(), expires_at)
///         })
///     }
/// }
///
/// let credential = EntraId::new(TokenFile("/run/secrets/token".into()));
/// ```
pub type TokenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<AccessToken, TokenError>> + Send + 'a>>;

/// Why there is no token. Becomes the source of an [`Error`](crate::Error), whose `Debug` prints
/// it: it must not hold secrets.
pub type TokenError = Box<dyn std::error::Error + Send + Sync>;

/// For what a token is asked.
///
/// ```
/// use tablesdk::credential::{AccessToken, TokenError, TokenRequest};
///
/// async fn token(request: TokenRequest) -> Result<AccessToken, TokenError> {
///     let scope = request.scopes().first().ok_or("no scope")?;
///     let tenant = request.tenant().unwrap_or("organizations");
///     println!("POST https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token, scope {scope}");
///     Err("no token is requested here".into())
/// }
/// let credential = tablesdk::EntraId::new(token);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    pub(super) scopes: Vec<String>,
    pub(super) tenant: Option<String>,
}

impl TokenRequest {
    /// The scopes of the token: one, such as `https://storage.azure.com/.default`.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The tenant whose tokens the account takes, as the program or the service named it: a GUID or
    /// a domain. `None` where neither did, and the credential's own is right.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }
}

/// A token, and until when it is good. `Debug` does not show it.
///
/// ```
/// use tablesdk::Timestamp;
/// use tablesdk::credential::AccessToken;
///
/// let expires_at: Timestamp = "2030-01-01T00:00:00Z".parse()?;
/// let token = AccessToken::new("eyJ0…", expires_at)?;
/// assert_eq!(token.expires_at(), expires_at);
/// assert!(!format!("{token:?}").contains("eyJ0"));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct AccessToken {
    pub(super) secret: Zeroizing<String>,
    pub(super) expires_at: Timestamp,
}

impl AccessToken {
    /// A token as the issuer gave it, without `Bearer` in front. The time is a [`Timestamp`], a
    /// [`SystemTime`](std::time::SystemTime) or, with the feature `time`, an `OffsetDateTime`.
    ///
    /// # Errors
    ///
    /// When the time is not between the years 1601 and 9999.
    pub fn new<T: TryInto<Timestamp, Error: Into<TokenError>>>(
        secret: impl Into<String>,
        expires_at: T,
    ) -> Result<Self, TokenError> {
        Ok(Self {
            secret: Zeroizing::new(secret.into()),
            expires_at: expires_at.try_into().map_err(Into::into)?,
        })
    }

    /// Until when it is good.
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A [credential](crate::Credential): tokens of Microsoft Entra ID, got from a [`TokenCredential`].
///
/// A client with it sends requests over https alone: it cannot be built for another endpoint. The
/// first request waits for the first token. From five minutes before a token expires, or a fifth of
/// its time, the next one is asked for while requests go on with the old one.
///
/// A service that refuses a token says which tenant and audience it wants. The client then asks for
/// one of those, once, if the login page and the audience that are named are Microsoft's.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tablesdk::credential::{AccessToken, TokenRequest};
/// # use tablesdk::{EntraId, TableServiceClient, Timestamp};
/// # use tablesdk_server::{TableServer, TokenGrant, TokenRefusal};
/// # let server = TableServer::builder()
/// #     .token_verifier(|_: &str, token: &str| match token {
/// #         "eyJ0" => Ok(TokenGrant::all()),
/// #         _ => Err(TokenRefusal::Invalid),
/// #     })
/// #     .in_process()?;
/// # async fn ask_the_issuer(_: &str) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
/// #     Ok("eyJ0".to_owned())
/// # }
/// let credential = |request: TokenRequest| async move {
///     let token = ask_the_issuer(&request.scopes()[0]).await?;
///     AccessToken::new(token, "2100-01-01".parse::<Timestamp>()?)
/// };
/// let service = TableServiceClient::builder("https://devstoreaccount1.table.core.windows.net")
///     .credential(EntraId::new(credential))
///     // The bundled server in this process stands in for the service.
///     .transport(server.transport())
///     .build()?;
/// service.table("Employees").create_table().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EntraId {
    pub(super) credential: Arc<dyn TokenCredential>,
    pub(super) audience: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) sas: Option<Sas>,
}

impl EntraId {
    /// Tokens from that credential, for the audience that goes with the endpoint.
    pub fn new(credential: impl TokenCredential + 'static) -> Self {
        Self::of(Arc::new(credential))
    }

    pub(super) fn of(credential: Arc<dyn TokenCredential>) -> Self {
        Self {
            credential,
            audience: None,
            tenant: None,
            sas: None,
        }
    }

    /// The audience of the tokens, without `/.default` at the end. By default it depends on the
    /// host: for Table storage `https://storage.azure.com`, `https://storage.azure.us` or
    /// `https://storage.azure.cn`, for Cosmos DB `https://cosmos.azure.com` and so on.
    ///
    /// An audience that is set is kept, even if the service names another.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// The tenant to ask for tokens of, where it is not the credential's own. It is kept, whatever
    /// the service says.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds a shared access signature for [one user](crate::sas::TableSasBuilder::for_user): each
    /// request has the signature, which says what is allowed, and a token, which says who asks.
    #[must_use]
    pub fn with_sas(mut self, sas: Sas) -> Self {
        self.sas = Some(sas);
        self
    }
}

impl fmt::Debug for EntraId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntraId")
            .field("audience", &self.audience)
            .field("tenant", &self.tenant)
            .field("sas", &self.sas)
            .finish_non_exhaustive()
    }
}
