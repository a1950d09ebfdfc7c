//! `Content-MD5`: whether the body is the one that was sent.
//!
//! Guards against accidents and nothing else; what guards against attackers is the signature, and
//! TLS. See
//! <https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};

use super::headers::RequestHeaders;
use crate::types::header::CONTENT_MD5;
use crate::types::{ErrorCode, ServiceError};

/// Checks the body against the header, where there is one.
///
/// # Errors
///
/// `InvalidMd5` when the header holds no checksum, or is there twice; `Md5Mismatch` when it holds
/// another one.
pub(super) fn check(headers: RequestHeaders<'_>, body: &[u8]) -> Result<(), ServiceError> {
    let Some(value) = headers.first(CONTENT_MD5) else {
        return Ok(());
    };
    let expected = STANDARD.decode(value).ok();
    let expected = expected.and_then(|bytes| <[u8; CHECKSUM_BYTES]>::try_from(bytes).ok());
    let Some(expected) = expected.filter(|_| headers.all(CONTENT_MD5).nth(1).is_none()) else {
        return Err(ErrorCode::InvalidMd5.into());
    };
    if Md5::digest(body)[..] == expected {
        Ok(())
    } else {
        Err(ErrorCode::Md5Mismatch.into())
    }
}

const CHECKSUM_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn code(values: &[&'static str], body: &str) -> Option<ErrorCode> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_MD5, HeaderValue::from_static(value));
        }
        let checked = check(RequestHeaders::Alone(&headers), body.as_bytes());
        checked.err().map(|error| error.code().clone())
    }

    #[test]
    fn a_body_has_to_be_the_one_that_was_sent() {
        // The checksums of RFC 1321, in Base64.
        let empty = "1B2M2Y8AsgTpgAmY7PhCfg==";
        let digest = "+WtpfXy3k41SWi8xqvFh0A==";
        assert_eq!(code(&[], "anything"), None);
        assert_eq!(code(&[empty], ""), None);
        assert_eq!(code(&[digest], "message digest"), None);
        assert_eq!(
            code(&[digest], "message digesT"),
            Some(ErrorCode::Md5Mismatch)
        );
        for values in [
            &[""][..],
            &["x"],
            &["1B2M2Y8AsgTpgAmY7PhCfg"],
            &["1B2M2Y8AsgTpgAmY7PhC"],
            &["d41d8cd98f00b204e9800998ecf8427e"],
            &[empty, empty],
        ] {
            assert_eq!(code(values, ""), Some(ErrorCode::InvalidMd5), "{values:?}");
        }
    }
}
