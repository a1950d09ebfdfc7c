//! The values of fields of a shared access signature: each keeps its string, which is signed, and
//! its meaning. See
//! <https://learn.microsoft.com/rest/api/storageservices/create-account-sas>.

use std::net::IpAddr;

use super::InvalidSasError;
use crate::types::{Guid, Timestamp};

/// The version that decides how a signature is computed: `sv`, such as `2019-02-02`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SasVersion(String);

impl SasVersion {
    /// Takes a date of the form `YYYY-MM-DD`.
    ///
    /// # Errors
    ///
    /// When the string has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        if text.len() == DATE_LENGTH && text.parse::<Timestamp>().is_ok() {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSasError { field: "sv" })
        }
    }

    /// The date.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Dates of this form compare as strings.
    pub(super) fn is_before(&self, date: &str) -> bool {
        self.0.as_str() < date
    }
}

/// The version that every backend knows.
impl Default for SasVersion {
    fn default() -> Self {
        Self("2019-02-02".to_owned())
    }
}

/// A time in a SAS, and the string that it was given as, which is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasTime {
    text: String,
    at: Timestamp,
}

impl SasTime {
    /// Reads `YYYY-MM-DD`, or a time down to the minute, the second or seven digits of it, in UTC
    /// or with an offset.
    ///
    /// # Errors
    ///
    /// When the string has another form.
    // SERVICE: some recordings refuse six digits of a second, which may be a fault of their client.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        let invalid = InvalidSasError { field: "st or se" };
        let (_, fraction) = text.split_once('.').unwrap_or_default();
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > FRACTION_DIGITS_MAX {
            return Err(invalid);
        }
        let at = text.parse().map_err(|_| invalid)?;
        Ok(Self {
            text: text.to_owned(),
            at,
        })
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The time.
    pub const fn at(&self) -> Timestamp {
        self.at
    }
}

/// Cut to whole seconds, which every backend reads.
impl From<Timestamp> for SasTime {
    fn from(at: Timestamp) -> Self {
        let padded = at.to_padded_string();
        let text = match padded.split_once('.') {
            Some((seconds, _)) => format!("{seconds}Z"),
            None => padded,
        };
        let at = text.parse().unwrap_or(at);
        Self { text, at }
    }
}

/// An identifier in a SAS, and the string that it was given as, which is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasGuid {
    text: String,
    id: Guid,
}

impl SasGuid {
    /// Reads the form 8-4-4-4-12 in letters of any case.
    ///
    /// # Errors
    ///
    /// When the string has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        let id = text.parse();
        Ok(Self {
            text: text.to_owned(),
            id: id.map_err(|_| InvalidSasError { field: "skoid" })?,
        })
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The identifier.
    pub const fn id(&self) -> Guid {
        self.id
    }
}

impl From<Guid> for SasGuid {
    fn from(id: Guid) -> Self {
        let text = id.to_string();
        Self { text, id }
    }
}

/// The addresses from which a SAS may be used: `sip`, one address or two with a hyphen between
/// them, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasAddresses {
    text: String,
    first: IpAddr,
    last: IpAddr,
}

impl SasAddresses {
    /// Reads an address or a range of addresses.
    ///
    /// # Errors
    ///
    /// When the string is neither, or the range ends before it starts.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        let invalid = InvalidSasError { field: "sip" };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| invalid);
        let (first, last) = (address(first)?, address(last)?);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            return Err(invalid);
        }
        Ok(Self {
            text: text.to_owned(),
            first,
            last,
        })
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        // An IPv4 peer of a socket for both families.
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && (self.first..=self.last).contains(&address)
    }
}

/// The protocols over which a SAS may be used: `spr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the service has these two values")]
pub enum SasProtocol {
    /// `https`.
    Https,
    /// `https,http`.
    HttpsAndHttp,
}

impl SasProtocol {
    /// Reads the value of `spr`.
    ///
    /// # Errors
    ///
    /// For every other string; `http` alone is not a value.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        match text {
            "https" => Ok(Self::Https),
            "https,http" => Ok(Self::HttpsAndHttp),
            _ => Err(InvalidSasError { field: "spr" }),
        }
    }

    /// The value of `spr`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::HttpsAndHttp => "https,http",
        }
    }
}

/// A time is a multiple of 100 ns.
const FRACTION_DIGITS_MAX: usize = 7;

/// `YYYY-MM-DD`.
const DATE_LENGTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_documented_forms() {
        for (text, at) in [
            ("2024-03-15", "2024-03-15T00:00:00Z"),
            ("2024-03-15T10:20Z", "2024-03-15T10:20:00Z"),
            ("2024-03-15T10:20:30Z", "2024-03-15T10:20:30Z"),
            (
                "2024-03-15T10:20:30.1234567Z",
                "2024-03-15T10:20:30.1234567Z",
            ),
            ("2024-03-15T10:20", "2024-03-15T10:20:00Z"),
            ("2024-03-15T10:20:30", "2024-03-15T10:20:30Z"),
            ("2024-03-15T10:20:30.123456", "2024-03-15T10:20:30.123456Z"),
            ("2024-03-15T10:20:30+00:00", "2024-03-15T10:20:30Z"),
            ("2024-03-15T10:20-23:59", "2024-03-16T10:19:00Z"),
            ("2024-03-15T10:20:30.5+02:00", "2024-03-15T08:20:30.5Z"),
        ] {
            let time = SasTime::parse(text).unwrap();
            assert_eq!((time.as_str(), time.at().to_string().as_str()), (text, at));
        }
        for text in [
            "",
            "Z",
            "2024-03-15T10:20:30+24:00",
            "2024-03-15T10:20:30.12345678Z",
            "15.03.2024",
            "2024-13-01",
        ] {
            assert!(SasTime::parse(text).is_err(), "{text}");
        }
        let at: Timestamp = "2024-03-15T10:20:30.9Z".parse().unwrap();
        let time = SasTime::from(at);
        assert_eq!(time.as_str(), "2024-03-15T10:20:30Z");
        assert!(time.at() < at);
    }

    #[test]
    fn addresses_are_one_or_a_range() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let range = SasAddresses::parse("168.1.5.60-168.1.5.70").unwrap();
        for (address, is_in) in [
            ("168.1.5.59", false),
            ("168.1.5.60", true),
            ("168.1.5.70", true),
            ("::ffff:168.1.5.65", true),
            ("168.1.5.71", false),
            ("::1", false),
        ] {
            assert_eq!(range.contains(ip(address)), is_in, "{address}");
        }
        assert!(SasAddresses::parse("::1").unwrap().contains(ip("::1")));
        for text in [
            "",
            "x",
            "1.2.3",
            "1.2.3.4-",
            "1.2.3.5-1.2.3.4",
            "1.2.3.4-::1",
        ] {
            assert!(SasAddresses::parse(text).is_err(), "{text}");
        }
    }
}
