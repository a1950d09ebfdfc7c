//! The service behind an endpoint, as far as requests to it differ.

use tablesdk_protocol::Endpoint;

/// The service behind an endpoint.
///
/// It is derived from the host; a server in the same process says it. Where the host does not
/// identify the service, such as behind a proxy or for an emulator of Cosmos DB, set it with
/// [`TableServiceClientBuilder::backend`](crate::TableServiceClientBuilder::backend).
///
/// ```
/// use tablesdk::TableServiceClient;
/// use tablesdk::transport::Backend;
///
/// // The emulator of Cosmos DB: its host does not identify it.
/// let service = TableServiceClient::builder("http://localhost:8902/localhost")
///     .backend(Backend::Cosmos)
///     .build()?;
/// # Ok::<(), tablesdk::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Azure Cosmos DB for Table. It knows no `PATCH`: merges are sent as `POST` with
    /// `X-HTTP-Method: MERGE`.
    Cosmos,
    /// Azure Table storage, an emulator of it, or the bundled server.
    Storage,
}

impl Backend {
    /// Cosmos DB for a host such as `account.table.cosmos.azure.com`, in whatever cloud; Table
    /// storage for any other.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let host = endpoint.as_str().split('/').nth(2).unwrap_or_default();
        let host = host.to_ascii_lowercase();
        if host.contains(".table.cosmos.") || host.contains(".table.cosmosdb.") {
            Self::Cosmos
        } else {
            Self::Storage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_cosmos_db_are_taken_for_it() {
        for (url, expected) in [
            ("https://acct.table.cosmos.azure.com:443/", Backend::Cosmos),
            ("https://ACCT.Table.Cosmos.Azure.CN", Backend::Cosmos),
            ("https://acct.table.cosmosdb.azure.com", Backend::Cosmos),
            ("https://acct.table.core.windows.net", Backend::Storage),
            ("https://cosmos.table.core.windows.net", Backend::Storage),
            ("http://127.0.0.1:10002/devstoreaccount1", Backend::Storage),
            ("http://localhost:8902/localhost", Backend::Storage),
            (
                "http://localhost/acct.table.cosmos.azure.com",
                Backend::Storage,
            ),
        ] {
            assert_eq!(Backend::of(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
