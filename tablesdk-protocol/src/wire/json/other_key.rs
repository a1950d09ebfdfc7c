//! Finds responses that contain another entity than the one that was asked for.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::memrchr;

use super::error::JsonError;
use super::reader::read_entity;
use crate::types::EntityKey;

/// Returns true if the JSON of an entity contains a key other than this one. Without keys, it can
/// be any entity.
///
/// # Errors
///
/// The errors of [`read_entity`], where the keys are not as the service writes them.
pub fn has_other_key(body: &[u8], key: &EntityKey) -> Result<bool, JsonError> {
    let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
    if starts_with_key(body, partition_key, row_key).is_some() {
        return Ok(false);
    }
    let entity = read_entity(body)?;
    let is_other = |name, key| matches!(entity.text(name), Ok(Some(text)) if text != key);
    Ok(is_other("PartitionKey", partition_key) || is_other("RowKey", row_key))
}

/// Finds a key as the service writes it, in front of the properties. Nothing else is read.
///
/// A comma and an unescaped quote behind it are in no string, so that the name of a member follows.
/// It is a member of the entity itself if no other object begins in front of it.
fn starts_with_key(body: &[u8], partition_key: &str, row_key: &str) -> Option<()> {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PARTITION_KEY));
    // JSON has escapes for it.
    if partition_key.contains('"') || row_key.contains('"') {
        return None;
    }
    let (head, rest) = body.split_at_checked(NAME.find(body)?)?;
    if memrchr(b'{', head) != Some(0) {
        return None;
    }
    let rest = rest.strip_prefix(PARTITION_KEY)?;
    let rest = rest.strip_prefix(partition_key.as_bytes())?;
    let rest = rest.strip_prefix(b"\",\"RowKey\":\"")?;
    let rest = rest.strip_prefix(row_key.as_bytes())?;
    rest.starts_with(b"\"").then_some(())
}

/// The text in front of the partition key, behind another member.
const PARTITION_KEY: &[u8] = b",\"PartitionKey\":\"";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::wire::json::read_entity;

    fn by_reading(body: &[u8], key: &EntityKey) -> Result<bool, JsonError> {
        let entity = read_entity(body)?;
        let is_other = |name, key: &str| matches!(entity.text(name), Ok(Some(text)) if text != key);
        let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
        Ok(is_other("PartitionKey", partition_key) || is_other("RowKey", row_key))
    }

    /// Texts that resemble members, in a string, in a name or in an object.
    fn text() -> impl Strategy<Value = String> {
        prop::sample::select(&[
            "a",
            "b",
            "a\",\"RowKey\":\"b",
            ",\"PartitionKey\":\"a\",\"RowKey\":\"b\"",
            "\\,\"PartitionKey\":\"a",
            "a\"",
            "é",
            "",
        ])
        .prop_map(str::to_owned)
    }

    fn member() -> impl Strategy<Value = (String, Value)> {
        let keys = |name: &'static str| text().prop_map(move |key| (name.to_owned(), key.into()));
        let nested = (text(), text()).prop_map(|(partition_key, row_key)| {
            let keys =
                serde_json::json!({"x": 1, "PartitionKey": partition_key, "RowKey": row_key});
            ("nested".to_owned(), keys)
        });
        let other = (text(), text()).prop_map(|(name, value)| (name + "x", value.into()));
        prop_oneof![3 => keys("PartitionKey"), 3 => keys("RowKey"), 1 => nested, 2 => other]
    }

    proptest! {
        #[test]
        fn the_key_that_is_found_is_the_key_that_is_read(
            members in prop::collection::vec(member(), 0..6),
            (partition_key, row_key) in (text(), text()),
        ) {
            // In the order of the service, or in another one.
            let mut names = std::collections::HashSet::new();
            let members = members.into_iter().filter(|(name, _)| names.insert(name.clone()));
            let members = members.map(|(name, value)| format!("{}:{value}", Value::from(name)));
            let body = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
            // A backslash is not allowed in a key.
            let key = EntityKey::new(partition_key.replace('\\', ""), row_key.replace('\\', ""));
            let key = key.unwrap();
            let expected = by_reading(body.as_bytes(), &key).unwrap();
            prop_assert_eq!(has_other_key(body.as_bytes(), &key).unwrap(), expected, "{}", body);
        }

        #[test]
        fn the_key_in_a_response_of_the_service_is_found(
            partition_key in "[^/\\\\#?\\p{Cc}\"]{0,9}",
            row_key in "[^/\\\\#?\\p{Cc}\"]{0,9}",
            other in "[a-z]{0,9}",
        ) {
            let key = EntityKey::new(partition_key.as_str(), row_key.as_str()).unwrap();
            let body = format!(
                r#"{{"odata.etag":"W/\"x\"","PartitionKey":"{partition_key}","RowKey":"{row_key}","a":1}}"#
            );
            let found = starts_with_key(body.as_bytes(), &partition_key, &row_key);
            prop_assert_eq!(found, Some(()));
            let is_other = has_other_key(body.as_bytes(), &EntityKey::new(other.as_str(), row_key.as_str()).unwrap());
            prop_assert_eq!(is_other.unwrap(), other != partition_key);
            prop_assert!(!has_other_key(body.as_bytes(), &key).unwrap());
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, key in text()) {
            let key = EntityKey::new(key.replace('\\', ""), "").unwrap();
            let _ = has_other_key(&bytes, &key);
        }
    }
}
