//! The properties that a filter looks at, and their values in one entity or table after the other.
//!
//! Each property that the filter names has a slot. A property is looked for when its value is asked
//! for, and once in an entity. The entities of a table mostly have the same properties in the same
//! order, so it is looked for first where it was in the entity before, by the bytes that it began
//! with there: the other properties are not touched then. If it is not there, one pass over the
//! entity finds the properties of all slots. This module knows no terms.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem;

use tablesdk_protocol::wire::json::{StoredProperty, StoredValue};
use tablesdk_protocol::{EdmType, ValueRef};

use super::entity_codec::{DAMAGED, Positions};
use super::view::{EntityBytes, SystemProperty};
use crate::storage::StorageError;

/// The slots of a filter.
#[derive(Debug)]
pub(super) struct Slots<'f> {
    /// Short names first: most names of other properties then differ at a glance. A slot is a
    /// position in this list.
    places: Vec<Place<'f>>,
    /// Empty between two entities; keeps its room. Not used for few names.
    cells: Vec<Cell<'static>>,
}

/// A property, and where it was in the entity before.
#[derive(Debug)]
struct Place<'f> {
    name: &'f str,
    /// Which one it is, if it is none of the record.
    system: Option<SystemProperty>,
    /// How many properties were before it.
    position: usize,
    /// Its bytes up to its value.
    head: Vec<u8>,
    /// The first eight of them, or all and zeros.
    start: u64,
    /// Which bits of `start` are of the head.
    mask: u64,
    /// The type of the value, if the head has it.
    annotation: Option<EdmType>,
}

/// The value of a slot in one entity.
#[derive(Clone, Debug)]
enum Cell<'v> {
    /// It was not looked for.
    Unknown,
    Absent,
    Stored(StoredValue<'v>),
    Read(ValueRef<'v>),
}

/// How far the value of a slot is known.
pub(super) enum Found<'v> {
    /// There is none.
    Absent,
    /// It need not be read to be compared.
    Stored(StoredValue<'v>),
    /// It was read.
    Read,
}

impl<'f> Slots<'f> {
    /// The slots of properties with these names, which may be repeated.
    pub(super) fn new(mut names: Vec<&'f str>) -> Self {
        names.sort_unstable_by(|a, b| compare_names(a.as_bytes(), b.as_bytes()));
        names.dedup();
        Self {
            places: names.into_iter().map(Place::new).collect(),
            cells: Vec::new(),
        }
    }

    /// The slot of a property.
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        slot_of(&self.places, name.as_bytes())
    }

    /// The value of a slot, if the property is where it was in the entity before.
    #[inline]
    pub(super) fn glance<'v>(
        &self,
        slot: usize,
        properties: Positions<'v>,
    ) -> Option<StoredValue<'v>> {
        self.places.get(slot)?.look(properties)
    }

    /// Passes the values of an entity to a function. Returns its result, and the number of bytes
    /// that were copied to read values.
    pub(super) fn of_entity<'v, T>(
        &mut self,
        entity: EntityBytes<'v>,
        read: impl FnOnce(&mut Values<'_, 'f, 'v>) -> Result<T, StorageError>,
    ) -> Result<(T, usize), StorageError> {
        let properties = Positions::open(entity.record)?;
        if let Some(few) = [const { Cell::Unknown }; NAMES_FEW].get_mut(..self.places.len()) {
            return Values::new(&mut self.places, few, entity, properties).pass_to(read);
        }
        let mut many = mem::take(&mut self.cells);
        many.resize(self.places.len(), Cell::Unknown);
        let result = Values::new(&mut self.places, &mut many, entity, properties).pass_to(read);
        self.cells = emptied(many);
        result
    }

    /// The same for something that has one property alone.
    pub(super) fn of_property<'v, T>(
        &mut self,
        name: &str,
        value: ValueRef<'v>,
        read: impl FnOnce(&mut Values<'_, 'f, 'v>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut cells = vec![Cell::Absent; self.places.len()];
        if let Some(cell) = self.slot(name).and_then(|slot| cells.get_mut(slot)) {
            *cell = Cell::Read(value);
        }
        let none = EntityBytes {
            key: &[],
            record: &[],
        };
        let values = Values::new(&mut self.places, &mut cells, none, Positions::NONE);
        values.pass_to(read).map(|(result, _)| result)
    }
}

/// The values that a filter reads.
pub(super) struct Values<'s, 'f, 'v> {
    places: &'s mut [Place<'f>],
    /// As many.
    cells: &'s mut [Cell<'v>],
    entity: EntityBytes<'v>,
    properties: Positions<'v>,
    copied: usize,
}

impl<'s, 'f, 'v> Values<'s, 'f, 'v> {
    #[inline]
    const fn new(
        places: &'s mut [Place<'f>],
        cells: &'s mut [Cell<'v>],
        entity: EntityBytes<'v>,
        properties: Positions<'v>,
    ) -> Self {
        Self {
            places,
            cells,
            entity,
            properties,
            copied: 0,
        }
    }

    #[inline]
    fn pass_to<T>(
        mut self,
        read: impl FnOnce(&mut Self) -> Result<T, StorageError>,
    ) -> Result<(T, usize), StorageError> {
        let result = read(&mut self)?;
        Ok((result, self.copied))
    }

    /// Finds the value of a slot; none for no slot.
    #[inline]
    pub(super) fn find(&mut self, slot: usize) -> Result<Found<'v>, StorageError> {
        let (Some(place), Some(cell)) = (self.places.get(slot), self.cells.get_mut(slot)) else {
            return Ok(Found::Absent);
        };
        if let Cell::Unknown = cell {
            match place.look(self.properties) {
                Some(value) => *cell = Cell::Stored(value),
                None => return self.find_elsewhere(slot),
            }
        }
        Ok(cell.found())
    }

    /// Reads the value of a slot.
    pub(super) fn read(&mut self, slot: usize) -> Result<Option<&ValueRef<'v>>, StorageError> {
        if let Found::Stored(value) = self.find(slot)? {
            let value = value.read().ok_or(DAMAGED)?;
            self.set(slot, value);
        }
        Ok(self.value(slot))
    }

    /// The value of a slot that was read.
    pub(super) fn value(&self, slot: usize) -> Option<&ValueRef<'v>> {
        match self.cells.get(slot) {
            Some(Cell::Read(value)) => Some(value),
            _ => None,
        }
    }

    fn set(&mut self, slot: usize, value: ValueRef<'v>) {
        self.copied += match &value {
            ValueRef::Binary(Cow::Owned(bytes)) => bytes.len(),
            ValueRef::String(Cow::Owned(text)) => text.len(),
            _ => 0,
        };
        if let Some(cell) = self.cells.get_mut(slot) {
            *cell = Cell::Read(value);
        }
    }

    #[inline(never)]
    fn find_elsewhere(&mut self, slot: usize) -> Result<Found<'v>, StorageError> {
        match self.places.get(slot).and_then(|place| place.system) {
            Some(property) => self.set(slot, self.entity.system_property(property)?),
            None => self.find_all()?,
        }
        Ok(self.cells.get(slot).map_or(Found::Absent, Cell::found))
    }

    /// Finds the properties of all slots for which none was found yet.
    fn find_all(&mut self) -> Result<(), StorageError> {
        for (position, piece) in self.properties.pieces().enumerate() {
            let Some((slot, property)) = self.slot_of(piece?) else {
                continue;
            };
            if let (Some(place), Some(cell @ Cell::Unknown)) =
                (self.places.get_mut(slot), self.cells.get_mut(slot))
            {
                *cell = Cell::Stored(place.learn(position, &property).ok_or(DAMAGED)?);
            }
        }
        for (place, cell) in self.places.iter().zip(&mut *self.cells) {
            if let (Cell::Unknown, None) = (&cell, place.system) {
                *cell = Cell::Absent;
            }
        }
        Ok(())
    }

    /// The slot of a property in a record, if the filter looks at it.
    fn slot_of(&self, piece: &'v [u8]) -> Option<(usize, StoredProperty<'v>)> {
        if self.places.len() > NAMES_FEW {
            let property = StoredProperty::read(piece)?;
            return Some((slot_of(self.places, property.name())?, property));
        }
        let mut places = self.places.iter().enumerate();
        places
            .find_map(|(slot, place)| Some((slot, StoredProperty::read_named(piece, place.name)?)))
    }
}

impl<'f> Place<'f> {
    fn new(name: &'f str) -> Self {
        Self {
            name,
            system: SystemProperty::named(name),
            position: usize::MAX,
            head: Vec::new(),
            start: 0,
            mask: 0,
            annotation: None,
        }
    }

    /// The value of the property, if it is where it was in the entity before, with the same type.
    #[inline]
    fn look<'v>(&self, properties: Positions<'v>) -> Option<StoredValue<'v>> {
        let (rest, length) = properties.at(self.position)?;
        let is_head = match rest.first_chunk() {
            // A call takes longer than the comparison of a word.
            Some(word) if (u64::from_le_bytes(*word) ^ self.start) & self.mask != 0 => false,
            Some(_) if self.head.len() <= 8 => true,
            _ => rest.starts_with(&self.head),
        };
        let json = rest.get(self.head.len()..length)?;
        is_head.then_some(StoredValue::new(self.annotation, json))
    }

    /// Remembers where the property is now. Returns its value.
    fn learn<'v>(
        &mut self,
        position: usize,
        property: &StoredProperty<'v>,
    ) -> Option<StoredValue<'v>> {
        let value = property.stored_value()?;
        self.position = position;
        self.annotation = value.annotation();
        self.head.clear();
        self.head.extend_from_slice(property.head());
        let word = |byte: &dyn Fn(usize) -> u8| u64::from_le_bytes(std::array::from_fn(byte));
        self.start = word(&|at| self.head.get(at).copied().unwrap_or_default());
        self.mask = word(&|at| if at < self.head.len() { u8::MAX } else { 0 });
        Some(value)
    }
}

impl<'v> Cell<'v> {
    #[inline]
    const fn found(&self) -> Found<'v> {
        match self {
            Self::Unknown | Self::Absent => Found::Absent,
            Self::Stored(value) => Found::Stored(*value),
            Self::Read(_) => Found::Read,
        }
    }
}

fn slot_of(places: &[Place<'_>], name: &[u8]) -> Option<usize> {
    let order = |place: &Place<'_>| compare_names(place.name.as_bytes(), name);
    places.binary_search_by(order).ok()
}

fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The same room for values of another lifetime. The standard library collects a vector that it
/// takes apart in place.
fn emptied<'b>(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'b>> {
    cells.clear();
    cells.into_iter().map(|_| Cell::Unknown).collect()
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

    /// The value of a slot of an entity.
    fn read(
        slots: &mut Slots<'_>,
        record: &[u8],
        slot: usize,
    ) -> Result<(Option<Value>, usize), StorageError> {
        slots.of_entity(EntityBytes { key: &[], record }, |values| {
            // Whether it is found again.
            values.find(slot)?;
            let value = values.read(slot)?.cloned();
            Ok(value.map(ValueRef::into_value))
        })
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
                let entity = EntityBytes { key: &[], record: &bytes };
                let places: Vec<_> = names.iter().map(|name| slots.slot(name).unwrap()).collect();
                let found = slots.of_entity(entity, |values| {
                    let places = places.iter();
                    let found = places.map(|slot| {
                        Ok(values.read(*slot)?.cloned().map(ValueRef::into_value))
                    });
                    found.collect::<Result<Vec<_>, _>>()
                });
                let expected: Vec<_> = names.iter().map(|name| properties.get(name).cloned()).collect();
                prop_assert_eq!(found.unwrap().0, expected.clone());
                for (slot, expected) in places.iter().zip(expected) {
                    prop_assert_eq!(read(&mut slots, &bytes, *slot).unwrap().0, expected);
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
        let copied = |name| read(&mut Slots::new(vec![name]), &bytes, 0).unwrap().1;
        assert_eq!((copied("A"), copied("B"), copied("C")), (0, 3, 0));
    }
}
