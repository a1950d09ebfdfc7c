//! The code that the examples share. Each example is a program in this directory.

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use tablesdk::TableServiceClient;
use tablesdk_server::TableServer;

/// The service of the connection string in the first argument or in
/// `AZURE_STORAGE_CONNECTION_STRING`. Without one, the bundled server, which stops when it is
/// dropped.
///
/// # Errors
///
/// When the connection string is malformed, or no port is free.
pub async fn connect() -> Result<(TableServiceClient, Option<TableServer>), Box<dyn Error>> {
    if let Some(text) = std::env::args().nth(1) {
        return Ok((TableServiceClient::from_connection_string(&text)?, None));
    }
    if std::env::var_os("AZURE_STORAGE_CONNECTION_STRING").is_some() {
        return Ok((TableServiceClient::from_env()?, None));
    }
    let server = TableServer::start().await?;
    let service = TableServiceClient::from_connection_string(&server.connection_string())?;
    Ok((service, Some(server)))
}

/// A name for a new table. It contains the time, so that it does not clash with an existing table.
#[must_use]
pub fn unique_name(beginning: &str) -> String {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{beginning}{}", since_1970.as_nanos())
}
