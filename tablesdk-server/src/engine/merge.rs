//! The properties of an entity after a merge.
//!
//! The given properties are written, all others stay unchanged, byte for byte. A merge never
//! removes a property: a null counts as absent, so it is never passed to this module. See
//! <https://learn.microsoft.com/rest/api/storageservices/merge-entity>.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tablesdk_protocol::Timestamp;
use tablesdk_protocol::limits::PROPERTIES_MAX;

use super::entity_codec::{Properties, Record};
use super::{Failure, Rejection};
use crate::flavor::Flavor;
use crate::storage::StorageError;

/// The properties of the result: in the order of their names, or first the unchanged ones in their
/// order, then the given ones, or the new ones among them.
pub(super) fn merged(
    flavor: Flavor,
    stored: &Record<'_>,
    given: &Properties,
) -> Result<Properties, Failure> {
    if flavor.merges_in_place() {
        return merged_in_place(stored, given);
    }
    let merged = if flavor.sorts_written_properties() {
        merged_in_order(stored, given)?
    } else {
        appended(stored, given)?
    };
    if merged.count() > PROPERTIES_MAX {
        return Err(Rejection::TooManyProperties.into());
    }
    Ok(merged)
}

/// All properties, ordered by the bytes of their names.
fn merged_in_order(stored: &Record<'_>, given: &Properties) -> Result<Properties, StorageError> {
    let written = given.at(Timestamp::UNIX_EPOCH);
    let mut old = named_pieces(stored)?.into_iter().peekable();
    let mut merged = Properties::with_capacity(stored.json().len() + written.json().len());
    for (name, new) in named_pieces(&written)? {
        while let Some((_, unchanged)) = old.next_if(|(known, _)| *known < name) {
            merged.push_piece(unchanged);
        }
        old.next_if(|(known, _)| *known == name);
        merged.push_piece(new);
    }
    for (_, unchanged) in old {
        merged.push_piece(unchanged);
    }
    Ok(merged)
}

/// The name and the JSON of each property.
type NamedPieces<'a> = SmallVec<[(&'a [u8], &'a [u8]); PIECES_FEW]>;

/// The properties, ordered by the bytes of their names.
fn named_pieces<'a>(record: &Record<'a>) -> Result<NamedPieces<'a>, StorageError> {
    let mut pieces = SmallVec::new();
    for property in record.properties() {
        let property = property?;
        pieces.push((property.name(), property.json()));
    }
    // As those of an entity that was not inserted, but updated or merged.
    if !pieces.is_sorted() {
        pieces.sort_unstable();
    }
    Ok(pieces)
}

/// The stored properties that are not given, and then the given ones.
fn appended(stored: &Record<'_>, given: &Properties) -> Result<Properties, StorageError> {
    let written = given.at(Timestamp::UNIX_EPOCH);
    let mut names = Vec::with_capacity(given.count());
    for property in written.properties() {
        names.push(property?.name());
    }
    names.sort_unstable();
    let mut merged = Properties::with_capacity(stored.json().len() + written.json().len());
    for property in stored.properties() {
        let property = property?;
        if names.binary_search(&property.name()).is_err() {
            merged.push_piece(property.json());
        }
    }
    merged.append(given);
    Ok(merged)
}

/// As Cosmos DB merges them, which limits their sizes and not their number.
fn merged_in_place(stored: &Record<'_>, given: &Properties) -> Result<Properties, Failure> {
    let written = given.at(Timestamp::UNIX_EPOCH);
    let mut new = BTreeMap::new();
    for (place, property) in written.properties().enumerate() {
        let property = property?;
        new.insert(property.name(), (place, property.json()));
    }
    let mut merged = Properties::default();
    for property in stored.properties() {
        let property = property?;
        match new.remove(property.name()) {
            Some((_, given)) => merged.push_piece(given),
            None => merged.push_piece(property.json()),
        }
    }
    let mut new: Vec<_> = new.into_values().collect();
    new.sort_unstable();
    for (_, json) in new {
        merged.push_piece(json);
    }
    Ok(merged)
}

/// Pieces of more properties need memory of their own.
const PIECES_FEW: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
        let stored = Record::parse(&stored).unwrap();
        let expected = of(&[
            ("a", Value::from(1)),
            ("c", Value::from(5_i64)),
            ("b", Value::from(2.5)),
            ("B", Value::from("another name")),
        ]);
        assert_eq!(merged(Flavor::Azurite, &stored, &given), Ok(expected));
        let expected = of(&[
            ("B", Value::from("another name")),
            ("a", Value::from(1)),
            ("b", Value::from(2.5)),
            ("c", Value::from(5_i64)),
        ]);
        assert_eq!(merged(Flavor::Storage, &stored, &given), Ok(expected));
    }

    proptest! {
        #[test]
        fn the_order_of_names_is_the_only_difference(
            stored in prop::collection::btree_map("[a-cé]{1,2}", any::<i32>(), 0..9),
            given in prop::collection::btree_map("[a-cé]{1,2}", any::<i32>(), 0..9),
            is_reversed: (bool, bool),
        ) {
            let properties = |values: &BTreeMap<String, i32>, is_reversed| {
                let pairs = values.iter().map(|(name, value)| (name.as_str(), ValueRef::Int32(*value)));
                let mut pairs: Vec<_> = pairs.collect();
                if is_reversed {
                    pairs.reverse();
                }
                pairs.into_iter().collect::<Properties>()
            };
            let record = record(&properties(&stored, is_reversed.0));
            let record = Record::parse(&record).unwrap();
            let written = properties(&given, is_reversed.1);
            let mut all = stored.clone();
            all.extend(given.clone());
            let all = properties(&all, false);
            prop_assert_eq!(merged(Flavor::Storage, &record, &written), Ok(all.clone()));
            let appended = merged(Flavor::Azurite, &record, &written).unwrap();
            let appended = appended.record(Timestamp::UNIX_EPOCH);
            let appended = Record::parse(&appended).unwrap();
            let sorted = named_pieces(&appended).unwrap();
            prop_assert!(sorted == named_pieces(&all.at(Timestamp::UNIX_EPOCH)).unwrap());
        }
    }

    #[test]
    fn a_merge_in_place_leaves_the_order() {
        let stored = record(&of(&[
            ("z", Value::from(1)),
            ("PartitionKey", Value::from("p")),
            ("b", Value::from("old")),
        ]));
        let given = of(&[
            ("PartitionKey", Value::from("p")),
            ("n", Value::from(3)),
            ("a", Value::from(4)),
            ("b", Value::from(2.5)),
        ]);
        let merged = merged(Flavor::CosmosDb, &Record::parse(&stored).unwrap(), &given).unwrap();
        let expected = of(&[
            ("z", Value::from(1)),
            ("PartitionKey", Value::from("p")),
            ("b", Value::from(2.5)),
            ("n", Value::from(3)),
            ("a", Value::from(4)),
        ]);
        assert_eq!(merged, expected);
    }

    #[test]
    fn the_limit_applies_to_the_result() {
        let stored = record(&numbers(0..200));
        let stored = Record::parse(&stored).unwrap();
        assert_eq!(
            merged(Flavor::Storage, &stored, &numbers(100..252))
                .unwrap()
                .count(),
            252
        );
        assert_eq!(
            merged(Flavor::Storage, &stored, &numbers(100..253)),
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
        let failure = merged(Flavor::Storage, &stored, &numbers(2..3)).unwrap_err();
        assert!(matches!(failure, Failure::Storage(_)), "{failure:?}");
    }
}
