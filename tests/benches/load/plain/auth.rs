//! Shared Key signatures, checked with a key that is scheduled once.

use std::error::Error;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header;
use http::request::Parts;
use sha2::Sha256;

/// Checks the signatures of one account.
pub(super) struct Verifier {
    account: &'static str,
    key: Hmac<Sha256>,
}

impl Verifier {
    pub(super) fn new(account: &'static str, key: &str) -> Result<Self, Box<dyn Error>> {
        let key = BASE64_STANDARD.decode(key)?;
        Ok(Self {
            account,
            key: Hmac::new_from_slice(&key)?,
        })
    }

    /// Returns true if the request has a valid signature.
    pub(super) fn accepts(&self, head: &Parts) -> bool {
        let header = |name| {
            let value = head.headers.get(name).map(|value| value.to_str());
            value.and_then(Result::ok)
        };
        let Some(signature) = header(header::AUTHORIZATION.as_str())
            .and_then(|value| value.strip_prefix("SharedKey "))
            .and_then(|value| value.split_once(':'))
            .filter(|(account, _)| *account == self.account)
            .and_then(|(_, signature)| BASE64_STANDARD.decode(signature).ok())
        else {
            return false;
        };
        let mut text = format!(
            "{}\n{}\n{}\n{}\n/{}{}",
            head.method,
            header("content-md5").unwrap_or_default(),
            header("content-type").unwrap_or_default(),
            header("x-ms-date")
                .or_else(|| header("date"))
                .unwrap_or_default(),
            self.account,
            head.uri.path(),
        );
        let query = head.uri.query().unwrap_or_default();
        if let Some(component) = query.split('&').find(|pair| pair.starts_with("comp=")) {
            text += &format!("?{component}");
        }
        let mut key = self.key.clone();
        key.update(text.as_bytes());
        key.verify_slice(&signature).is_ok()
    }
}
