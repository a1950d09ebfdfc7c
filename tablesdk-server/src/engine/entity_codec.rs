//! An entity's timestamp and properties as a record; see `storage/FORMAT.md`.
//!
//! A record contains the properties once, in the form of responses, which copy them, and before
//! them an index: the length of each. So one property is found by its position without reading
//! those before it. Records are read in place, without a collection. The protocol crate defines the
//! form of a property, and reads its value. This module knows no keys. For arbitrary bytes, reading
//! terminates and does not panic.

use smallvec::SmallVec;
use tablesdk_protocol::wire::json::{
    StoredKeys, StoredProperty, StoredReader, write_stored_property,
};
use tablesdk_protocol::{ETag, Timestamp, ValueRef};

use crate::storage::StorageError;

/// The stored entity without its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    timestamp: Timestamp,
    index: &'a [u8],
    json: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record, and checks all of it.
    #[cfg(test)]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, StorageError> {
        let record = Self::open(bytes)?;
        record.values().try_for_each(|value| value.map(drop))?;
        Ok(record)
    }

    /// Reads the timestamp and finds the rest, which is checked when it is read.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, StorageError> {
        match Self::find(bytes) {
            Some(record) => Ok(record),
            None => Err(DAMAGED),
        }
    }

    #[inline]
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (ticks, mut rest) = rest.split_first_chunk()?;
        let timestamp = Timestamp::from_unix_ticks(i64::from_be_bytes(*ticks)).ok()?;
        let index_bytes = read_number(&mut rest)?;
        let (index, json) = rest.split_at_checked(index_bytes)?;
        (*version == VERSION).then_some(Self {
            timestamp,
            index,
            json,
        })
    }

    /// When the entity was last written.
    pub(crate) const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The entity's version.
    pub(crate) fn etag(&self) -> ETag {
        ETag::from_timestamp(self.timestamp)
    }

    /// All properties in the form of responses.
    pub(crate) const fn json(&self) -> &'a [u8] {
        self.json
    }

    /// The JSON of each property, in order.
    pub(crate) const fn pieces(&self) -> Pieces<'a> {
        Pieces {
            index: self.index,
            json: self.json,
        }
    }

    /// The properties, in order. Their values are read on demand.
    pub(crate) fn properties(
        &self,
    ) -> impl Iterator<Item = Result<StoredProperty<'a>, StorageError>> + use<'a> {
        self.pieces()
            .map(|piece| StoredProperty::read(piece?).ok_or(DAMAGED))
    }

    /// The names and values, in order.
    pub(crate) fn values(
        &self,
    ) -> impl Iterator<Item = Result<(&'a str, ValueRef<'a>), StorageError>> + use<'a> {
        self.properties().map(|property| {
            let property = property?;
            let name = std::str::from_utf8(property.name()).ok();
            name.zip(property.value()).ok_or(DAMAGED)
        })
    }

    /// The value of one property.
    #[cfg(test)]
    pub(crate) fn property(&self, name: &str) -> Option<ValueRef<'a>> {
        let mut values = self.values().map(Result::unwrap);
        values
            .find(|(stored, _)| *stored == name)
            .map(|(_, value)| value)
    }
}

/// The JSON of the properties of a record, one by one. A damaged index ends them with an error.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    index: &'a [u8],
    json: &'a [u8],
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<&'a [u8], StorageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index.is_empty() && self.json.is_empty() {
            return None;
        }
        let length = read_number(&mut self.index);
        match length.and_then(|length| self.json.split_at_checked(length)) {
            Some((piece, rest)) => {
                self.json = rest;
                Some(Ok(piece))
            }
            None => {
                (self.index, self.json) = (&[], &[]);
                Some(Err(DAMAGED))
            }
        }
    }
}

impl Pieces<'_> {
    /// Skips so many properties, and touches none of them. `None` if that is not possible.
    #[inline]
    pub(crate) fn skip_over(&mut self, count: usize) -> Option<()> {
        let mut skipped = 0;
        for _ in 0..count {
            skipped += read_number(&mut self.index)?;
        }
        self.json = self.json.get(skipped..)?;
        Some(())
    }
}

/// The properties of a record by their positions. The timestamp of the record is not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions<'a> {
    /// The index and the JSON.
    bytes: &'a [u8],
    index_bytes: usize,
}

impl<'a> Positions<'a> {
    /// No properties.
    pub(crate) const NONE: Self = Self {
        bytes: &[],
        index_bytes: 0,
    };

    /// Finds the properties of a record.
    #[inline]
    pub(crate) fn open(record: &'a [u8]) -> Result<Self, StorageError> {
        let [VERSION, _, _, _, _, _, _, _, _, rest @ ..] = record else {
            return Err(DAMAGED);
        };
        let mut bytes = rest;
        match read_number(&mut bytes) {
            Some(index_bytes) if index_bytes <= bytes.len() => Ok(Self { bytes, index_bytes }),
            _ => Err(DAMAGED),
        }
    }

    /// The JSON of each property, in order.
    pub(crate) fn pieces(self) -> Pieces<'a> {
        let split = self.bytes.split_at_checked(self.index_bytes);
        let (index, json) = split.unwrap_or_default();
        Pieces { index, json }
    }

    /// Where the property at a position begins, and how many bytes it has. Touches none of the
    /// others. `None` if there is none, or if the index is damaged.
    #[inline]
    pub(crate) fn at(self, position: usize) -> Option<(&'a [u8], usize)> {
        // Most lengths take one byte, so that eight of them are added at once. The one that is
        // asked for comes last.
        if position < self.index_bytes.min(8)
            && let Some(word) = self.bytes.first_chunk()
        {
            let word = u64::from_le_bytes(*word) << (56 - 8 * position);
            if word & LONG == 0 {
                let start = self.index_bytes + sum(word << 8);
                return Some((self.bytes.get(start..)?, usize::from(word.to_be_bytes()[0])));
            }
        }
        self.at_far(position)
    }

    #[inline(never)]
    fn at_far(self, position: usize) -> Option<(&'a [u8], usize)> {
        if position >= self.index_bytes {
            return None;
        }
        let mut pieces = self.pieces();
        let mut left = position;
        while left >= 8 {
            let (word, rest) = pieces.index.split_first_chunk()?;
            let word = u64::from_le_bytes(*word);
            if word & LONG != 0 {
                break;
            }
            pieces.index = rest;
            pieces.json = pieces.json.get(sum(word)..)?;
            left -= 8;
        }
        pieces.skip_over(left)?;
        let json = pieces.json;
        Some((json, pieces.next()?.ok()?.len()))
    }
}

/// The sum of the bytes of a word.
#[inline]
const fn sum(word: u64) -> usize {
    const PAIRS: u64 = 0x00FF_00FF_00FF_00FF;
    let pairs = (word & PAIRS) + (word >> 8 & PAIRS);
    // The sum of the four numbers is the highest of the product.
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

/// Properties in the form of a record, to be written with a timestamp that is not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    count: usize,
    index: Index,
    json: Vec<u8>,
}

impl Properties {
    /// No properties.
    pub(crate) const NONE: Self = Self {
        count: 0,
        index: Index::EMPTY,
        json: Vec::new(),
    };

    /// No properties yet, with room for so many bytes of their JSON.
    pub(crate) fn with_capacity(json_bytes: usize) -> Self {
        Self {
            json: Vec::with_capacity(json_bytes),
            ..Self::NONE
        }
    }

    /// The entity in the body of a request, if it is [read](StoredReader::read) in one pass: its
    /// keys, and its properties in the order of the body.
    pub(crate) fn read<'b>(
        reader: &mut StoredReader<'b>,
        body: &'b [u8],
    ) -> Option<(StoredKeys<'b>, Self)> {
        let mut properties = Self::with_capacity(body.len());
        let keys = reader.read(body, &mut properties.json, |_, length| {
            properties.count += 1;
            push_number(|byte| properties.index.push(byte), length);
        })?;
        Some((keys, properties))
    }

    /// The same, in the order of the bytes of their names.
    pub(crate) fn read_sorted<'b>(
        reader: &mut StoredReader<'b>,
        body: &'b [u8],
    ) -> Option<(StoredKeys<'b>, Self)> {
        let (mut json, mut end) = (Vec::with_capacity(body.len()), 0);
        let mut pieces = SmallVec::<[_; PIECES_FEW]>::new();
        let keys = reader.read(body, &mut json, |name, length| {
            pieces.push((name, end, length));
            end += length;
        })?;
        // No name occurs twice.
        pieces.sort_unstable();
        let mut sorted = Self::with_capacity(json.len());
        for (_, start, length) in pieces {
            sorted.push_piece(json.get(start..start + length)?);
        }
        Some((keys, sorted))
    }

    /// Adds a property. The caller sees to it that names are valid and not given twice.
    pub(crate) fn push(&mut self, name: &str, value: &ValueRef<'_>) {
        let start = self.json.len();
        write_stored_property(&mut self.json, name, value);
        self.end_property(self.json.len() - start);
    }

    /// Adds a property of a record as it is.
    pub(crate) fn push_piece(&mut self, piece: &[u8]) {
        self.json.extend_from_slice(piece);
        self.end_property(piece.len());
    }

    /// Notes that the JSON of another property of that length was added.
    fn end_property(&mut self, length: usize) {
        self.count += 1;
        push_number(|byte| self.index.push(byte), length);
    }

    /// Adds other properties.
    pub(crate) fn append(&mut self, other: &Self) {
        self.count += other.count;
        for byte in other.index.as_slice() {
            self.index.push(*byte);
        }
        self.json.extend_from_slice(&other.json);
    }

    /// The number of properties.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The record that they are at that time.
    pub(crate) fn at(&self, timestamp: Timestamp) -> Record<'_> {
        Record {
            timestamp,
            index: self.index.as_slice(),
            json: self.json.as_slice(),
        }
    }

    /// The length of the record, at most.
    pub(crate) fn record_bytes_max(&self) -> usize {
        RECORD_HEAD_BYTES_MAX + self.index.as_slice().len() + self.json.len()
    }

    /// Writes the record.
    pub(crate) fn write_record(&self, timestamp: Timestamp, record: &mut Vec<u8>) {
        let index = self.index.as_slice();
        record.push(VERSION);
        record.extend_from_slice(&timestamp.unix_ticks().to_be_bytes());
        push_number(|byte| record.push(byte), index.len());
        record.extend_from_slice(index);
        record.extend_from_slice(&self.json);
    }

    /// The record.
    #[cfg(any(test, feature = "durable"))]
    pub(crate) fn record(&self, timestamp: Timestamp) -> Vec<u8> {
        let mut record = Vec::new();
        self.write_record(timestamp, &mut record);
        record
    }
}

#[cfg(test)]
impl<'v> FromIterator<(&'v str, ValueRef<'v>)> for Properties {
    fn from_iter<I: IntoIterator<Item = (&'v str, ValueRef<'v>)>>(properties: I) -> Self {
        let mut all = Self::default();
        for (name, value) in properties {
            all.push(name, &value);
        }
        all
    }
}

/// The lengths of properties, as a record has them. Those of a usual entity need no memory of their
/// own.
#[derive(Clone, Debug, Default)]
struct Index {
    few: [u8; INDEX_FEW],
    /// How many of these are used.
    length: usize,
    /// All of them, once there are more.
    many: Vec<u8>,
}

impl Index {
    const EMPTY: Self = Self {
        few: [0; INDEX_FEW],
        length: 0,
        many: Vec::new(),
    };

    fn push(&mut self, byte: u8) {
        match self.few.get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(byte);
            }
        }
    }

    fn as_slice(&self) -> &[u8] {
        if self.many.is_empty() {
            self.few.get(..self.length).unwrap_or_default()
        } else {
            &self.many
        }
    }
}

impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Index {}

/// Adds a number as LEB128: seven bits in each byte, the low ones first, and the high bit in all
/// but the last.
#[inline]
fn push_number(mut push: impl FnMut(u8), mut number: usize) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return push(low);
        }
        push(low | MORE);
    }
}

/// Reads a number, which takes at most four bytes.
#[inline]
fn read_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & !MORE) << shift;
        if byte & MORE == 0 {
            return Some(number);
        }
    }
    None
}

/// The error for a record that this module did not write.
pub(super) const DAMAGED: StorageError = StorageError::corrupt("entity");

/// Pieces of more properties need memory of their own.
const PIECES_FEW: usize = 16;

/// The version, the time, and the length of the index.
const RECORD_HEAD_BYTES_MAX: usize = 1 + 8 + 4;

/// Longer indexes, of more than about twenty properties, need memory of their own.
const INDEX_FEW: usize = 24;

/// The version of this layout.
const VERSION: u8 = 3;

/// Marks a byte of a number that is not its last.
const MORE: u8 = 0x80;
/// The same in each byte of a word.
const LONG: u64 = u64::from_ne_bytes([MORE; 8]);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablesdk_protocol::{Guid, Value};

    use super::*;

    fn timestamp() -> impl Strategy<Value = Timestamp> {
        (Timestamp::MIN.unix_ticks()..=Timestamp::MAX.unix_ticks())
            .prop_map(|ticks| Timestamp::from_unix_ticks(ticks).unwrap())
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<Vec<u8>>().prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            timestamp().prop_map(Value::DateTime),
            any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<String>().prop_map(Value::String),
            (0..40_000_usize).prop_map(|length| Value::String("é\"".repeat(length))),
        ]
    }

    fn encode(timestamp: Timestamp, properties: &[(String, Value)]) -> Vec<u8> {
        let properties = properties.iter();
        let properties: Properties = properties
            .map(|(name, value)| (name.as_str(), value.as_ref()))
            .collect();
        properties.record(timestamp)
    }

    /// As `Debug`, which distinguishes -0.0 from 0.0, and in which NaN equals NaN.
    fn shown<'v>(properties: impl Iterator<Item = (&'v str, ValueRef<'v>)>) -> String {
        format!("{:?}", properties.collect::<Vec<_>>())
    }

    const NAME: &str = "[\\p{L}_][\\p{L}0-9_]{0,20}";

    proptest! {
        #[test]
        fn records_read_back(
            at in timestamp(),
            properties in prop::collection::vec((NAME, value()), 0..30),
        ) {
            let bytes = encode(at, &properties);
            let properties_of: Properties = properties.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
            prop_assert!(bytes.len() <= properties_of.record_bytes_max());
            let record = Record::parse(&bytes).unwrap();
            prop_assert_eq!(record.timestamp(), at);
            let expected = shown(properties.iter().map(|(name, value)| (name.as_str(), value.as_ref())));
            prop_assert_eq!(shown(record.values().map(Result::unwrap)), expected);
            let pieces: Vec<_> = record.pieces().map(Result::unwrap).collect();
            prop_assert_eq!(pieces.len(), properties.len());
            prop_assert_eq!(pieces.concat(), record.json());
            let positions = Positions::open(&bytes).unwrap();
            prop_assert_eq!(positions.at(pieces.len()), None);
            prop_assert_eq!(positions.at(usize::MAX), None);
            for (position, piece) in pieces.iter().enumerate() {
                let (rest, length) = positions.at(position).unwrap();
                prop_assert_eq!(&rest[..length], *piece);
                let mut rest = record.pieces();
                prop_assert_eq!(rest.skip_over(position), Some(()));
                prop_assert_eq!(rest.next(), Some(Ok(*piece)));
            }
            prop_assert_eq!(record.pieces().skip_over(pieces.len() + 1), None);
            let mut again = Properties::with_capacity(1);
            for piece in &pieces {
                again.push_piece(piece);
            }
            prop_assert_eq!(again.count(), properties.len());
            prop_assert_eq!(again.record(at), bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, is_version: bool) {
            if is_version && let Some(version) = bytes.first_mut() {
                *version = VERSION;
            }
            if let Ok(positions) = Positions::open(&bytes) {
                for position in 0..=bytes.len() {
                    let piece = positions.at(position);
                    let piece = piece.and_then(|(rest, length)| rest.get(..length));
                    let mut rest = positions.pieces();
                    let found = rest.skip_over(position).and_then(|()| rest.next());
                    prop_assert_eq!(piece, found.and_then(Result::ok));
                }
            }
            if let Ok(record) = Record::open(&bytes) {
                prop_assert!(record.pieces().count() <= bytes.len());
                let is_read = record.values().all(|value| value.is_ok());
                prop_assert_eq!(Record::parse(&bytes).is_ok(), is_read);
            }
        }

        #[test]
        fn damage_is_read_or_refused(
            properties in prop::collection::vec((NAME, value()), 1..6),
            place: prop::sample::Index,
            byte: u8,
            end: prop::sample::Index,
        ) {
            let mut bytes = encode(Timestamp::UNIX_EPOCH, &properties);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
            if let Ok(record) = Record::parse(&bytes) {
                prop_assert!(record.values().count() <= bytes.len());
            }
        }

        #[test]
        fn numbers_read_back(number in 0_usize..1 << 28) {
            let mut bytes = Vec::new();
            push_number(|byte| bytes.push(byte), number);
            prop_assert_eq!(read_number(&mut &*bytes), Some(number));
        }
    }

    #[test]
    fn the_layout_is_as_documented() {
        let text = "x".repeat(200);
        let properties = [
            ("age".to_owned(), Value::Int32(39)),
            ("n".to_owned(), Value::Int64(5)),
            ("text".to_owned(), Value::from(text.as_str())),
        ];
        let bytes = encode(Timestamp::from_unix_ticks(258).unwrap(), &properties);
        let head = b"\x03\0\0\0\0\0\0\x01\x02\x04";
        let index = b"\x09\x23\xD2\x01";
        let json = format!(r#","age":39,"n@odata.type":"Edm.Int64","n":"5","text":"{text}""#);
        assert_eq!(bytes, [&head[..], index, json.as_bytes()].concat());
        assert_eq!(Record::parse(&bytes).unwrap().json(), json.as_bytes());
        let changed = |place: usize, by: i8| {
            let mut bytes = bytes.clone();
            bytes[place] = bytes[place].wrapping_add_signed(by);
            bytes
        };
        // The version, the length of the index, and the length of a property.
        for damaged in [
            changed(0, 1),
            changed(0, -1),
            changed(9, 1),
            changed(9, -1),
            changed(10, 1),
        ] {
            assert!(Record::parse(&damaged).is_err(), "{damaged:?}");
        }
        for length in 0..bytes.len() {
            assert!(Record::parse(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Record::parse(&[&*bytes, b" "].concat()).is_err());
        assert_eq!(read_number(&mut &[0xFF; 5][..]), None);
    }
}
