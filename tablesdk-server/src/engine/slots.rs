//! The properties that a filter looks at, and their values in one entity or table after the other.
//!
//! Each property that the filter names has a slot, so that one pass over an entity finds all of
//! them. The entities of a table mostly have the same properties in the same order, so a property
//! is looked for first where it was in the entity before: the other properties are not touched
//! then. This module knows no terms.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem;

use tablesdk_protocol::ValueRef;
use tablesdk_protocol::wire::json::StoredProperty;

use super::entity_codec::Record;
use crate::storage::StorageError;

/// The slots of a filter.
#[derive(Debug)]
pub(super) struct Slots<'f> {
    /// The names of the properties, each once, short names first: most names of other properties
    /// then differ at a glance. A slot is a position in this list.
    names: Vec<&'f str>,
    /// The slots of `PartitionKey`, `RowKey` and `Timestamp`.
    system: [Option<usize>; 3],
    /// Where the properties were in the entity before: the position there and the slot, in the
    /// order of the positions.
    expected: Vec<(usize, usize)>,
    /// Empty between two entities; keeps its room. Not used for few names.
    values: Vec<Option<ValueRef<'static>>>,
}

impl<'f> Slots<'f> {
    /// The slots of properties with these names, which may be repeated.
    pub(super) fn new(mut names: Vec<&'f str>) -> Self {
        names.sort_unstable_by(|a, b| compare_names(a.as_bytes(), b.as_bytes()));
        names.dedup();
        Self {
            system: ["PartitionKey", "RowKey", "Timestamp"]
                .map(|name| slot_of(&names, name.as_bytes())),
            names,
            expected: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The slot of a property.
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        slot_of(&self.names, name.as_bytes())
    }

    /// Passes the values that `fill` sets to a function, by slot, and the number of bytes that were
    /// copied for them.
    #[inline]
    pub(super) fn with<'v, E, T>(
        &mut self,
        fill: impl FnOnce(&mut Values<'_, 'v>) -> Result<(), E>,
        read: impl FnOnce(&[Option<ValueRef<'v>>]) -> T,
    ) -> Result<(T, usize), E> {
        // Most filters name one property.
        if let [_] = self.names.as_slice() {
            return self.with_slots(&mut [None], fill, read);
        }
        if let Some(few) = [const { None }; NAMES_FEW].get_mut(..self.names.len()) {
            return self.with_slots(few, fill, read);
        }
        let mut many = mem::take(&mut self.values);
        many.resize(self.names.len(), None);
        let read = self.with_slots(&mut many, fill, read);
        self.values = emptied(many);
        read
    }

    #[inline]
    fn with_slots<'v, E, T>(
        &mut self,
        slots: &mut [Option<ValueRef<'v>>],
        fill: impl FnOnce(&mut Values<'_, 'v>) -> Result<(), E>,
        read: impl FnOnce(&[Option<ValueRef<'v>>]) -> T,
    ) -> Result<(T, usize), E> {
        let mut values = Values {
            names: &self.names,
            system: &self.system,
            expected: &mut self.expected,
            missing: slots.len(),
            slots,
            copied: 0,
        };
        fill(&mut values)?;
        let Values { slots, copied, .. } = values;
        Ok((read(slots), copied))
    }
}

/// The values that a filter reads. The caller sets them from an entity or a table.
pub(crate) struct Values<'s, 'v> {
    names: &'s [&'s str],
    system: &'s [Option<usize>; 3],
    expected: &'s mut Vec<(usize, usize)>,
    slots: &'s mut [Option<ValueRef<'v>>],
    missing: usize,
    copied: usize,
}

impl<'v> Values<'_, 'v> {
    /// The slots of `PartitionKey`, `RowKey` and `Timestamp`.
    pub(super) const fn system_slots(&self) -> [Option<usize>; 3] {
        *self.system
    }

    /// Returns true if the filter reads a system property.
    #[inline]
    pub(super) const fn has_system_slots(&self) -> bool {
        !matches!(self.system, [None, None, None])
    }

    /// Sets the value of a property, if the filter looks at it.
    pub(crate) fn set(&mut self, name: &str, value: ValueRef<'v>) {
        if let Some(slot) = slot_of(self.names, name.as_bytes()) {
            self.fill(slot, value);
        }
    }

    /// Sets the value of a slot.
    #[inline]
    pub(super) fn fill(&mut self, slot: usize, value: ValueRef<'v>) {
        if let ValueRef::Binary(Cow::Owned(bytes)) = &value {
            self.copied += bytes.len();
        }
        if let ValueRef::String(Cow::Owned(text)) = &value {
            self.copied += text.len();
        }
        if let Some(place) = self.slots.get_mut(slot) {
            self.missing -= usize::from(place.is_none());
            *place = Some(value);
        }
    }

    /// Sets the values of the properties of an entity that the filter looks at.
    #[inline]
    pub(super) fn fill_from(&mut self, record: &Record<'v>) -> Result<(), StorageError> {
        self.fill_expected(record)?;
        if self.missing == 0 {
            return Ok(());
        }
        self.fill_all(record)
    }

    #[inline(never)]
    fn fill_all(&mut self, record: &Record<'v>) -> Result<(), StorageError> {
        self.expected.clear();
        for (position, piece) in record.pieces().enumerate() {
            let Some((slot, property)) = self.find(piece?) else {
                continue;
            };
            self.expected.push((position, slot));
            self.fill_with(slot, &property)?;
            if self.missing == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The same, for the properties that are where they were in the entity before.
    #[inline]
    fn fill_expected(&mut self, record: &Record<'v>) -> Result<(), StorageError> {
        let mut pieces = record.pieces();
        let mut next = 0;
        for at in 0..self.expected.len() {
            let Some((position, slot)) = self.expected.get(at).copied() else {
                break;
            };
            let skipped = pieces.skip_over(position - next);
            let piece = skipped.and_then(|()| pieces.next()).transpose()?;
            next = position + 1;
            let name = self.names.get(slot).copied().unwrap_or_default();
            let property = piece.and_then(|piece| StoredProperty::read_named(piece, name));
            let Some(property) = property else { break };
            self.fill_with(slot, &property)?;
        }
        Ok(())
    }

    #[inline]
    fn fill_with(
        &mut self,
        slot: usize,
        property: &StoredProperty<'v>,
    ) -> Result<(), StorageError> {
        if let Some(number) = property.small_integer() {
            self.fill(slot, ValueRef::Int32(number));
            return Ok(());
        }
        self.fill_with_other(slot, property)
    }

    fn fill_with_other(
        &mut self,
        slot: usize,
        property: &StoredProperty<'v>,
    ) -> Result<(), StorageError> {
        let value = property.value();
        self.fill(slot, value.ok_or(StorageError::corrupt("entity"))?);
        Ok(())
    }

    /// The slot of a property in a record, if the filter looks at it.
    fn find(&self, piece: &'v [u8]) -> Option<(usize, StoredProperty<'v>)> {
        if self.names.len() > NAMES_FEW {
            let property = StoredProperty::read(piece)?;
            return Some((slot_of(self.names, property.name())?, property));
        }
        let mut names = self.names.iter().enumerate();
        names.find_map(|(slot, name)| Some((slot, StoredProperty::read_named(piece, name)?)))
    }
}

fn slot_of(names: &[&str], name: &[u8]) -> Option<usize> {
    let order = |known: &&str| compare_names(known.as_bytes(), name);
    names.binary_search_by(order).ok()
}

fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The same room for values of another lifetime. The standard library collects a vector that it
/// takes apart in place.
fn emptied<'b>(mut slots: Vec<Option<ValueRef<'_>>>) -> Vec<Option<ValueRef<'b>>> {
    slots.clear();
    slots.into_iter().map(|_| None).collect()
}

/// With so few names, comparing each is faster than reading the name of a property, and the values
/// are on the stack.
const NAMES_FEW: usize = 4;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tablesdk_protocol::{Timestamp, Value};

    use super::*;
    use crate::engine::entity_codec::Properties;

    fn record(properties: &BTreeMap<&'static str, Value>, is_reversed: bool) -> Vec<u8> {
        let mut list: Vec<_> = properties.iter().collect();
        if is_reversed {
            list.reverse();
        }
        let list = list.into_iter();
        let properties: Properties = list.map(|(name, value)| (*name, value.as_ref())).collect();
        properties.record(Timestamp::UNIX_EPOCH)
    }

    const NAMES: [&str; 8] = ["A", "B", "AB", "Ab", "ABC", "é", "A_1", "A_12"];

    fn properties() -> impl Strategy<Value = BTreeMap<&'static str, Value>> {
        let value = prop_oneof![
            any::<i32>().prop_map(Value::Int32),
            "[a\"\\\\]{0,3}".prop_map(Value::String),
            any::<i64>().prop_map(Value::Int64),
            any::<Vec<u8>>().prop_map(Value::Binary),
        ];
        prop::collection::btree_map(prop::sample::select(&NAMES[..]), value, 0..8)
    }

    proptest! {
        #[test]
        fn each_slot_has_the_value_of_its_property(
            names in prop::collection::vec(prop::sample::select(&NAMES[..]), 0..8),
            entities in prop::collection::vec((properties(), any::<bool>()), 1..6),
        ) {
            let mut slots = Slots::new(names.clone());
            for (properties, is_reversed) in entities {
                let bytes = record(&properties, is_reversed);
                let record = Record::open(&bytes).unwrap();
                let places: Vec<_> = names.iter().map(|name| slots.slot(name).unwrap()).collect();
                let found = slots.with(
                    |values| values.fill_from(&record),
                    |slots| {
                        let values = places.iter().map(|slot| slots[*slot].clone());
                        values.map(|value| value.map(ValueRef::into_value)).collect::<Vec<_>>()
                    },
                );
                let expected: Vec<_> = names.iter().map(|name| properties.get(name).cloned()).collect();
                prop_assert_eq!(found.unwrap().0, expected);
            }
        }

        #[test]
        fn any_record_is_read_or_refused(
            properties in properties(),
            place: prop::sample::Index,
            byte: u8,
        ) {
            let whole = record(&properties, false);
            let mut bytes = whole.clone();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let mut slots = Slots::new(vec!["A", "A_12"]);
            for bytes in [&whole, &bytes, &whole] {
                if let Ok(record) = Record::open(bytes) {
                    let read = slots.with(|values| values.fill_from(&record), |_| ());
                    prop_assert!(read.is_ok() || *bytes != whole);
                }
            }
        }
    }

    #[test]
    fn copied_bytes_are_counted() {
        let bytes = record(
            &BTreeMap::from([("A", Value::from("plain")), ("B", Value::from("a\"b"))]),
            false,
        );
        let record = Record::open(&bytes).unwrap();
        let copied = |name| {
            let mut slots = Slots::new(vec![name]);
            let read = slots.with(|values| values.fill_from(&record), |_| ());
            read.unwrap().1
        };
        assert_eq!((copied("A"), copied("B"), copied("C")), (0, 3, 0));
    }
}
