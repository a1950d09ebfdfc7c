//! Authenticates a request that is otherwise complete, and decides whether another authentication
//! may help.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use tablesdk_protocol::auth::sas::UserDelegationKey;
use tablesdk_protocol::auth::{Scheme, SharedKey};
use tablesdk_protocol::header as name;
use tablesdk_protocol::wire::error_body;
use tablesdk_protocol::{ErrorCode, Timestamp};

use super::Pipeline;
use crate::credential::{Bearer, Presented, Signer};
use crate::error::Error;

/// The credential of an attempt. The attempt keeps it even if the credential of the client is
/// replaced in the meantime.
#[derive(Debug)]
pub(super) struct RequestAuth {
    signer: Arc<Signer>,
    bearer: Option<Arc<Bearer>>,
}

impl RequestAuth {
    /// The version of the protocol for it.
    // SERVICE: older versions respond 403 to a refused token, without a challenge.
    pub(super) fn service_version(&self) -> &'static str {
        match &*self.signer {
            Signer::Token(_) => "2020-12-06",
            // Known to Azure Table storage, Cosmos DB and every emulator.
            _ => "2019-02-02",
        }
    }

    /// The account whose key signs.
    pub(super) fn account(&self) -> Option<&str> {
        match &*self.signer {
            Signer::SharedKey(key) => Some(key.account()),
            _ => None,
        }
    }

    /// Signs: after this, nothing may change.
    pub(super) fn sign(&self, request: &mut Request<Bytes>) {
        let presented = self.bearer.as_ref().map(|bearer| &bearer.presented);
        let sas = match (&*self.signer, presented) {
            (Signer::Sas(sas), _) | (_, Some(Presented::Query(sas))) => Some(sas),
            (Signer::Token(token), _) => token.sas.as_ref(),
            _ => None,
        };
        if let Some(sas) = sas {
            *request.uri_mut() = with_query(request.uri(), sas.expose());
        }
        let authorization = match (&*self.signer, presented) {
            (Signer::SharedKey(key), _) => authorization(key, request),
            (_, Some(Presented::Header(authorization))) => authorization.clone(),
            _ => return,
        };
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, authorization);
    }
}

impl Pipeline {
    /// The credential for an attempt. Waits for a token, where there is none yet.
    pub(super) async fn authenticate(&self) -> Result<RequestAuth, Error> {
        let signer = self.credential.current();
        let bearer = match &*signer {
            Signer::SasSource(cache) => Some(cache.token().await?),
            Signer::Token(token) => Some(token.cache.token().await?),
            Signer::Anonymous | Signer::Sas(_) | Signer::SharedKey(_) => None,
        };
        Ok(RequestAuth { signer, bearer })
    }

    /// The user delegation key that the credential keeps, if it is valid until then; or the one
    /// that `get` requests.
    pub(crate) async fn kept_key<F>(
        &self,
        until: Timestamp,
        get: impl Fn() -> F + Send + Sync,
    ) -> Result<UserDelegationKey, Error>
    where
        F: Future<Output = Result<UserDelegationKey, Arc<Error>>> + Send + 'static,
    {
        match &*self.credential.current() {
            Signer::Token(token) => token.key.until(until, get).await,
            _ => Err(Error::configuration_message(
                "a user delegation key is got with a token of Microsoft Entra ID, which this client does not have",
            )),
        }
    }

    /// Returns true if a request with this response may be signed and sent once more: the
    /// credential was replaced since, or the service asks for another token. The request was not
    /// carried out.
    pub(super) fn can_reauthenticate(
        &self,
        auth: &RequestAuth,
        response: &Response<Bytes>,
    ) -> bool {
        let status = response.status();
        if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
            return false;
        }
        let headers = response.headers();
        if !Arc::ptr_eq(&auth.signer, &self.credential.current()) {
            let error = error_body::read(status, headers, response.body());
            return status == StatusCode::UNAUTHORIZED
                || *error.code() == ErrorCode::AuthenticationFailed;
        }
        match (&*auth.signer, &auth.bearer) {
            // The times of a signature may be those of a policy, which has changed.
            (Signer::SasSource(cache), Some(bearer)) => {
                let error = error_body::read(status, headers, response.body());
                *error.code() == ErrorCode::AuthenticationFailed && cache.learn_refusal(bearer)
            }
            (Signer::Token(token), Some(bearer)) if status == StatusCode::UNAUTHORIZED => {
                let challenge = headers.get(header::WWW_AUTHENTICATE);
                let cache = &token.cache;
                cache.learn(bearer, challenge.and_then(|value| value.to_str().ok()))
            }
            _ => false,
        }
    }
}

// Shared Key and not Shared Key Lite: every backend takes both, and the full scheme signs the verb
// and the content type as well.
fn authorization(key: &SharedKey, request: &Request<Bytes>) -> HeaderValue {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    debug_assert!(headers.contains_key(name::X_MS_DATE), "the date is signed");
    // The full scheme covers the verb and the content type, too; the light one covers neither.
    let text = key.authorization(Scheme::SharedKey, method, uri, headers);
    let mut value = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
    // Keeps the signature out of the `Debug` of the headers, here and in every transport.
    value.set_sensitive(true);
    value
}

fn with_query(uri: &Uri, sas: &str) -> Uri {
    let separator = if uri.query().is_some() { '&' } else { '?' };
    let url = format!("{uri}{separator}{sas}");
    url.parse()
        .expect("a URL with a token of visible ASCII in its query is a URL")
}
