//! A shared access signature as a credential. `Debug` shows no signature.

use std::fmt;

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::auth::sas::SasTime;
use tablesdk_protocol::operation::QueryOptions;
use zeroize::Zeroizing;

use crate::error::Error;

/// A shared access signature: a query string that grants some operations for some time. The other
/// half of [`SasUrl`](crate::sas::SasUrl), which is where one comes from.
///
/// ```
/// use tablesdk::Sas;
///
/// let sas = Sas::new("?sv=2019-02-02&tn=Employees&sp=r&sig=c2ln")?;
/// assert_eq!(sas.expose(), "sv=2019-02-02&tn=Employees&sp=r&sig=c2ln");
/// assert!(!format!("{sas:?}").contains("c2ln"));
/// # Ok::<(), tablesdk::Error>(())
/// ```
#[derive(Clone)]
pub struct Sas(Zeroizing<String>);

impl Sas {
    /// Takes the token, with or without a leading question mark.
    ///
    /// # Errors
    ///
    /// When the text has no signature, holds what no query can, or has more than 8 KiB.
    pub fn new(token: &str) -> Result<Self, Error> {
        let token = token.trim().trim_start_matches('?');
        let is_query = token
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if token.len() > SAS_BYTES_MAX {
            return Err(Error::configuration_message(
                "the shared access signature is longer than 8 KiB",
            ));
        }
        if !is_query || !token.split('&').any(|pair| pair.starts_with("sig=")) {
            return Err(Error::configuration_message(
                "the shared access signature is not a query string with a `sig`",
            ));
        }
        Ok(Self(Zeroizing::new(token.to_owned())))
    }

    /// The token without a question mark: for the wire, and for nothing that is logged.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The time until which it is valid, if it has one that can be read: its `se`.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        let options = QueryOptions::parse(&self.0).ok()?;
        let expiry = SasTime::parse(options.get("se")?).ok()?;
        Some(expiry.at())
    }

    /// The table that it is for, where it is for one: its `tn`.
    pub(crate) fn table(&self) -> Option<&str> {
        self.0.split('&').find_map(|pair| pair.strip_prefix("tn="))
    }
}

/// Shows everything but the signature.
impl fmt::Debug for Sas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sas(")?;
        for (index, pair) in self.0.split('&').enumerate() {
            let separator = if index == 0 { "" } else { "&" };
            let shown = if pair.starts_with("sig=") {
                "sig=…"
            } else {
                pair
            };
            write!(f, "{separator}{shown}")?;
        }
        f.write_str(")")
    }
}

/// It has to leave room in a URL; one for a table and two keys has about a tenth of this.
const SAS_BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Credential;

    #[test]
    fn a_signature_is_never_shown() {
        let sas = Sas::new("?sv=2019-02-02&tn=people&sig=c2VjcmV0%3D").unwrap();
        assert_eq!(format!("{sas:?}"), "Sas(sv=2019-02-02&tn=people&sig=…)");
        assert!(!format!("{:?}", Credential::from(sas)).contains("c2VjcmV0"));
        let long = format!("sig={}", "x".repeat(SAS_BYTES_MAX));
        for token in ["", "sv=2019-02-02", "sig=a b", "sig=ä", &long] {
            let error = Sas::new(token).unwrap_err();
            assert_eq!(
                error.kind(),
                crate::error::ErrorKind::Configuration,
                "{token}"
            );
        }
    }
}
