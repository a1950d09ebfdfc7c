//! Shared access signatures that are replaced before they expire, and the function that they come
//! from.

use std::fmt;
use std::sync::Arc;

use tablesdk_protocol::Timestamp;

use super::token::{AccessToken, EntraId, TokenCredential, TokenError, TokenFuture, TokenRequest};
use super::{Credential, Sas};

/// A [credential](crate::Credential): shared access signatures from a function, such as one that
/// asks another program. The client asks for the next signature before the one that it has expires.
///
/// The function is asked for one signature at a time, however many requests wait, and has a minute.
/// From five minutes before a signature expires, or a fifth of its time, the next one is asked for
/// while requests go on with the old one. A signature without a time of its own, whose times are
/// those of a stored access policy, is replaced when the service refuses it.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use std::time::Duration;
/// use tablesdk::credential::SasSource;
/// use tablesdk::sas::Permissions;
///
/// // Elsewhere, a program that may sign; the function would ask it over the network.
/// let signed = table.clone();
/// let source = SasSource::new(move || {
///     let sas = signed.sas().allow(Permissions::READ).expires_in(Duration::from_secs(600));
///     async move { Ok(sas.sign()?.sas().clone()) }
/// });
///
/// let guest = TableServiceClient::builder(service.endpoint().as_str()).credential(source).build()?;
/// assert_eq!(guest.table("Employees").query::<Employee>().count().await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SasSource(Arc<dyn TokenCredential>);

impl SasSource {
    /// Signatures that this function returns.
    pub fn new<R>(source: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<Sas, TokenError>> + Send + 'static,
    {
        Self(Arc::new(Source(source)))
    }

    /// The function as one that returns tokens.
    pub(super) fn into_tokens(self) -> EntraId {
        EntraId::of(self.0)
    }
}

struct Source<F>(F);

impl<F, R> TokenCredential for Source<F>
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = Result<Sas, TokenError>> + Send + 'static,
{
    fn token(&self, _: TokenRequest) -> TokenFuture<'_> {
        let asked = (self.0)();
        Box::pin(async move {
            let sas = asked.await?;
            let expires_at = sas.expires_at().unwrap_or(Timestamp::MAX);
            AccessToken::new(sas.expose(), expires_at)
        })
    }
}

impl fmt::Debug for SasSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SasSource").finish_non_exhaustive()
    }
}

impl From<SasSource> for Credential {
    fn from(source: SasSource) -> Self {
        Self::SasSource(source)
    }
}
