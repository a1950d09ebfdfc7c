//! Builders of clients from a text or an endpoint: which service it is, and whether it can have
//! tables.
//!
//! Knows no options. An error names what is wrong and repeats no text.

use tablesdk::sas::SasUrl;
use tablesdk::{Credential, SharedKey, TableServiceClient, TableServiceClientBuilder};
use tablesdk_protocol::{Endpoint, InvalidEndpointError};

use crate::error::AnyError;

/// Starts a client of an account that one text describes. A token is for a URL without a signature.
pub(super) fn of_text(
    text: &str,
    token: impl FnOnce() -> Result<Option<Credential>, AnyError>,
) -> Result<TableServiceClientBuilder, AnyError> {
    match text {
        EMULATOR => Ok(TableServiceClientBuilder::from_connection_string(
            DEVELOPMENT,
        )?),
        url if is_url(url) && url.contains('?') => of_sas_url(url),
        url if is_url(url) => {
            let endpoint = endpoint(url)?;
            // A token is sent over https alone.
            let token = endpoint.is_https().then(token).transpose()?;
            of_endpoint(&endpoint, token.flatten())
        }
        _ => of_string(text),
    }
}

/// Starts a client of the account of a connection string.
pub(super) fn of_string(text: &str) -> Result<TableServiceClientBuilder, AnyError> {
    if is_url(text) {
        return Err(
            "this is a URL, not a connection string: use --sas-url or --table-endpoint".into(),
        );
    }
    let mut keys = text.split(';').filter_map(|part| part.split_once('='));
    if keys.any(|(key, _)| key.trim().eq_ignore_ascii_case("AccountEndpoint")) {
        return Err(NOT_FOR_TABLES.into());
    }
    Ok(TableServiceClientBuilder::from_connection_string(text)?)
}

/// Starts a client of the account of a URL with a shared access signature.
pub(super) fn of_sas_url(text: &str) -> Result<TableServiceClientBuilder, AnyError> {
    let url: SasUrl = text.parse()?;
    check_service(url.endpoint())?;
    Ok(url.builder())
}

/// Starts a client of the account at an endpoint. An emulator needs no credential: its account and
/// key are the same everywhere.
pub(super) fn of_endpoint(
    endpoint: &Endpoint,
    credential: Option<Credential>,
) -> Result<TableServiceClientBuilder, AnyError> {
    check_service(endpoint)?;
    let credential = match credential {
        Some(credential) => credential,
        None if is_emulator(endpoint) => SharedKey::new(EMULATOR_ACCOUNT, EMULATOR_KEY)?.into(),
        None => return Err(NO_CREDENTIAL.into()),
    };
    let builder = TableServiceClient::builder(endpoint.as_str());
    Ok(builder.credential(credential))
}

/// Reads the URL of a table service.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, AnyError> {
    text.parse().map_err(|error| match error {
        InvalidEndpointError::Query => {
            "the URL has a query: give a URL with a shared access signature with --sas-url".into()
        }
        error => format!("the URL is not valid: {error}").into(),
    })
}

/// The endpoint of an account of Azure Storage, by its name.
pub(super) fn endpoint_of(name: &str) -> Result<Endpoint, AnyError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_part) {
        return Err("the name of an account has letters, digits and hyphens alone: give another host with --table-endpoint".into());
    }
    endpoint(&format!("https://{name}.table.core.windows.net"))
}

/// Refuses the endpoints of other services, which the portal lists next to that of tables.
fn check_service(endpoint: &Endpoint) -> Result<(), AnyError> {
    let host = endpoint.host().to_ascii_lowercase();
    let mut labels = host.split('.').skip(1);
    let (service, next) = (labels.next(), labels.next());
    if service == Some("documents") && next == Some("azure") {
        return Err(NOT_FOR_TABLES.into());
    }
    match service {
        Some(service) if OTHERS.contains(&service) && next == Some("core") => Err(format!(
            "the URL is that of the {service} service: tables are at ACCOUNT.table.core.windows.net"
        )
        .into()),
        _ => Ok(()),
    }
}

/// Returns true if an endpoint is that of an emulator's account.
pub(super) fn is_emulator(endpoint: &Endpoint) -> bool {
    endpoint.path().strip_prefix('/') == Some(EMULATOR_ACCOUNT)
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The word for the emulator at its usual address.
const EMULATOR: &str = "emulator";
/// The connection string of the emulator.
pub(super) const DEVELOPMENT: &str = "UseDevelopmentStorage=true";
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// Published: the same on every machine.
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const NO_CREDENTIAL: &str = "no credential is given: use --account-key, --sas-token, --sas-url or --auth, or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN";
const NOT_FOR_TABLES: &str = "this is an account of Azure Cosmos DB for NoSQL: tables are in one of Azure Cosmos DB for Table, whose connection string has a TableEndpoint such as https://ACCOUNT.table.cosmos.azure.com";
const OTHERS: [&str; 5] = ["blob", "dfs", "file", "queue", "web"];

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "c2VjcmV0";
    const TOKEN: &str = "sv=2019-02-02&ss=t&srt=sco&sp=r&se=2090-01-01&sig=c2VjcmV0";

    fn endpoint_of_text(text: &str) -> Result<String, String> {
        let builder = of_text(text, || Ok(None)).map_err(|error| error.to_string())?;
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(client.endpoint().to_string())
    }

    #[test]
    fn an_account_is_one_text() {
        for (text, expected) in [
            ("emulator", "http://127.0.0.1:10002/devstoreaccount1"),
            (
                "UseDevelopmentStorage=true",
                "http://127.0.0.1:10002/devstoreaccount1",
            ),
            (
                "http://azurite:10002/devstoreaccount1/",
                "http://azurite:10002/devstoreaccount1",
            ),
            (
                &format!("https://a.table.core.windows.net/?{TOKEN}"),
                "https://a.table.core.windows.net",
            ),
            (
                &format!("https://a.table.core.windows.net/People?{TOKEN}"),
                "https://a.table.core.windows.net",
            ),
            (
                &format!(
                    "AccountName=a;AccountKey={KEY};TableEndpoint=https://a.table.cosmos.azure.com:443/"
                ),
                "https://a.table.cosmos.azure.com:443",
            ),
        ] {
            assert_eq!(endpoint_of_text(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_tables_is_refused_by_name() {
        for (text, problem) in [
            (
                format!("https://a.blob.core.windows.net/?{TOKEN}"),
                "that of the blob service",
            ),
            (
                format!("https://a.documents.azure.com:443/?{TOKEN}"),
                "Azure Cosmos DB for NoSQL",
            ),
            (
                format!("AccountEndpoint=https://a.documents.azure.com:443/;AccountKey={KEY}"),
                "Azure Cosmos DB for NoSQL",
            ),
            (
                "https://a.table.core.windows.net".to_owned(),
                "no credential is given",
            ),
            (
                "http://127.0.0.1:10002/other".to_owned(),
                "no credential is given",
            ),
        ] {
            let error = endpoint_of_text(&text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let names = ["", "evil.example/", "a b", "ä"].map(endpoint_of);
        assert!(names.iter().all(Result::is_err));
    }
}
