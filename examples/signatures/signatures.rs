//! Signatures for the partition of one user, and the stored access policy that ends them.

use std::time::Duration;

use serde::Serialize;
use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::{Error, TableClient, TableEntity, TableServiceClient, Timestamp};

/// A note of a user. The partition is the user's alone, whatever characters their id has: two ids
/// never have the same key.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "user_{user:escaped}", row_key = "{id}")]
pub struct Note {
    pub user: String,
    pub id: String,
    pub text: String,
}

/// Signs for the notes of users.
#[derive(Clone)]
pub struct Signatures {
    pub table: TableClient,
    is_https: bool,
    policy: String,
}

/// A signature, as the user's program gets it. It has no `Debug`: the URL grants access.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    pub url: String,
    pub expires_at: Timestamp,
}

impl Signatures {
    /// Creates the table and the policy of a generation, and ends the signatures of lower ones.
    pub async fn open(service: &TableServiceClient, generation: u32) -> Result<Self, OpenError> {
        let table = service.table("Notes");
        let signatures = Self {
            table: table.clone(),
            is_https: service.endpoint().is_https(),
            policy: format!("{POLICY}{generation}"),
        };
        // Fails at once where nothing can be signed: without an account key, and on Cosmos DB.
        signatures.sign("user", false)?;
        table.create_table().if_missing().await?;
        let mut policies = table.access_policy().await?;
        let stored = policies.iter().filter_map(generation_of).max();
        if stored > Some(generation) {
            // An instance of the service with an old configuration. Its policy would make
            // signatures valid again.
            return Err(OpenError::Revoked);
        }
        if stored < Some(generation) {
            policies.retain(|policy| generation_of(policy).is_none());
            // It says nothing itself, so that each signature has its own permissions and expiry.
            policies.push(StoredAccessPolicy::new(&signatures.policy));
            table.set_access_policy(policies).await?;
        }
        Ok(signatures)
    }

    /// Signs for the notes of a user: to read them, and to add some. Sends nothing.
    pub fn sign(&self, user: &str, may_add: bool) -> Result<Signature, Error> {
        let expires_at = self.table.now().saturating_add(LIFETIME);
        let sas = self.table.sas().with_partial_policy(&self.policy);
        let sas = sas.allow(Permissions::READ).expires_at(expires_at);
        let sas = sas.partition(Note::partition(user));
        let sas = if may_add {
            sas.allow(Permissions::ADD)
        } else {
            sas
        };
        let sas = if self.is_https { sas.https_only() } else { sas };
        Ok(Signature {
            url: sas.sign()?.expose().to_string(),
            expires_at,
        })
    }
}

fn generation_of(policy: &StoredAccessPolicy) -> Option<u32> {
    policy.id().strip_prefix(POLICY)?.parse().ok()
}

/// Why the service cannot hand out signatures.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("a higher SIGNATURE_GENERATION has revoked the signatures of this one")]
    Revoked,
    #[error(transparent)]
    Table(#[from] Error),
}

const POLICY: &str = "clients-";

/// How long a signature can be used.
pub const LIFETIME: Duration = Duration::from_secs(15 * 60);
