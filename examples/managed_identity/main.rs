//! A program without a secret, which authenticates by the managed identity of its Azure resource:
//! `cargo run --example managed_identity`.
//!
//! It records that a job has run, and lists the last runs. It reads these environment variables:
//!
//! | variable | value |
//! |---|---|
//! | `AZURE_STORAGE_ACCOUNT` | the name of the account; without it, [`local`] stands in for Azure |
//! | `AZURE_CLIENT_ID` | the client id of a user-assigned identity; without it, the system-assigned identity |
//! | `AZURE_TOKEN_CREDENTIALS` | `dev`: the login of the Azure CLI or of `azd`; without it, the managed identity |
//!
//! The identity needs the role "Storage Table Data Contributor" on the account. "Storage Table Data
//! Reader" is enough to read. "Owner" and "Contributor" are roles for the account and not for its
//! data. An assignment can take half an hour until it applies.
//!
//! ```sh
//! az role assignment create --role "Storage Table Data Contributor" --assignee-object-id PRINCIPAL-ID \
//!     --assignee-principal-type ServicePrincipal --scope "$(az storage account show --name ACCOUNT --query id --output tsv)"
//! ```
//!
//! Without an identity, the first operation fails with [`ErrorKind::Credential`]. Its text contains
//! that of the credential: the identity is not assigned to the resource or, outside of Azure,
//! nothing answers at the address that gives tokens, which can take a minute. Without a role, the
//! operation fails with 403 `AuthorizationPermissionMismatch`.

mod local;
#[cfg(test)]
mod tests;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_core::http::ClientOptions;
use azure_identity::{
    DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId,
};
use tablesdk::{EntraId, Error, ErrorCode, ErrorKind, TableEntity, TableServiceClient, Timestamp};

type AnyError = Box<dyn std::error::Error>;

/// A run of a job. The last run has the first row key.
#[derive(Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{job}", row_key = "{started:desc}_{process:010}")]
struct Run {
    job: String,
    started: Timestamp,
    process: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            if let Some(advice) = error.downcast_ref().and_then(advice) {
                eprintln!("{advice}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), AnyError> {
    let service = if let Some(account) = variable("AZURE_STORAGE_ACCOUNT") {
        let source = variable("AZURE_TOKEN_CREDENTIALS");
        let credential = match source.as_deref() {
            // A chain for developers alone: a program on Azure should not depend on what is
            // installed there.
            Some("dev") => DeveloperToolsCredential::new(None)?,
            None | Some("prod" | "ManagedIdentityCredential") => {
                managed_identity(variable("AZURE_CLIENT_ID"), ClientOptions::default())?
            }
            Some(_) => return Err("AZURE_TOKEN_CREDENTIALS is neither `dev` nor `prod`".into()),
        };
        connect(&account, credential)?
    } else {
        println!("AZURE_STORAGE_ACCOUNT is not set: stand-ins for the account and its identity");
        local::connect(None)?
    };
    let runs = record(&service, "daily-report", 3).await?;
    println!("The last runs of daily-report:");
    for run in runs {
        println!("   {} by process {}", run.started, run.process);
    }
    Ok(())
}

/// The credential of a managed identity: on a virtual machine, in App Service, in Functions or in a
/// container app.
///
/// It is one source and not a chain: what answers on Azure does not depend on what else is
/// installed there, and an error has one reason. `azure_identity` has no `DefaultAzureCredential`,
/// which tries many sources in turn in other languages; its `DeveloperToolsCredential` tries the
/// Azure CLI and then `azd`, and keeps the first that gives a token. In Kubernetes, take its
/// `WorkloadIdentityCredential`.
fn managed_identity(
    client_id: Option<String>,
    client_options: ClientOptions,
) -> Result<Arc<dyn TokenCredential>, AnyError> {
    let options = ManagedIdentityCredentialOptions {
        user_assigned_id: client_id.map(UserAssignedId::ClientId),
        client_options,
    };
    Ok(ManagedIdentityCredential::new(Some(options))?)
}

/// A client of an account. It keeps a token for all its requests, and renews it before it expires.
fn connect(
    account: &str,
    credential: Arc<dyn TokenCredential>,
) -> Result<TableServiceClient, Error> {
    TableServiceClient::builder(format!("https://{account}.table.core.windows.net"))
        .credential(EntraId::from_azure(credential))
        .build()
}

/// Records a run of a job, and returns the last ones. Nothing is requested before this: neither a
/// token nor a table.
async fn record(service: &TableServiceClient, job: &str, last: usize) -> Result<Vec<Run>, Error> {
    let table = service.table("Runs");
    table.create_table().if_missing().await?;
    let run = Run {
        job: job.to_owned(),
        started: table.now(),
        process: std::process::id(),
    };
    table.insert(&run).await?;
    let runs = table.query::<Run>().partition(job).take(last);
    let runs = runs.collect().await?.into_iter();
    Ok(runs.map(tablesdk::Stored::into_inner).collect())
}

/// The usual reasons of the errors that a program without a key meets.
fn advice(error: &Error) -> Option<&'static str> {
    if error.kind() == ErrorKind::Credential {
        // Its source is the error of the credential, which says what the identity endpoint has
        // answered.
        return Some(
            "There is no token. Does the resource have a managed identity, and is AZURE_CLIENT_ID its client id? On a machine of \
             a developer: `az login`, and AZURE_TOKEN_CREDENTIALS=dev.",
        );
    }
    match error.code()? {
        ErrorCode::AuthorizationPermissionMismatch => Some(
            "The identity has a token, and no role for this. Assign it \"Storage Table Data Contributor\" on the account, and \
             wait up to half an hour.",
        ),
        ErrorCode::AuthorizationFailure => {
            Some("Does the firewall of the account permit requests from here?")
        }
        _ => None,
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
