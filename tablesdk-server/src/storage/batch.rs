//! [`WriteBatch`]: writes that happen together.
//!
//! Their keys and records are in one buffer, which is the only memory that they take.

use std::ops::Range;

/// Writes that happen together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteBatch {
    /// True if the batch changes records that are cached for an epoch.
    pub(crate) starts_epoch: bool,
    /// Each key, with the record behind it, and the key that is begun.
    bytes: Vec<u8>,
    /// In the order in which they are applied.
    places: Vec<Place>,
}

/// One write of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write<'a> {
    /// Removes the record under the key.
    Delete(&'a [u8]),
    /// Puts the record under the key.
    Put(&'a [u8], &'a [u8]),
}

/// Where a write is in the buffer. It starts where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    key_end: usize,
    end: usize,
    is_put: bool,
}

impl<'a> Write<'a> {
    /// The key that is written.
    pub(crate) const fn key(self) -> &'a [u8] {
        match self {
            Self::Delete(key) | Self::Put(key, _) => key,
        }
    }
}

impl WriteBatch {
    /// No writes yet. `starts_epoch`: whether they change records that are cached for an epoch.
    pub(crate) fn new(starts_epoch: bool) -> Self {
        Self {
            starts_epoch,
            ..Self::default()
        }
    }

    /// Makes room for so many writes, of so many bytes.
    pub(crate) fn reserve(&mut self, writes: usize, bytes: usize) {
        self.places.reserve_exact(writes);
        self.bytes.reserve_exact(bytes);
    }

    /// Puts a record under a key, and replaces an existing one.
    pub(crate) fn put(&mut self, key: impl AsRef<[u8]>, record: impl AsRef<[u8]>) {
        self.begin(|bytes| bytes.extend_from_slice(key.as_ref()));
        self.put_begun(|bytes| bytes.extend_from_slice(record.as_ref()));
    }

    /// Removes the record under a key, if there is one.
    pub(crate) fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.begin(|bytes| bytes.extend_from_slice(key.as_ref()));
        self.delete_begun();
    }

    /// Begins a write with its key. It is a part of the batch once its kind is known.
    pub(crate) fn begin(&mut self, key: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.end());
        key(&mut self.bytes);
    }

    /// The key of the write that is begun.
    pub(crate) fn begun_key(&self) -> &[u8] {
        self.bytes.get(self.end()..).unwrap_or_default()
    }

    /// Puts a record under the key that is begun.
    pub(crate) fn put_begun(&mut self, record: impl FnOnce(&mut Vec<u8>)) {
        let key_end = self.bytes.len();
        record(&mut self.bytes);
        self.places.push(Place {
            key_end,
            end: self.bytes.len(),
            is_put: true,
        });
    }

    /// Removes the record under the key that is begun.
    pub(crate) fn delete_begun(&mut self) {
        let key_end = self.bytes.len();
        self.places.push(Place {
            key_end,
            end: key_end,
            is_put: false,
        });
    }

    /// The writes, in the order in which they are applied.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Write<'_>> {
        let mut start = 0;
        self.places.iter().map(move |place| {
            let key = self.slice(start..place.key_end);
            start = place.end;
            if place.is_put {
                Write::Put(key, self.slice(place.key_end..place.end))
            } else {
                Write::Delete(key)
            }
        })
    }

    /// The key of the last write.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        let (last, before) = self.places.split_last()?;
        let start = before.last().map_or(0, |place| place.end);
        Some(self.slice(start..last.key_end))
    }

    /// The number of writes.
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no writes.
    pub(crate) const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The size of keys and records in bytes.
    #[cfg(feature = "durable")]
    pub(crate) fn bytes(&self) -> usize {
        self.end()
    }

    fn end(&self) -> usize {
        self.places.last().map_or(0, |place| place.end)
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_in_order_and_one_that_is_only_begun_is_none() {
        let mut batch = WriteBatch::default();
        assert_eq!((batch.last_key(), batch.is_empty()), (None, true));
        batch.put("a", "record");
        batch.begin(|bytes| bytes.extend_from_slice(b"never"));
        assert_eq!(batch.begun_key(), b"never");
        batch.delete("b");
        batch.begin(|bytes| bytes.extend_from_slice(b"c"));
        assert_eq!(
            (batch.begun_key(), batch.last_key()),
            (&b"c"[..], Some(&b"b"[..]))
        );
        batch.put_begun(|_| ());
        let expected = [
            Write::Put(b"a", b"record"),
            Write::Delete(b"b"),
            Write::Put(b"c", b""),
        ];
        assert_eq!(batch.iter().collect::<Vec<_>>(), expected);
        assert_eq!((batch.len(), batch.last_key()), (3, Some(&b"c"[..])));
    }
}
