//! Tokens of Microsoft Entra ID: the only file of the program that names `azure_identity`.
//!
//! Nothing is requested here: a credential asks for a token when a request needs one.

use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_identity::{
    AzureCliCredential, ClientSecretCredential, ManagedIdentityCredential,
    ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
    WorkloadIdentityCredentialOptions,
};
use tablesdk::{Credential, EntraId};

use super::auth::Auth;
use crate::error::AnyError;

impl Auth {
    /// The credential.
    pub(super) fn credential(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credential, AnyError> {
        let credential: Result<Arc<dyn TokenCredential>, AnyError> = match self {
            Self::AzureCli => azure_cli(),
            Self::Environment => service_principal(variable),
            Self::ManagedIdentity => managed_identity(variable),
        };
        let credential = credential.map_err(|error| format!("--auth: {error}"))?;
        Ok(EntraId::from_azure(credential).into())
    }
}

fn azure_cli() -> Result<Arc<dyn TokenCredential>, AnyError> {
    Ok(AzureCliCredential::new(None)?)
}

fn managed_identity(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn TokenCredential>, AnyError> {
    let options = ManagedIdentityCredentialOptions {
        user_assigned_id: variable(CLIENT_ID).map(UserAssignedId::ClientId),
        ..Default::default()
    };
    Ok(ManagedIdentityCredential::new(Some(options))?)
}

/// The service principal of the environment variables that the official clients share.
fn service_principal(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn TokenCredential>, AnyError> {
    let needed = |name| variable(name).ok_or_else(|| format!("{name} is not set"));
    let (tenant, client) = (needed("AZURE_TENANT_ID")?, needed(CLIENT_ID)?);
    if let Some(secret) = variable("AZURE_CLIENT_SECRET") {
        let credential = ClientSecretCredential::new(&tenant, client, secret.into(), None);
        return Ok(credential?);
    }
    let file = variable("AZURE_FEDERATED_TOKEN_FILE");
    let file = file.ok_or("neither AZURE_CLIENT_SECRET nor AZURE_FEDERATED_TOKEN_FILE is set")?;
    let options = WorkloadIdentityCredentialOptions {
        client_id: Some(client),
        tenant_id: Some(tenant),
        token_file_path: Some(file.into()),
        ..Default::default()
    };
    Ok(WorkloadIdentityCredential::new(Some(options))?)
}

const CLIENT_ID: &str = "AZURE_CLIENT_ID";
