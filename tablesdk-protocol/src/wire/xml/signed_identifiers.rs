//! Stored access policies as XML: the body of Get and Set Table ACL.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

use serde::{Deserialize, Serialize};

use super::{XmlError, parse_optional};
use crate::auth::sas::SasLetters;
use crate::auth::{AccessPolicy, SignedIdentifier, check_signed_identifiers};
use crate::types::Timestamp;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identifiers {
    #[serde(rename = "SignedIdentifier", default)]
    identifiers: Vec<Identifier>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Identifier {
    id: String,
    // SERVICE: a policy that says nothing has no element.
    #[serde(default, skip_serializing_if = "Policy::is_empty")]
    access_policy: Policy,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
}

impl Policy {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Prints the policies of a table.
pub fn write_signed_identifiers(identifiers: &[SignedIdentifier]) -> Vec<u8> {
    let identifiers = identifiers.iter().map(|identifier| Identifier {
        id: identifier.id.clone(),
        access_policy: write_policy(&identifier.policy),
    });
    let identifiers = identifiers.collect();
    super::write("SignedIdentifiers", &Identifiers { identifiers })
}

/// Reads the policies of a table and checks them.
///
/// # Errors
///
/// When the document has another form, or breaks a rule of [`check_signed_identifiers`].
pub fn read_signed_identifiers(document: &[u8]) -> Result<Vec<SignedIdentifier>, XmlError> {
    let document: Identifiers = super::read(document, "SignedIdentifiers")?;
    let identifiers = document.identifiers.into_iter().map(|identifier| {
        let policy = read_policy(identifier.access_policy)?;
        let id = identifier.id;
        Ok(SignedIdentifier { id, policy })
    });
    let identifiers = identifiers.collect::<Result<Vec<_>, XmlError>>()?;
    check_signed_identifiers(&identifiers)?;
    Ok(identifiers)
}

// SERVICE: here times have all seven digits.
fn write_policy(policy: &AccessPolicy) -> Policy {
    Policy {
        start: policy.start.map(Timestamp::to_padded_string),
        expiry: policy.expiry.map(Timestamp::to_padded_string),
        permission: policy.permissions.as_ref().map(|it| it.as_str().to_owned()),
    }
}

fn read_policy(policy: Policy) -> Result<AccessPolicy, XmlError> {
    let permissions = |text: &str| SasLetters::parse(text).ok();
    Ok(AccessPolicy {
        start: parse_optional(policy.start, parse_time)?,
        expiry: parse_optional(policy.expiry, parse_time)?,
        permissions: parse_optional(policy.permission, permissions)?,
    })
}

/// A day, or a time in UTC or with an offset.
// SERVICE: a fraction has seven digits; one of three was seen refused.
fn parse_time(text: &str) -> Option<Timestamp> {
    let is_day = text.len() == "2024-03-15".len();
    // The date has hyphens, too.
    let (_, time) = text.split_once('T').unwrap_or_default();
    let end = time.find(['Z', '+', '-']);
    let fraction = end.and_then(|end| time.get(..end)?.split_once('.'));
    let has_seven_digits = fraction.is_none_or(|(_, fraction)| fraction.len() == 7);
    if !is_day && (end.is_none() || !has_seven_digits) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn document(content: &str) -> String {
        format!("<SignedIdentifiers>{content}</SignedIdentifiers>")
    }

    fn one(policy: &str) -> Result<AccessPolicy, XmlError> {
        let content = format!("<SignedIdentifier><Id>x</Id>{policy}</SignedIdentifier>");
        let mut read = read_signed_identifiers(document(&content).as_bytes())?;
        Ok(read.remove(0).policy)
    }

    #[test]
    fn document_has_the_form_of_the_service() {
        let golden = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>policy-1</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>a &amp; b</Id></SignedIdentifier></SignedIdentifiers>";
        let read = read_signed_identifiers(golden.as_bytes()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].id, "a & b");
        let written = write_signed_identifiers(&read);
        assert_eq!(String::from_utf8(written).unwrap(), golden);
        let empty = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers />";
        assert_eq!(write_signed_identifiers(&[]), empty.as_bytes());
        assert_eq!(read_signed_identifiers(empty.as_bytes()), Ok(Vec::new()));
    }

    #[test]
    fn policies_have_optional_elements() {
        for empty in [
            "",
            "<AccessPolicy />",
            "<AccessPolicy><Start /><Permission></Permission></AccessPolicy>",
        ] {
            assert!(one(empty).unwrap().is_empty(), "{empty}");
        }
        let policy = one(
            "<AccessPolicy><Permission>dr</Permission><Expiry>2030-01-01</Expiry></AccessPolicy>",
        );
        let policy = policy.unwrap();
        assert_eq!(policy.permissions.unwrap().as_str(), "dr");
        assert_eq!(policy.expiry.unwrap().to_string(), "2030-01-01T00:00:00Z");
        for (time, is_read) in [
            ("2021-06-08T02:10:09Z", true),
            ("2021-06-08T02:10Z", true),
            ("2021-06-08T02:10:09.1234567Z", true),
            ("2021-06-08", true),
            ("2021-06-08T02:10:09.123Z", false),
            ("2021-06-08T02:10:09", false),
            ("2021-06-08T02:10:09+00:00", true),
            ("2021-06-08T02:10-07:30", true),
            ("2021-06-08T02:10:09.123+00:00", false),
            ("soon", false),
        ] {
            let policy = one(&format!(
                "<AccessPolicy><Start>{time}</Start></AccessPolicy>"
            ));
            assert_eq!(policy.is_ok(), is_read, "{time}");
        }
    }

    #[test]
    fn invalid_documents_are_refused() {
        let identifier = |id: &str| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
        let ids = |count: u8| {
            (0..count)
                .map(|n| identifier(&n.to_string()))
                .collect::<String>()
        };
        assert!(read_signed_identifiers(document(&ids(5)).as_bytes()).is_ok());
        let long = "x".repeat(64);
        assert!(read_signed_identifiers(document(&identifier(&long)).as_bytes()).is_ok());
        for content in [
            ids(6),
            identifier(&"x".repeat(65)),
            identifier(""),
            identifier("a&#10;b"),
            identifier("a") + &identifier("a"),
            "<SignedIdentifier />".to_owned(),
            "<Other />".to_owned(),
            "text".to_owned(),
            "<SignedIdentifier><Id>a</Id><Id>b</Id></SignedIdentifier>".to_owned(),
            "<SignedIdentifier><Id>a</Id><Other /></SignedIdentifier>".to_owned(),
            "<SignedIdentifier><Id><b /></Id></SignedIdentifier>".to_owned(),
        ] {
            assert!(
                read_signed_identifiers(document(&content).as_bytes()).is_err(),
                "{content}"
            );
        }
        for policy in [
            "<AccessPolicy><Permission>rw</Permission></AccessPolicy>",
            "<AccessPolicy><Other /></AccessPolicy>",
            "<AccessPolicy><Start /><Start /></AccessPolicy>",
        ] {
            assert!(one(policy).is_err(), "{policy}");
        }
        assert!(read_signed_identifiers(b"<Other />").is_err());
    }

    proptest! {
        #[test]
        fn any_document_is_read_or_refused(text in "(</?(SignedIdentifiers?|Id|AccessPolicy|Start|Expiry|Permission)( /)?>|r|2030-01-01|x){0,30}") {
            if let Ok(read) = read_signed_identifiers(text.as_bytes()) {
                prop_assert_eq!(read_signed_identifiers(&write_signed_identifiers(&read)), Ok(read));
            }
        }
    }
}
