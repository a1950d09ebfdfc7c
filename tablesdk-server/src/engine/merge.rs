//! The properties of an entity after a merge.
//!
//! The given properties are written, all others stay unchanged, byte for byte. A merge never removes a property: a null counts as
//! absent, so it is never passed to this module. See <https://learn.microsoft.com/rest/api/storageservices/merge-entity>.

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::limits::PROPERTIES_MAX;

use super::entity_codec::{Properties, Record};
use super::{Failure, Rejection};

/// The properties of the result: first the unchanged ones in their order, then the given ones.
pub(super) fn merged(stored: &Record<'_>, given: &Properties) -> Result<Properties, Failure> {
    let written = given.at(Timestamp::UNIX_EPOCH);
    let mut names = Vec::with_capacity(given.count());
    for property in written.properties() {
        names.push(property?.name());
    }
    names.sort_unstable();
    let mut merged = Properties::with_capacity(
        stored.pieces().count() + given.count(),
        stored.json().len() + written.json().len(),
    );
    for property in stored.properties() {
        let property = property?;
        if names.binary_search(&property.name()).is_err() {
            merged.push_piece(property.json());
        }
    }
    merged.append(given);
    if merged.count() > PROPERTIES_MAX {
        return Err(Rejection::TooManyProperties.into());
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::{Timestamp, Value, ValueRef};

    use super::*;

    fn numbers(range: std::ops::Range<usize>) -> Properties {
        let mut properties = Properties::default();
        for number in range {
            properties.push(&format!("p{number}"), &ValueRef::Int32(1));
        }
        properties
    }

    fn record(properties: &Properties) -> Vec<u8> {
        properties.record(Timestamp::UNIX_EPOCH)
    }

    fn of(properties: &[(&str, Value)]) -> Properties {
        let properties = properties.iter();
        properties
            .map(|(name, value)| (*name, value.as_ref()))
            .collect()
    }

    #[test]
    fn given_properties_are_written_and_others_stay() {
        let stored = record(&of(&[
            ("a", Value::from(1)),
            ("b", Value::from("old")),
            ("c", Value::from(5_i64)),
        ]));
        let given = of(&[("b", Value::from(2.5)), ("B", Value::from("another name"))]);
        let merged = merged(&Record::parse(&stored).unwrap(), &given).unwrap();
        let expected = of(&[
            ("a", Value::from(1)),
            ("c", Value::from(5_i64)),
            ("b", Value::from(2.5)),
            ("B", Value::from("another name")),
        ]);
        assert_eq!(merged, expected);
    }

    #[test]
    fn the_limit_applies_to_the_result() {
        let stored = record(&numbers(0..200));
        let stored = Record::parse(&stored).unwrap();
        assert_eq!(merged(&stored, &numbers(100..252)).unwrap().count(), 252);
        assert_eq!(
            merged(&stored, &numbers(100..253)),
            Err(Rejection::TooManyProperties.into())
        );
    }

    #[test]
    fn a_damaged_record_is_not_merged() {
        let mut stored = record(&numbers(0..2));
        let length = stored.len();
        // The colon.
        stored[length - 2] = b';';
        let stored = Record::open(&stored).unwrap();
        let failure = merged(&stored, &numbers(2..3)).unwrap_err();
        assert!(matches!(failure, Failure::Storage(_)), "{failure:?}");
    }
}
