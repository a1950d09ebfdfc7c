//! Stand-ins for an account and for the service that gives a virtual machine its tokens, both in
//! this process. The credential and the client are those that run on Azure; their transports alone
//! are different.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use azure_core::http::headers::{HeaderName, Headers};
use azure_core::http::{
    AsyncRawResponse, ClientOptions, HttpClient, Request, StatusCode, Transport,
};
use tablesdk::{EntraId, TableServiceClient};
use tablesdk_server::{TableServer, TokenAction, TokenGrant, TokenRefusal};

use crate::{AnyError, managed_identity};

/// The client id of an identity that has the role "Storage Table Data Reader".
pub const READER: &str = "11111111-1111-1111-1111-111111111111";

/// A client of a new account, by the system-assigned identity or by the one with that client id.
pub fn connect(client_id: Option<&str>) -> Result<TableServiceClient, AnyError> {
    let server = TableServer::builder().token_verifier(verify).in_process()?;
    let client_options = ClientOptions {
        transport: Some(Transport::new(Arc::new(InstanceMetadata))),
        ..ClientOptions::default()
    };
    let credential = managed_identity(client_id.map(str::to_owned), client_options)?;
    // A token is sent to an endpoint with https alone.
    let endpoint = "https://devstoreaccount1.table.core.windows.net";
    let service = TableServiceClient::builder(endpoint)
        .credential(EntraId::from_azure(credential))
        .transport(server.transport())
        .build()?;
    Ok(service)
}

/// The permissions of the identities, by their roles. A server that others use would check the
/// signature, the audience and the time of the token.
fn verify(_account: &str, token: &str) -> Result<TokenGrant, TokenRefusal> {
    match token {
        "token-of-the-system" => Ok(TokenGrant::all()),
        "token-of-the-reader" => Ok(TokenGrant::none()
            .with(TokenAction::ReadTables)
            .with(TokenAction::ReadEntities)),
        _ => Err(TokenRefusal::Invalid),
    }
}

/// Answers as the [endpoint for tokens] of the instance metadata service does.
///
/// [endpoint for tokens]: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
#[derive(Debug)]
struct InstanceMetadata;

#[async_trait]
impl HttpClient for InstanceMetadata {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let parameter = |name| {
            let mut pairs = request.url().query_pairs();
            let (_, value) = pairs.find(|(key, _)| key == name)?;
            Some(value.into_owned())
        };
        let metadata = HeaderName::from_static("metadata");
        let is_marked = request.headers().get_optional_str(&metadata) == Some("true");
        let resource = parameter("resource");
        let token = match parameter("client_id").as_deref() {
            None => Some("token-of-the-system"),
            Some(READER) => Some("token-of-the-reader"),
            Some(_) => None,
        };
        Ok(match (token, resource) {
            (Some(token), Some(resource)) if is_marked => {
                respond(StatusCode::Ok, token_response(token, &resource))
            }
            _ => respond(
                StatusCode::BadRequest,
                r#"{"error":"invalid_request","error_description":"Identity not found"}"#
                    .to_owned(),
            ),
        })
    }
}

/// A token for an hour.
fn token_response(token: &str, resource: &str) -> String {
    let expires = SystemTime::now() + Duration::from_secs(3600);
    let seconds = expires
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    format!(
        r#"{{"access_token":"{token}","expires_on":"{seconds}","resource":"{resource}","token_type":"Bearer"}}"#
    )
}

fn respond(status: StatusCode, body: String) -> AsyncRawResponse {
    AsyncRawResponse::from_bytes(status, Headers::new(), body)
}
