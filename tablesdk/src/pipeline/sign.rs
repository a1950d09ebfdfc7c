//! Puts the credential on a request that is otherwise ready to go.

use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use tablesdk_protocol::auth::{Scheme, SharedKey, string_to_sign};

use crate::credential::Credential;

pub(super) fn sign(credential: &Credential, request: &mut Request<Bytes>) {
    match credential {
        Credential::Anonymous => {}
        Credential::Sas(sas) => *request.uri_mut() = with_query(request.uri(), sas.expose()),
        Credential::SharedKey(key) => {
            let authorization = authorization(key, request);
            request
                .headers_mut()
                .insert(header::AUTHORIZATION, authorization);
        }
    }
}

fn authorization(key: &SharedKey, request: &Request<Bytes>) -> HeaderValue {
    let account = key.account();
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    // The full scheme covers the verb and the content type, too; the light one covers neither.
    let scheme = Scheme::SharedKey;
    let signature = key.sign(&string_to_sign(scheme, account, method, uri, headers));
    let text = format!("{} {account}:{}", scheme.as_str(), signature.expose());
    let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
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
