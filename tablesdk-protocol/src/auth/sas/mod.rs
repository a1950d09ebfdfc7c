//! Shared access signatures: a query string that grants some operations for a limited time, and the
//! part of it that is signed.
//!
//! This module knows the fields, their layouts by version, and the signature. The server decides
//! what an operation needs. This module does not check the time. See
//! <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>.

mod account;
mod delegation;
mod field;
mod letters;
mod table;

use std::fmt;

use percent_encoding::utf8_percent_encode;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

pub use account::AccountSas;
pub use delegation::{Delegation, FIRST_VERSION_WITH_DELEGATION, KeyTerms, UserDelegationKey};
pub use field::{SasAddresses, SasGuid, SasProtocol, SasTime, SasVersion};
pub use letters::{
    AccountPermissions, LetterSet, Permissions, ResourceTypes, SasLetters, Services,
};
pub use table::{SasBound, SasKeyRange, TableSas};

use self::delegation::DELEGATION_FIELDS;
use super::{SharedKey, Signature};
use crate::path::QueryOptions;
use crate::path::RESERVED;

/// The fields of a shared access signature, signed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the service has these two kinds for tables"
)]
pub enum Sas {
    /// For the services of an account.
    Account(AccountSas),
    /// For the entities of one table.
    Table(TableSas),
}

impl Sas {
    /// The string that is signed for that account.
    pub fn string_to_sign(&self, account: &str) -> String {
        match self {
            Self::Account(sas) => sas.string_to_sign(account),
            Self::Table(sas) => sas.string_to_sign(account),
        }
    }

    /// Signs it with the key of the account it is for.
    pub fn sign(self, key: &SharedKey) -> SignedSas {
        let signature = key.sign(&self.string_to_sign(key.account()));
        let signature = Zeroizing::new(signature.expose().to_owned());
        SignedSas {
            sas: self,
            signature,
        }
    }

    /// The version that decides how it is signed.
    pub const fn version(&self) -> &SasVersion {
        match self {
            Self::Account(sas) => &sas.version,
            Self::Table(sas) => &sas.version,
        }
    }
}

impl From<AccountSas> for Sas {
    fn from(sas: AccountSas) -> Self {
        Self::Account(sas)
    }
}

impl From<TableSas> for Sas {
    fn from(sas: TableSas) -> Self {
        Self::Table(sas)
    }
}

/// A shared access signature as it stands in a URL. `Debug` does not show the signature.
#[derive(Clone)]
pub struct SignedSas {
    sas: Sas,
    signature: Zeroizing<String>,
}

impl SignedSas {
    /// Returns true if a query contains a signature, and is meant to be read by
    /// [`SignedSas::parse`].
    pub fn is_in(query: &str) -> bool {
        // Most requests have a header instead, and many have no query.
        !query.is_empty() && query.split('&').any(|pair| pair.starts_with("sig="))
    }

    /// Returns true if a query contains a field that only a user delegation SAS has.
    pub fn is_delegated_in(query: &str) -> bool {
        let is_field = |name: &str| DELEGATION_FIELDS.contains(&name);
        let mut pairs = query.split('&');
        !query.is_empty()
            && pairs.any(|pair| pair.split_once('=').is_some_and(|(name, _)| is_field(name)))
    }

    /// Reads it from the query of a URL, which may have other things in it.
    ///
    /// A field without a value counts as absent: both are signed alike.
    ///
    /// # Errors
    ///
    /// When a field is missing, is there twice, or has a value that the service does not know.
    pub fn parse(query: &str) -> Result<Self, InvalidSasError> {
        let options = QueryOptions::parse(query).map_err(|_| InvalidSasError { field: "sig" })?;
        let fields = Fields(&options);
        // A plus sign that was not escaped has become a space, which Base64 does not have.
        let signature = fields.require("sig")?.replace(' ', "+");
        let is_account = fields.get("ss")?.is_some() || fields.get("srt")?.is_some();
        let sas = if is_account {
            AccountSas::parse(&fields)?.into()
        } else {
            TableSas::parse(&fields)?.into()
        };
        Ok(Self {
            sas,
            signature: Zeroizing::new(signature),
        })
    }

    /// The fields of the shared access signature. Nothing is granted before
    /// [`SignedSas::is_signed_by`] returns true.
    pub const fn sas(&self) -> &Sas {
        &self.sas
    }

    /// The fields without the signature.
    pub fn into_sas(self) -> Sas {
        self.sas
    }

    /// Returns true if one of the account's keys made the signature. The time taken reveals neither
    /// which key it was nor where a signature differs.
    pub fn is_signed_by(&self, keys: &[SharedKey]) -> bool {
        let mut found = Choice::from(0);
        for key in keys {
            let expected = key.sign(&self.sas.string_to_sign(key.account()));
            found |= expected
                .expose()
                .as_bytes()
                .ct_eq(self.signature.as_bytes());
        }
        found.into()
    }

    /// Returns true if it has this signature. The time taken does not reveal where they differ.
    pub fn has_signature(&self, signature: &Signature) -> bool {
        signature.matches(&self.signature)
    }

    /// The query string, without a question mark: for the wire, and for nothing that is logged.
    pub fn expose(&self) -> Zeroizing<String> {
        let fields: Vec<_> = match &self.sas {
            Sas::Account(sas) => sas.fields().to_vec(),
            Sas::Table(sas) => sas.url_fields(),
        };
        let mut query = Zeroizing::new(String::new());
        let signature = [("sig", Some(self.signature.as_str()))];
        for (name, value) in fields.into_iter().chain(signature) {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(name);
            query.push('=');
            query.extend(utf8_percent_encode(value, RESERVED));
        }
        query
    }
}

impl fmt::Debug for SignedSas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedSas")
            .field("sas", &self.sas)
            .finish_non_exhaustive()
    }
}

/// The fields of a SAS by their names in the query.
struct Fields<'q>(&'q QueryOptions);

impl<'q> Fields<'q> {
    /// The value of a field; `None` when it is absent or empty.
    fn get(&self, name: &'static str) -> Result<Option<&'q str>, InvalidSasError> {
        let mut values = self.0.all(name);
        let value = values.next().unwrap_or_default();
        // Fields are signed as lines: a line break inside one could pass for the next field.
        let is_one = values.next().is_none();
        if !is_one || value.len() > FIELD_BYTES_MAX || value.chars().any(char::is_control) {
            return Err(InvalidSasError { field: name });
        }
        Ok((!value.is_empty()).then_some(value))
    }

    fn require(&self, name: &'static str) -> Result<&'q str, InvalidSasError> {
        self.get(name)?.ok_or(InvalidSasError { field: name })
    }

    fn parse<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, InvalidSasError>,
    ) -> Result<Option<T>, InvalidSasError> {
        let value = self.get(name)?;
        let parsed = value.map(parse).transpose();
        parsed.map_err(|_| InvalidSasError { field: name })
    }

    /// Refuses fields that this kind of SAS does not sign: they would have no effect, contrary to
    /// what the caller expects.
    fn refuse(&self, names: &[&'static str]) -> Result<(), InvalidSasError> {
        for name in names {
            if self.get(name)?.is_some() {
                return Err(InvalidSasError { field: name });
            }
        }
        Ok(())
    }
}

/// A string is not a shared access signature: a field is missing, repeated, or has a value that the
/// service does not know. Never holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the field {field} of the shared access signature is missing or malformed")]
pub struct InvalidSasError {
    field: &'static str,
}

impl InvalidSasError {
    /// The name of the field in the query, such as `se`.
    pub const fn field(&self) -> &'static str {
        self.field
    }
}

/// A key may have 512 UTF-16 units, which are at most 1,536 bytes. No other field comes near.
const FIELD_BYTES_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACCOUNT: &str = "sv=2019-02-02&ss=t&srt=sco&sp=rwdlau&se=2030-01-01T00%3A00%3A00Z&sig=5tI7rv%2BQAZXnSgCzkMiIaE%2FjE065jB0BYdM8PMBV6RU%3D";
    const TABLE: &str = "sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=c2ln";

    const DELEGATED: &str = "sv=2025-07-05&tn=people&sp=r&se=2030-01-01&skoid=c9da6455-213d-42c9-9a79-3e9149a57833&sktid=72f988bf-86f1-41af-91ab-2d7cd011db47&skt=2030-01-01&ske=2030-01-02&sks=t&skv=2025-07-05&sig=c2ln";

    #[test]
    fn debug_shows_no_signature() {
        let sas = SignedSas::parse(ACCOUNT).unwrap();
        let text = format!("{sas:?}");
        assert!(
            text.contains("rwdlau") && !text.contains("5tI7rv"),
            "{text}"
        );
    }

    #[test]
    fn a_plus_sign_that_was_not_escaped_is_still_one() {
        let careless = ACCOUNT.replace("%2B", "+").replace("%2F", "/");
        let sas = SignedSas::parse(&careless).unwrap();
        assert_eq!(sas.expose().as_str(), ACCOUNT);
    }

    #[test]
    fn a_malformed_field_is_named() {
        for (from, to, field) in [
            ("&sig=", "&gis=", "sig"),
            ("sv=2019-02-02", "", "sv"),
            ("sv=2019-02-02", "sv=2019-2-2", "sv"),
            ("sv=2019-02-02", "sv=2014-02-14", "sv"),
            ("ss=t", "ss=x", "ss"),
            ("ss=t", "ss=", "ss"),
            ("srt=sco", "srt=t", "srt"),
            ("srt=sco", "srt=s&srt=o", "srt"),
            ("sp=rwdlau", "sp=", "sp"),
            ("sp=rwdlau", "sp=rz", "sp"),
            ("se=2030-01-01T00%3A00%3A00Z", "se=soon", "se"),
            ("se=2030-01-01T00%3A00%3A00Z", "", "se"),
            ("ss=t", "ss=t&st=soon", "st"),
            ("ss=t", "ss=t&spr=http", "spr"),
            ("ss=t", "ss=t&sip=here", "sip"),
            ("ss=t", "ss=t&tn=people", "tn"),
            ("ss=t", "ss=t&spk=a", "spk"),
        ] {
            let query = ACCOUNT.replace(from, to);
            let error = SignedSas::parse(&query).unwrap_err();
            assert_eq!(error.field(), field, "{query}");
        }
        let long = format!("tn=people&spk={}", "x".repeat(2049));
        for (from, to, field) in [
            ("tn=people", "", "tn"),
            ("tn=people", "tn=a-b", "tn"),
            ("tn=people", "tn=people&tn=people", "tn"),
            ("sp=r", "sp=ar", "sp"),
            ("sp=r", "sp=rr", "sp"),
            ("sp=r", "sp=w", "sp"),
            ("tn=people", "tn=people&srk=a", "srk"),
            ("tn=people", "tn=people&spk=a&erk=a", "erk"),
            ("tn=people", "tn=people&epk=&erk=a", "erk"),
            ("tn=people", "tn=people&spk=a%0Ab", "spk"),
            ("tn=people", &long, "spk"),
            ("sv=2019-02-02", "sv=2011-08-18", "sv"),
            ("sv=2019-02-02", "sv=2012-02-12&sip=1.2.3.4", "sip"),
            ("sv=2019-02-02", "sv=2014-02-14&spr=https", "spr"),
        ] {
            let query = TABLE.replace(from, to);
            let error = SignedSas::parse(&query).unwrap_err();
            assert_eq!(error.field(), field, "{query}");
        }
        assert_eq!(
            SignedSas::parse(DELEGATED).unwrap().expose().as_str(),
            DELEGATED
        );
        for (from, to, field) in [
            ("sv=2025-07-05", "sv=2025-05-05", "sv"),
            ("&skoid=c9da6455", "&skoid=x", "skoid"),
            ("&skoid=", "&x=", "sktid"),
            ("&sktid=", "&x=", "sktid"),
            ("&skt=", "&x=", "skt"),
            ("&ske=2030-01-02", "&ske=soon", "ske"),
            ("&sks=t", "&sks=b", "sks"),
            ("&sks=t", "", "sks"),
            ("&skv=2025-07-05", "&skv=2025-05-05", "skv"),
            ("&skv=2025-07-05", "&skv=new", "skv"),
            ("&sks=t", "&sks=t&skdutid=1", "skdutid"),
            ("&sks=t", "&sks=t&sduoid=1", "sduoid"),
            ("&sks=t", "&sks=t&sks=t", "sks"),
            ("&sks=t", "&sks=t&si=readers", "si"),
            ("tn=people", "ss=t&srt=o", "tn"),
        ] {
            let query = DELEGATED.replace(from, to);
            let error = SignedSas::parse(&query).unwrap_err();
            let expected = if field == "tn" { "skoid" } else { field };
            assert_eq!(error.field(), expected, "{query}");
        }
        let long = TABLE.to_owned() + "&si=" + &"x".repeat(65);
        assert_eq!(SignedSas::parse(&long).unwrap_err().field(), "si");
    }

    #[test]
    fn older_versions_sign_fewer_lines() {
        let text = |version: &str| {
            let query = TABLE.replace("2019-02-02", version);
            let query = query.replace("people", "People") + "&si=id&spk=a&srk=b&epk=c&erk=d";
            let sas = SignedSas::parse(&query).unwrap();
            sas.sas().string_to_sign("acct")
        };
        assert_eq!(
            text("2012-02-12"),
            "r\n\n2030-01-01\n/acct/people\nid\na\nb\nc\nd"
        );
        for version in ["2013-08-15", "2014-02-14"] {
            let expected = format!("r\n\n2030-01-01\n/acct/people\nid\n{version}\na\nb\nc\nd");
            assert_eq!(text(version), expected);
        }
        assert_eq!(
            text("2015-02-21"),
            "r\n\n2030-01-01\n/table/acct/people\nid\n2015-02-21\na\nb\nc\nd"
        );
        assert_eq!(
            text("2015-04-05"),
            "r\n\n2030-01-01\n/table/acct/people\nid\n\n\n2015-04-05\na\nb\nc\nd"
        );
    }

    #[test]
    fn an_encryption_scope_is_signed_since_it_is_known() {
        let query = ACCOUNT.to_owned() + "&ses=mine";
        let sas = SignedSas::parse(&query).unwrap();
        assert!(sas.sas().string_to_sign("acct").ends_with("2019-02-02\n"));
        assert!(!sas.expose().contains("mine"));
        let sas = SignedSas::parse(&query.replace("2019-02-02", "2020-12-06")).unwrap();
        assert!(
            sas.sas()
                .string_to_sign("acct")
                .ends_with("2020-12-06\nmine\n")
        );
        assert!(sas.expose().contains("&ses=mine&sig="));
    }

    proptest! {
        #[test]
        fn any_query_is_read_or_refused(
            query in "((sv|tn|sp|st|se|si|sip|spr|spk|srk|epk|erk|ss|srt|ses|skoid|skt|sks|sduoid|sig)=[-a-zA-Z0-9%+,:.=]{0,12}&){0,10}",
            version in "sv=20(12|13|15|19|20|26)-(02|08|12)-(06|12|15)",
        ) {
            let _ = SignedSas::parse(&query);
            let delegated = DELEGATED.split_once('&').unwrap().1.replace("&sig=c2ln", "");
            let kinds = ["tn=people&sp=r&se=2030-01-01", "ss=t&srt=o&sp=r&se=2030-01-01", &delegated];
            for kind in kinds {
                if let Ok(sas) = SignedSas::parse(&format!("{version}&{kind}&sig=x&{query}")) {
                    let again = SignedSas::parse(&sas.expose()).unwrap();
                    prop_assert_eq!(again.sas(), sas.sas());
                    prop_assert_eq!(again.expose(), sas.expose());
                }
            }
        }
    }
}
