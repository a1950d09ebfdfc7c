//! The properties of an entity after a merge.
//!
//! The given properties are written, all others stay unchanged. A merge never removes a property: a null counts as absent, so it
//! is never passed to this module. See <https://learn.microsoft.com/rest/api/storageservices/merge-entity>.

use std::collections::HashSet;

use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::{Value, ValueRef};

use super::Rejection;
use super::entity_codec::Record;

/// The properties of the result: first the unchanged ones in their order, then the given ones.
pub(super) fn merged<'a>(
    stored: &Record<'a>,
    given: &'a [(String, Value)],
) -> Result<Vec<(&'a str, ValueRef<'a>)>, Rejection> {
    let names: HashSet<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
    let mut properties: Vec<_> = stored
        .properties()
        .filter(|(name, _)| !names.contains(name))
        .collect();
    properties.extend(
        given
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref())),
    );
    if properties.len() > PROPERTIES_MAX {
        return Err(Rejection::TooManyProperties);
    }
    Ok(properties)
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::Timestamp;

    use super::*;

    fn numbers(range: std::ops::Range<usize>) -> Vec<(String, Value)> {
        range
            .map(|number| (format!("p{number}"), Value::from(1)))
            .collect()
    }

    fn record(properties: &[(String, Value)]) -> Vec<u8> {
        let properties = properties.iter();
        Record::encode(
            Timestamp::UNIX_EPOCH,
            properties.map(|(name, value)| (name.as_str(), value.as_ref())),
        )
    }

    #[test]
    fn given_properties_are_written_and_others_stay() {
        let stored = record(&[
            ("a".to_owned(), Value::from(1)),
            ("b".to_owned(), Value::from("old")),
            ("c".to_owned(), Value::from(true)),
        ]);
        let given = [
            ("b".to_owned(), Value::from(2.5)),
            ("B".to_owned(), Value::from("another name")),
        ];
        let merged = merged(&Record::parse(&stored).unwrap(), &given).unwrap();
        assert_eq!(
            merged,
            [
                ("a", Value::from(1).as_ref()),
                ("c", Value::from(true).as_ref()),
                ("b", Value::from(2.5).as_ref()),
                ("B", Value::from("another name").as_ref()),
            ]
        );
    }

    #[test]
    fn the_limit_applies_to_the_result() {
        let stored = record(&numbers(0..200));
        let stored = Record::parse(&stored).unwrap();
        assert_eq!(merged(&stored, &numbers(100..252)).unwrap().len(), 252);
        assert_eq!(
            merged(&stored, &numbers(100..253)),
            Err(Rejection::TooManyProperties)
        );
    }
}
