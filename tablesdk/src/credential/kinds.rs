//! The kinds of credential.

use tablesdk_protocol::auth::SharedKey;

use super::{EntraId, Sas, SasSource};

/// The credential that authenticates a client's requests. The [guide](crate::guide::credentials)
/// says which credential to use for what.
///
/// ```
/// use tablesdk::{Credential, Sas, SharedKey, TableServiceClient};
///
/// let (key, signature) = (None, Some("sv=2019-02-02&sp=r&sig=c2ln")); // what the program is given
/// let credential = match (key, signature) {
///     (Some(key), _) => Credential::from(SharedKey::new("acct", key)?),
///     (None, Some(token)) => Credential::from(Sas::new(token)?),
///     (None, None) => Credential::Anonymous,
/// };
/// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
///     .credential(credential)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credential {
    /// Nothing: for a transport that adds its own, or a service behind one.
    Anonymous,
    /// Tokens of Microsoft Entra ID.
    EntraId(EntraId),
    /// A shared access signature.
    Sas(Sas),
    /// Shared access signatures, each replaced before it expires.
    SasSource(SasSource),
    /// The account's name and one of its keys.
    SharedKey(SharedKey),
}

impl From<EntraId> for Credential {
    fn from(entra_id: EntraId) -> Self {
        Self::EntraId(entra_id)
    }
}

impl From<Sas> for Credential {
    fn from(sas: Sas) -> Self {
        Self::Sas(sas)
    }
}

impl From<SharedKey> for Credential {
    fn from(key: SharedKey) -> Self {
        Self::SharedKey(key)
    }
}
