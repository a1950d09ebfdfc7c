//! Texts that cannot be guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::error::AnyError;

/// A random text of 256 bits.
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new() -> Result<Self, AnyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns true if a text is this one. The time taken does not reveal how much of it is right.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
