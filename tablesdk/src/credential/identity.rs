//! The credentials of the official `azure_identity`: the only file that names `azure_core`.

use std::sync::Arc;

use azure_core::credentials::TokenCredential as AzureCredential;
use tablesdk_protocol::Timestamp;

use super::token::{AccessToken, EntraId, TokenCredential, TokenFuture, TokenRequest};

impl EntraId {
    /// Tokens from a credential of the official `azure_identity`, such as its
    /// `ManagedIdentityCredential` or `DeveloperToolsCredential`.
    ///
    /// These credentials know their own tenant: one that the service asks for, or
    /// [`tenant`](Self::tenant) sets, is not passed on to them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use azure_core::credentials::TokenCredential;
    /// use tablesdk::{EntraId, TableServiceClient};
    ///
    /// fn connect(credential: Arc<dyn TokenCredential>) -> Result<TableServiceClient, tablesdk::Error> {
    ///     TableServiceClient::builder("https://acct.table.core.windows.net")
    ///         .credential(EntraId::from_azure(credential))
    ///         .build()
    /// }
    /// ```
    pub fn from_azure(credential: Arc<dyn AzureCredential>) -> Self {
        Self::new(Azure(credential))
    }
}

struct Azure(Arc<dyn AzureCredential>);

impl TokenCredential for Azure {
    fn token(&self, request: TokenRequest) -> TokenFuture<'_> {
        Box::pin(async move {
            let scopes: Vec<_> = request.scopes().iter().map(String::as_str).collect();
            let token = self.0.get_token(&scopes, None).await?;
            let ticks = token.expires_on.unix_timestamp_nanos().div_euclid(100);
            let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
            let expires_at = Timestamp::from_unix_ticks(ticks).unwrap_or(Timestamp::MAX);
            AccessToken::new(token.token.secret(), expires_at)
        })
    }
}
