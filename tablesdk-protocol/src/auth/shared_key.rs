//! An account's name and key. The key never leaves: it is not printed, it is wiped when dropped,
//! and signatures are compared in constant time.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, Uri};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::string_to_sign::{Scheme, write_string_to_sign};

/// The name of a storage account and one of its two keys.
///
/// ```
/// # use tablesdk_protocol::auth::SharedKey;
/// let key = SharedKey::new("acct", "c2VjcmV0")?;
/// assert_eq!(format!("{key:?}"), r#"SharedKey { account: "acct", .. }"#);
/// # Ok::<(), tablesdk_protocol::auth::InvalidKeyError>(())
/// ```
#[derive(Clone)]
pub struct SharedKey {
    account: String,
    key: Zeroizing<Vec<u8>>,
    /// The HMAC with the key already mixed in: a third of the work of each signature.
    keyed: Hmac<Sha256>,
}

impl SharedKey {
    /// The account's name and its key in Base64, as the portal and connection strings give them.
    ///
    /// # Errors
    ///
    /// When the key is not Base64, or empty. The error never holds the key.
    pub fn new(account: impl Into<String>, key: &str) -> Result<Self, InvalidKeyError> {
        let key = Zeroizing::new(STANDARD.decode(key.trim()).map_err(|_| InvalidKeyError)?);
        if key.is_empty() {
            return Err(InvalidKeyError);
        }
        Ok(Self::from_bytes(account, key))
    }

    /// The account's name and its key as bytes.
    pub fn from_bytes(account: impl Into<String>, key: impl Into<Zeroizing<Vec<u8>>>) -> Self {
        let key = key.into();
        let keyed = Hmac::new_from_slice(&key).expect("HMAC takes a key of any length");
        Self {
            account: account.into(),
            key,
            keyed,
        }
    }

    /// The name of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The key in Base64: for a connection string, and for nothing that is logged.
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.key.as_slice()))
    }

    /// Signs a string, for the two sides of the protocol.
    #[doc(hidden)]
    pub fn sign(&self, text: &str) -> Signature {
        let mut mac = self.keyed.clone();
        mac.update(text.as_bytes());
        Signature(STANDARD.encode(mac.finalize().into_bytes()))
    }

    /// Returns true if a string from the wire is the signature that this key gives a request. The
    /// [`string_to_sign`](super::string_to_sign()) of the request is not built. The time taken does
    /// not reveal where the strings differ.
    #[doc(hidden)]
    pub fn has_signed(
        &self,
        signature: &str,
        scheme: Scheme,
        account: &str,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> bool {
        let expected = self.sign_request(scheme, account, method, uri, headers);
        expected.ct_eq(signature.as_bytes()).into()
    }

    /// The value of the header `Authorization` that this scheme gives a request.
    #[doc(hidden)]
    pub fn authorization(
        &self,
        scheme: Scheme,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> String {
        let account = self.account();
        let signature = self.sign_request(scheme, account, method, uri, headers);
        let signature = std::str::from_utf8(&signature).expect("Base64 is ASCII");
        [scheme.as_str(), " ", account, ":", signature].concat()
    }

    /// The signature of a request in Base64.
    fn sign_request(
        &self,
        scheme: Scheme,
        account: &str,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.keyed.clone();
        write_string_to_sign(scheme, account, method, uri, headers, |part| {
            mac.update(part.as_bytes());
        });
        let mut text = [0; SIGNATURE_BYTES];
        STANDARD
            .encode_slice(mac.finalize().into_bytes(), &mut text)
            .expect("a SHA-256 has that length in Base64");
        text
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// The length of a SHA-256 in Base64.
const SIGNATURE_BYTES: usize = 44;

/// A signature in Base64. Not printed by `Debug`; compared in constant time.
#[derive(Clone)]
pub struct Signature(String);

impl Signature {
    /// The Base64 string, for the wire.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns true if a string from the wire is this signature. The time taken does not reveal
    /// where the strings differ.
    pub fn matches(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(…)")
    }
}

/// The account key is not Base64, or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the account key is not Base64")]
pub struct InvalidKeyError;
