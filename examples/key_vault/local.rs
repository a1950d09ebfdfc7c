//! A stand-in for a vault, in this process. The client of the vault is the one that runs on Azure;
//! its transport alone is different. A wrapped key is a number that the stand-in remembers: who
//! does not have the vault can read it as little as what RSA wraps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::http::headers::{HeaderName, Headers};
use azure_core::http::{
    AsyncRawResponse, Body, ClientOptions, HttpClient, Request, RetryOptions, StatusCode, Transport,
};
use azure_security_keyvault_keys::KeyClientOptions;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};

use crate::provider::{AnyError, KeyVault};

/// The id of the key of the stand-in.
pub const KEY: &str = "https://contoso.vault.azure.net/keys/tables";

/// A vault with one key. Clones are the same vault.
#[derive(Clone, Debug)]
pub struct Vault {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
pub struct State {
    /// The versions of the key; the last is the newest.
    pub versions: Vec<String>,
    /// The keys that were wrapped, by version, algorithm and what the vault returned.
    pub wrapped: HashMap<(String, String, Vec<u8>), Vec<u8>>,
    /// True if the vault does not respond.
    pub is_out: bool,
    /// The paths of the requests with a token.
    pub requests: Vec<String>,
}

impl Vault {
    pub fn new() -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                versions: vec!["1".to_owned()],
                wrapped: HashMap::new(),
                is_out: false,
                requests: Vec::new(),
            })),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The provider of its key.
    pub async fn open(&self) -> Result<KeyVault, AnyError> {
        let options = KeyClientOptions {
            client_options: ClientOptions {
                transport: Some(Transport::new(Arc::new(self.clone()))),
                retry: RetryOptions::none(),
                ..ClientOptions::default()
            },
            ..KeyClientOptions::default()
        };
        KeyVault::open(KEY, Arc::new(Identity), options).await
    }

    fn respond(&self, method: &str, path: &str, body: &[u8]) -> (StatusCode, Json) {
        let mut state = self.state();
        state.requests.push(path.to_owned());
        let newest = state.versions.last().cloned().unwrap_or_default();
        let parts: Vec<_> = path.trim_matches('/').split('/').collect();
        let parameters: Json = serde_json::from_slice(body).unwrap_or_default();
        let algorithm = parameters["alg"].as_str().unwrap_or_default().to_owned();
        let value = parameters["value"].as_str().unwrap_or_default();
        let value = BASE64_URL_SAFE_NO_PAD.decode(value).unwrap_or_default();
        let ok = |version: &str, value: &[u8]| {
            let value = BASE64_URL_SAFE_NO_PAD.encode(value);
            (
                StatusCode::Ok,
                json!({"kid": format!("{KEY}/{version}"), "value": value}),
            )
        };
        match (method, &*parts) {
            ("GET", ["keys", "tables", ..]) => {
                let kid = format!("{KEY}/{newest}");
                (StatusCode::Ok, json!({"key": {"kid": kid, "kty": "RSA"}}))
            }
            ("POST", ["keys", "tables", version, "wrapkey"]) if state.has(version) => {
                let number = u128::try_from(state.wrapped.len()).unwrap_or_default();
                let wrapped = [&[0; 240][..], &number.to_be_bytes()].concat();
                let id = ((*version).to_owned(), algorithm, wrapped.clone());
                state.wrapped.insert(id, value);
                ok(version, &wrapped)
            }
            ("POST", ["keys", "tables", version, "unwrapkey"]) if state.has(version) => {
                let id = ((*version).to_owned(), algorithm, value);
                match state.wrapped.get(&id) {
                    Some(key) => ok(version, key),
                    None => (
                        StatusCode::BadRequest,
                        json!({"error": {"code": "BadParameter", "message": "Failed to unwrap"}}),
                    ),
                }
            }
            _ => (
                StatusCode::NotFound,
                json!({"error": {"code": "KeyNotFound", "message": "The key was not found"}}),
            ),
        }
    }
}

impl State {
    fn has(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known == version)
    }
}

#[async_trait]
impl HttpClient for Vault {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        if self.state().is_out {
            return Err(azure_core::Error::with_message(
                azure_core::error::ErrorKind::Io,
                "the vault does not respond",
            ));
        }
        let authorization = HeaderName::from_static("authorization");
        if request.headers().get_optional_str(&authorization) != Some("Bearer token-of-the-program")
        {
            // The client sends its first request without a token, to learn for what it needs one.
            let mut headers = Headers::new();
            headers.insert(
                "www-authenticate",
                r#"Bearer authorization="https://login.microsoftonline.com/tenant", resource="https://vault.azure.net""#,
            );
            return Ok(AsyncRawResponse::from_bytes(
                StatusCode::Unauthorized,
                headers,
                "{}",
            ));
        }
        let body = match request.body() {
            Body::Bytes(bytes) => bytes.clone(),
            Body::SeekableStream(_) => return Ok(refused()),
        };
        let (status, json) = self.respond(request.method().as_str(), request.url().path(), &body);
        Ok(AsyncRawResponse::from_bytes(
            status,
            Headers::new(),
            json.to_string(),
        ))
    }
}

fn refused() -> AsyncRawResponse {
    AsyncRawResponse::from_bytes(StatusCode::BadRequest, Headers::new(), "{}")
}

/// The identity of the program.
#[derive(Debug)]
struct Identity;

#[async_trait]
impl TokenCredential for Identity {
    async fn get_token(
        &self,
        _scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let expires = SystemTime::now() + Duration::from_secs(3600);
        Ok(AccessToken::new("token-of-the-program", expires.into()))
    }
}
