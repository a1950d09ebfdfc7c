//! The kinds of credentials of Microsoft Entra ID.

use clap::ValueEnum;

/// Where tokens of Microsoft Entra ID come from.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
pub(crate) enum Auth {
    /// The login of the Azure CLI: run az login before
    AzureCli,
    /// A service principal: $AZURE_TENANT_ID, $AZURE_CLIENT_ID, and $AZURE_CLIENT_SECRET or
    /// $AZURE_FEDERATED_TOKEN_FILE
    Environment,
    /// The identity of this machine in Azure; $AZURE_CLIENT_ID selects one of several
    ManagedIdentity,
}

#[cfg(not(feature = "entra-id"))]
impl Auth {
    #[expect(
        clippy::unused_self,
        reason = "with the feature, each kind is a credential of its own"
    )]
    pub(super) fn credential(
        self,
        _variable: impl Fn(&str) -> Option<String>,
    ) -> Result<tablesdk::Credential, crate::error::AnyError> {
        Err("--auth: the program was built without the feature entra-id".into())
    }
}
