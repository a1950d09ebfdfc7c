//! The values in a shared access signature: each keeps the text that is signed beside what it means.
//!
//! Knows no fields' names and no signatures. See
//! <https://learn.microsoft.com/rest/api/storageservices/create-account-sas>.

use std::fmt;
use std::net::IpAddr;

use super::InvalidSasError;
use crate::Timestamp;

/// Declares a set of letters, which keeps their order, and the letters that mean something for tables.
macro_rules! letters {
    (
        $(#[$set_doc:meta])* $set:ident of
        $(#[$letter_doc:meta])* $letter:ident in $all:literal as $field:literal {
            $($(#[$doc:meta])* $variant:ident = $char:literal,)*
        }
    ) => {
        $(#[$letter_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $letter {
            $($(#[$doc])* $variant,)*
        }

        impl $letter {
            /// The letter.
            pub const fn as_char(self) -> char {
                match self {
                    $(Self::$variant => $char,)*
                }
            }
        }

        $(#[$set_doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $set(String);

        impl $set {
            /// Takes the letters in their order; there may be none.
            ///
            /// # Errors
            ///
            /// When one of them is none that the service knows.
            pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
                if text.len() <= LETTERS_MAX && text.chars().all(|letter| $all.contains(letter)) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidSasError { field: $field })
                }
            }

            /// The letters as they were given.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether this letter is one of them.
            pub fn contains(&self, letter: $letter) -> bool {
                self.0.contains(letter.as_char())
            }

            /// Whether each letter comes once, and in the service's order.
            pub fn is_in_order(&self) -> bool {
                let mut rest = $all.chars();
                self.0.chars().all(|letter| rest.any(|known| known == letter))
            }
        }

        /// In the service's order, each once.
        impl FromIterator<$letter> for $set {
            fn from_iter<I: IntoIterator<Item = $letter>>(letters: I) -> Self {
                let given: String = letters.into_iter().map($letter::as_char).collect();
                Self($all.chars().filter(|letter| given.contains(*letter)).collect())
            }
        }

        impl fmt::Display for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

letters! {
    /// What an account SAS allows: `sp`, such as `rwdlacu`.
    AccountPermissions of
    /// A permission of an account SAS, as far as tables have a use for it.
    AccountPermission in "rwdxylacuptfi" as "sp" {
        /// Read entities and settings.
        Read = 'r',
        /// Write settings, and create tables.
        Write = 'w',
        /// Delete tables and entities.
        Delete = 'd',
        /// List tables.
        List = 'l',
        /// Add entities.
        Add = 'a',
        /// Create tables.
        Create = 'c',
        /// Update entities.
        Update = 'u',
    }
}

letters! {
    /// What a table SAS or a stored access policy allows: `sp`, such as `raud`.
    TablePermissions of
    /// A permission on the entities of a table.
    TablePermission in "raud" as "sp" {
        /// Read entities.
        Read = 'r',
        /// Add entities.
        Add = 'a',
        /// Update entities.
        Update = 'u',
        /// Delete entities.
        Delete = 'd',
    }
}

letters! {
    /// The services for which an account SAS holds: `ss`, such as `bqtf`.
    SasServices of
    /// A service of a storage account.
    SasService in "bqtf" as "ss" {
        /// Blobs.
        Blob = 'b',
        /// Queues.
        Queue = 'q',
        /// Tables.
        Table = 't',
        /// Files.
        File = 'f',
    }
}

letters! {
    /// The kinds of resource for which an account SAS holds: `srt`, such as `sco`.
    SasResourceTypes of
    /// A kind of resource.
    SasResourceType in "sco" as "srt" {
        /// The service: its properties and statistics.
        Service = 's',
        /// Containers: tables.
        Container = 'c',
        /// Objects: entities.
        Object = 'o',
    }
}

/// The version that decides how a signature is computed: `sv`, such as `2019-02-02`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SasVersion(String);

impl SasVersion {
    /// Takes a date of the form `YYYY-MM-DD`.
    ///
    /// # Errors
    ///
    /// When the text is none.
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

    /// Dates of this form compare as texts.
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

/// A time in a SAS, and the text it was given as, which is what is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SasTime {
    text: String,
    at: Timestamp,
}

impl SasTime {
    /// Reads `YYYY-MM-DD`, or a time in UTC down to the minute, the second or a part of it, with a `Z` at its end.
    ///
    /// # Errors
    ///
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidSasError> {
        let invalid = InvalidSasError { field: "st or se" };
        if text.len() != DATE_LENGTH && !text.ends_with('Z') {
            return Err(invalid);
        }
        let at = text.parse().map_err(|_| invalid)?;
        Ok(Self {
            text: text.to_owned(),
            at,
        })
    }

    /// The text.
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

/// The addresses from which a SAS may be used: `sip`, one address or two with a hyphen between them, both included.
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
    /// When the text is neither, or the range ends before it starts.
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

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the address is one of them.
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
    /// For every other text; `http` alone is none of the values.
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

/// As many letters as one could want, were each given twice.
const LETTERS_MAX: usize = 32;

/// `YYYY-MM-DD`.
const DATE_LENGTH: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_keep_the_order_they_were_given_in() {
        let permissions = AccountPermissions::parse("urw").unwrap();
        assert_eq!(permissions.as_str(), "urw");
        assert!(permissions.contains(AccountPermission::Write));
        assert!(!permissions.contains(AccountPermission::Delete));
        assert!(!permissions.is_in_order());
        assert!(AccountPermissions::parse("rz").is_err());
        assert!(AccountPermissions::parse(&"r".repeat(33)).is_err());
        assert!(AccountPermissions::parse("").unwrap().is_in_order());
        for (text, is_in_order) in [("raud", true), ("rd", true), ("ar", false), ("rr", false)] {
            let permissions = TablePermissions::parse(text).unwrap();
            assert_eq!(permissions.is_in_order(), is_in_order, "{text}");
        }
        let letters = [
            TablePermission::Delete,
            TablePermission::Read,
            TablePermission::Read,
        ];
        assert_eq!(
            letters.into_iter().collect::<TablePermissions>().as_str(),
            "rd"
        );
    }

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
        ] {
            let time = SasTime::parse(text).unwrap();
            assert_eq!((time.as_str(), time.at().to_string().as_str()), (text, at));
        }
        for text in [
            "",
            "Z",
            "2024-03-15T10:20:30",
            "2024-03-15T10:20:30+00:00",
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
