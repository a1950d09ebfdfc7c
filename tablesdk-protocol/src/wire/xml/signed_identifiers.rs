//! Stored access policies as XML: the body of Get and Set Table ACL.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

use super::reader::{Element, take};
use super::{Writer, XmlError};
use crate::auth::sas::TablePermissions;
use crate::{AccessPolicy, SignedIdentifier, Timestamp, check_signed_identifiers};

/// Prints the policies of a table.
pub fn write_signed_identifiers(identifiers: &[SignedIdentifier]) -> Vec<u8> {
    let mut out = Writer::with_byte_order_mark();
    out.group("SignedIdentifiers", |out| {
        for SignedIdentifier { id, policy } in identifiers {
            out.group("SignedIdentifier", |out| {
                out.value("Id", id);
                // SERVICE: a policy that says nothing has no element.
                if !policy.is_empty() {
                    out.group("AccessPolicy", |out| write_policy(out, policy));
                }
            });
        }
    });
    out.end()
}

/// Reads the policies of a table and checks them.
///
/// # Errors
///
/// When the document has another form, or breaks a rule of [`check_signed_identifiers`].
pub fn read_signed_identifiers(document: &[u8]) -> Result<Vec<SignedIdentifier>, XmlError> {
    let root = Element::parse(document)?.named("SignedIdentifiers")?;
    let mut identifiers = Vec::new();
    for identifier in root.list("SignedIdentifier")? {
        let mut fields = identifier.fields(&["Id", "AccessPolicy"])?;
        let id = take(&mut fields, "Id").ok_or(XmlError::Missing { name: "Id" })?;
        let policy = take(&mut fields, "AccessPolicy").map(read_policy);
        identifiers.push(SignedIdentifier {
            id: id.value()?.to_owned(),
            policy: policy.transpose()?.unwrap_or_default(),
        });
    }
    check_signed_identifiers(&identifiers)?;
    Ok(identifiers)
}

// SERVICE: here times have all seven digits.
fn write_policy(out: &mut Writer, policy: &AccessPolicy) {
    if let Some(start) = policy.start {
        out.value("Start", &start.to_padded_string());
    }
    if let Some(expiry) = policy.expiry {
        out.value("Expiry", &expiry.to_padded_string());
    }
    if let Some(permissions) = &policy.permissions {
        out.value("Permission", permissions.as_str());
    }
}

/// Empty elements count as absent.
fn read_policy(policy: Element) -> Result<AccessPolicy, XmlError> {
    let mut fields = policy.fields(&["Start", "Expiry", "Permission"])?;
    fields.retain(|field| field.value() != Ok(""));
    let time = |field: Element| field.parse_value(parse_time);
    let permissions = take(&mut fields, "Permission")
        .map(|field| field.parse_value(|text| TablePermissions::parse(text).ok()));
    Ok(AccessPolicy {
        start: take(&mut fields, "Start").map(time).transpose()?,
        expiry: take(&mut fields, "Expiry").map(time).transpose()?,
        permissions: permissions.transpose()?,
    })
}

/// A day, or a time in UTC.
// SERVICE: a fraction has seven digits; one of three was seen refused.
fn parse_time(text: &str) -> Option<Timestamp> {
    let is_day = text.len() == "2024-03-15".len();
    let fraction = text.strip_suffix('Z').map(|text| text.split_once('.'));
    match fraction {
        Some(None) => {}
        Some(Some((_, fraction))) if fraction.len() == 7 => {}
        None if is_day => {}
        _ => return None,
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
    fn has_the_shape_of_the_service() {
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
    fn a_policy_has_the_fields_that_it_has() {
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
            ("2021-06-08T02:10:09+00:00", false),
            ("soon", false),
        ] {
            let policy = one(&format!(
                "<AccessPolicy><Start>{time}</Start></AccessPolicy>"
            ));
            assert_eq!(policy.is_ok(), is_read, "{time}");
        }
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
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
