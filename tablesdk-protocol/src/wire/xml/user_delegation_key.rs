//! The bodies of Get User Delegation Key as XML.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{XmlError, parse_content, parse_optional};
use crate::auth::sas::{Delegation, KeyTerms, SasGuid, SasTime, SasVersion, UserDelegationKey};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct KeyInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    expiry: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegated_user_tid: Option<String>,
}

// SERVICE: never recorded, so a response may have more elements.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Key {
    signed_oid: String,
    signed_tid: String,
    signed_start: String,
    signed_expiry: String,
    signed_service: String,
    signed_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_delegated_user_tid: Option<String>,
    value: String,
}

/// Prints the terms of a key.
pub fn write_key_info(terms: &KeyTerms) -> Vec<u8> {
    let tenant = terms.user_tenant_id.as_ref();
    let info = KeyInfo {
        start: terms.start.as_ref().map(|at| at.as_str().to_owned()),
        expiry: terms.expiry.as_str().to_owned(),
        delegated_user_tid: tenant.map(|id| id.as_str().to_owned()),
    };
    super::write("KeyInfo", &info)
}

/// Reads the terms of a key.
///
/// # Errors
///
/// When the document has another form.
pub fn read_key_info(document: &[u8]) -> Result<KeyTerms, XmlError> {
    let info: KeyInfo = super::read(document, "KeyInfo")?;
    let expiry = parse_content(&info.expiry, time)?;
    let mut terms = KeyTerms::new(parse_optional(info.start, time)?, expiry);
    terms.user_tenant_id = parse_optional(info.delegated_user_tid, guid)?;
    Ok(terms)
}

/// Prints a key, with its value.
pub fn write_user_delegation_key(key: &UserDelegationKey) -> Vec<u8> {
    let delegation = key.delegation();
    let tenant = delegation.user_tenant_id.as_ref();
    let document = Key {
        signed_oid: delegation.object_id.as_str().to_owned(),
        signed_tid: delegation.tenant_id.as_str().to_owned(),
        signed_start: delegation.start.as_str().to_owned(),
        signed_expiry: delegation.expiry.as_str().to_owned(),
        signed_service: SERVICE.to_owned(),
        signed_version: delegation.version.as_str().to_owned(),
        signed_delegated_user_tid: tenant.map(|id| id.as_str().to_owned()),
        value: key.key().expose().to_string(),
    };
    let written = super::write("UserDelegationKey", &document);
    drop(Zeroizing::new(document.value));
    written
}

/// Reads a key of the table service of an account.
///
/// # Errors
///
/// When the document has another form, is a key of another service, or has a value that is not
/// Base64. The error never holds the value.
pub fn read_user_delegation_key(
    account: &str,
    document: &[u8],
) -> Result<UserDelegationKey, XmlError> {
    let document: Key = super::read(document, "UserDelegationKey")?;
    let value = Zeroizing::new(document.value);
    parse_content(&document.signed_service, |service| {
        (service == SERVICE).then_some(())
    })?;
    let object_id = parse_content(&document.signed_oid, guid)?;
    let tenant_id = parse_content(&document.signed_tid, guid)?;
    let start = parse_content(&document.signed_start, time)?;
    let expiry = parse_content(&document.signed_expiry, time)?;
    let version = parse_content(&document.signed_version, |it| SasVersion::parse(it).ok())?;
    let mut delegation = Delegation::new(object_id.id(), tenant_id.id(), start, expiry, version);
    // As they were written, since they are signed so.
    (delegation.object_id, delegation.tenant_id) = (object_id, tenant_id);
    delegation.user_tenant_id = parse_optional(document.signed_delegated_user_tid, guid)?;
    UserDelegationKey::new(account, delegation, &value).map_err(|_| XmlError::Form {
        message: "the value of the key is not Base64".to_owned(),
    })
}

fn guid(text: &str) -> Option<SasGuid> {
    SasGuid::parse(text).ok()
}

fn time(text: &str) -> Option<SasTime> {
    SasTime::parse(text).ok()
}

/// The table service.
const SERVICE: &str = "t";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey><SignedOid>c9da6455-213d-42c9-9a79-3e9149a57833</SignedOid><SignedTid>72f988bf-86f1-41af-91ab-2d7cd011db47</SignedTid><SignedStart>2026-01-01T00:00:00Z</SignedStart><SignedExpiry>2026-01-02T00:00:00Z</SignedExpiry><SignedService>t</SignedService><SignedVersion>2025-07-05</SignedVersion><SignedDelegatedUserTid>00000000-0000-0000-0000-000000000001</SignedDelegatedUserTid><Value>c2VjcmV0</Value></UserDelegationKey>";

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = read_user_delegation_key("acct", KEY.as_bytes()).unwrap();
        assert_eq!(key.key().account(), "acct");
        assert_eq!(key.expires_at().to_string(), "2026-01-02T00:00:00Z");
        let written = String::from_utf8(write_user_delegation_key(&key)).unwrap();
        assert_eq!(written, KEY);
        let shown = format!("{key:?}");
        assert!(
            shown.contains("c9da6455") && !shown.contains("c2VjcmV0"),
            "{shown}"
        );
    }

    #[test]
    fn a_malformed_key_is_refused_without_its_value() {
        for (from, to) in [
            ("<SignedService>t<", "<SignedService>b<"),
            ("c9da6455-", ""),
            ("2026-01-02T00:00:00Z", "soon"),
            ("2025-07-05", "2025"),
            ("<SignedTid>", "<SignedTid>x"),
            ("c2VjcmV0", "c2VjcmV0?"),
            ("<Value>", "<Value>c2VjcmV0</Value><Value>"),
            ("<Value>c2VjcmV0</Value>", ""),
        ] {
            let error = read_user_delegation_key("acct", KEY.replace(from, to).as_bytes());
            let error = error.unwrap_err();
            assert!(
                !format!("{error:?} {error}").contains("c2VjcmV0"),
                "{error:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_document_is_read_or_refused(
            document in "(</?(KeyInfo|Expiry|Start|Value|UserDelegationKey|SignedOid)>|[0-9TZ:-]{0,12}){0,12}",
        ) {
            let _ = read_key_info(document.as_bytes());
            let _ = read_user_delegation_key("acct", document.as_bytes());
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let time = |text| SasTime::parse(text).unwrap();
        let expiry = time("2026-01-02T00:00:00Z");
        let mut terms = KeyTerms::new(Some(time("2026-01-01T00:00:00Z")), expiry);
        terms.user_tenant_id = guid("72f988bf-86f1-41af-91ab-2d7cd011db47");
        assert_eq!(read_key_info(&write_key_info(&terms)), Ok(terms.clone()));
        (terms.start, terms.user_tenant_id) = (None, None);
        let document = write_key_info(&terms);
        let golden = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Expiry>2026-01-02T00:00:00Z</Expiry></KeyInfo>";
        assert_eq!(String::from_utf8(document).unwrap(), golden);
        for document in [
            "",
            "<KeyInfo></KeyInfo>",
            "<KeyInfo><Expiry>x</Expiry></KeyInfo>",
        ] {
            assert!(read_key_info(document.as_bytes()).is_err(), "{document}");
        }
    }
}
