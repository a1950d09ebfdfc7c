//! Where the next page of a query starts, as headers and query options carry it.
//!
//! A client passes a token back as it came. Only the server that made it looks inside. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-timeout-and-pagination>.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

/// The start of the next page of entities: opaque strings, as the service sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityContinuation {
    /// The value of `NextPartitionKey`.
    pub next_partition_key: String,
    /// The value of `NextRowKey`. The service may leave it out, and then it must not be sent back
    /// empty.
    pub next_row_key: Option<String>,
}

/// Makes a token of a key: `1!{length}!{Base64}`, as the service does.
pub fn encode_token(text: &str) -> String {
    let encoded = TOKEN_BASE64.encode(text).replace('=', "-");
    format!("1!{}!{encoded}", encoded.len())
}

/// Reads a token that [`encode_token`] made.
///
/// # Errors
///
/// When the string is not such a token. The service would return `InvalidInput`.
pub fn decode_token(token: &str) -> Result<String, InvalidTokenError> {
    let (length, encoded) = token
        .strip_prefix("1!")
        .and_then(|rest| rest.split_once('!'))
        .ok_or(InvalidTokenError)?;
    // The padding has one spelling.
    if length != encoded.len().to_string() || encoded.contains('=') {
        return Err(InvalidTokenError);
    }
    let bytes = TOKEN_BASE64
        .decode(encoded.replace('-', "="))
        .map_err(|_| InvalidTokenError)?;
    String::from_utf8(bytes).map_err(|_| InvalidTokenError)
}

/// The string is not a continuation token of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a continuation token of this service")]
pub struct InvalidTokenError;

// SERVICE: the recorded tokens show `-` for the padding; what stands for `+` and `/` was never
// seen.
const TOKEN_BASE64: GeneralPurpose = GeneralPurpose::new(
    &match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*_") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("sixty-four different characters are an alphabet"),
    },
    PAD,
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn has_the_form_seen_from_the_service() {
        for (key, token) in [
            ("pkadca2e0d", "1!16!cGthZGNhMmUwZA--"),
            ("rkadca2e0d123", "1!20!cmthZGNhMmUwZDEyMw--"),
            ("rkadca2e0d12345", "1!20!cmthZGNhMmUwZDEyMzQ1"),
        ] {
            assert_eq!(encode_token(key), token);
            assert_eq!(decode_token(token).as_deref(), Ok(key));
        }
    }

    #[test]
    fn other_strings_are_refused() {
        for token in [
            "",
            "1!",
            "1!0",
            "2!0!",
            "1!+4!cGs-",
            "1!04!cGs-",
            "1!4!cGsx-",
            "1!4!cGt-",
            "1!4!cGs=",
            "1!4!cA-=",
            "1!3!cGs-",
            "1!4!c%s-",
            "cGs-",
            "1!4!____",
        ] {
            assert_eq!(decode_token(token), Err(InvalidTokenError), "{token}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_makes_in_ascii(key: String) {
            let token = encode_token(&key);
            prop_assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(decode_token(&token), Ok(key));
        }
    }
}
