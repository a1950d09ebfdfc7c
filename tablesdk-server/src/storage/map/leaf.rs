//! A leaf of the map: entries in the order of their keys, each a key and its record, in one buffer.

use std::cmp::Ordering;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::{Node, Outside, Split, bytes_after, common};

/// A leaf.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    /// The entries one after another: each is a key and its record, unless that is outside.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// How many bytes all keys begin with in common, at least.
    prefix: usize,
    /// The records that are outside of the buffer, in the order of their keys.
    outside: Vec<Outside>,
    /// The index of the entry that was added last, since the leaf was split, unless it was removed.
    added: Option<usize>,
    /// The weight that splits have taken along since entries are added in order: see
    /// [`Self::split_point`].
    carried: usize,
}

/// Where an entry is in the buffer. It starts where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The bytes of the key after the prefix, with zeros after its end, so that a search reads few
    /// keys.
    head: u32,
    key_end: u32,
    /// Where the record ends, or [`OUTSIDE`].
    record_end: u32,
}

impl Clone for Leaf {
    /// Copies the buffer, with some room for the change that requires the copy.
    fn clone(&self) -> Self {
        let mut bytes = Vec::with_capacity(capacity_for(self.bytes.len()));
        bytes.extend_from_slice(&self.bytes);
        let mut entries = Vec::with_capacity(self.entries.len() + ENTRIES_STEP);
        entries.extend_from_slice(&self.entries);
        Self {
            bytes,
            entries,
            prefix: self.prefix,
            outside: self.outside.clone(),
            added: self.added,
            carried: self.carried,
        }
    }
}

impl Leaf {
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.entries[index].key_end()]
    }

    pub(super) fn record(&self, index: usize) -> &[u8] {
        let entry = self.entries[index];
        if entry.is_outside() {
            &self.outside[self.outside_before(index)]
        } else {
            &self.bytes[entry.key_end()..entry.end()]
        }
    }

    /// The entries from an index up to another one.
    pub(super) fn entries(&self, from: usize, until: usize) -> Entries<'_> {
        Entries {
            bytes: &self.bytes,
            start: self.start(from),
            rest: self.entries[from..until].iter(),
            outside: self.outside[self.outside_before(from)..].iter(),
        }
    }

    /// The index of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<usize> {
        // A key with another prefix is not found, wherever the search ends.
        self.search(key).ok()
    }

    /// The index of a key, or where it would be.
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = &self.bytes[..self.prefix];
        match prefix.cmp(&key[..key.len().min(self.prefix)]) {
            Ordering::Less => Err(self.len()),
            Ordering::Equal => self.search(key),
            Ordering::Greater => Err(0),
        }
    }

    /// The same for a key with the prefix.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let head = head_of(key, self.prefix);
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let order = self.entries[middle].head.cmp(&head);
            match order.then_with(|| self.key(middle).cmp(key)) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Puts a record under a key. Returns a large record that it replaces, and the right part if
    /// the leaf was split.
    pub(super) fn insert(&mut self, key: &[u8], record: &[u8]) -> (Option<Outside>, Option<Split>) {
        match self.find(key) {
            Ok(index) => {
                let replaced = self.replace(index, record);
                let is_too_large = self.weight() > WEIGHT_MAX && self.len() > 1;
                let split = is_too_large.then(|| {
                    let right = self.split_off(self.middle());
                    self.split_from(right)
                });
                (replaced, split)
            }
            Err(index) => {
                let weight = self.weight() + weight_of(key, record);
                if self.is_empty() || weight <= WEIGHT_MAX && self.len() < ENTRIES_MAX {
                    self.add(index, key, record);
                    return (None, None);
                }
                let (at, is_left, carried) = self.split_point(index, weight_of(key, record));
                let mut right = self.split_off(at);
                if is_left {
                    self.add(index, key, record);
                    self.carried = carried;
                } else {
                    right.add(index - at, key, record);
                    right.carried = carried;
                }
                (None, Some(self.split_from(right)))
            }
        }
    }

    /// Removes a key, if it is there. Returns a large record.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Outside> {
        let index = self.find(key).ok()?;
        let entry = self.entries[index];
        let outside = self.take_outside(index);
        self.resize(self.start(index)..entry.end(), 0, index);
        self.entries.remove(index);
        self.added = match self.added {
            Some(added) if added > index => Some(added - 1),
            Some(added) if added == index => None,
            added => added,
        };
        if self.is_empty() {
            self.prefix = 0;
        }
        outside
    }

    /// Adds the entries of the leaf after this one.
    pub(super) fn append(&mut self, right: &Self) {
        let by = offset(self.bytes.len());
        self.make_room(right.bytes.len());
        self.bytes.extend_from_slice(&right.bytes);
        let moved = right.entries.iter().map(|entry| entry.moved(by));
        self.entries.extend(moved);
        self.outside.extend_from_slice(&right.outside);
        self.find_prefix();
    }

    /// Returns true if so little is left that the leaf should become a part of its neighbour.
    pub(super) fn is_small(&self) -> bool {
        self.weight() < WEIGHT_MAX / 4 && self.len() < ENTRIES_MAX / 4
    }

    /// Returns true if both leaves fit in one, with room for further entries.
    pub(super) fn fits_with(&self, right: &Self) -> bool {
        self.weight() + right.weight() <= WEIGHT_MAX / 4 * 3
            && self.len() + right.len() <= ENTRIES_MAX / 4 * 3
    }

    fn weight(&self) -> usize {
        self.bytes.len() + self.outside.len() * OUTSIDE_WEIGHT
    }

    /// Where an entry starts, or where the last one ends.
    fn start(&self, index: usize) -> usize {
        let before = index.checked_sub(1);
        before.map_or(0, |before| self.entries[before].end())
    }

    /// The number of records outside of the buffer before an index.
    fn outside_before(&self, index: usize) -> usize {
        if self.outside.is_empty() {
            return 0;
        }
        let before = self.entries[..index].iter();
        before.filter(|entry| entry.is_outside()).count()
    }

    /// Adds an entry, for which there is room.
    fn add(&mut self, index: usize, key: &[u8], record: &[u8]) {
        let prefix = match self.entries.first() {
            Some(_) => common(&self.bytes[..self.prefix], key),
            None => key.len(),
        };
        if prefix != self.prefix {
            self.set_prefix(prefix);
        }
        let start = self.start(index);
        let inside = if record.len() > INSIDE_MAX {
            let place = self.outside_before(index);
            self.outside.insert(place, record.into());
            &[]
        } else {
            record
        };
        let key_end = start + key.len();
        let end = key_end + inside.len();
        self.resize(start..start, end - start, index);
        self.bytes[start..key_end].copy_from_slice(key);
        self.bytes[key_end..end].copy_from_slice(inside);
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(ENTRIES_STEP);
        }
        let is_outside = record.len() > INSIDE_MAX;
        let entry = Entry {
            head: head_of(key, prefix),
            key_end: offset(key_end),
            record_end: if is_outside { OUTSIDE } else { offset(end) },
        };
        self.entries.insert(index, entry);
        if self.added != Some(index) && self.added.map(|added| added + 1) != Some(index) {
            self.carried = 0;
        }
        self.added = Some(index);
    }

    /// Replaces the record of an entry. Returns it if it was large.
    fn replace(&mut self, index: usize, record: &[u8]) -> Option<Outside> {
        let replaced = self.take_outside(index);
        let (key_end, end) = (self.entries[index].key_end(), self.entries[index].end());
        if record.len() > INSIDE_MAX {
            let place = self.outside_before(index);
            self.outside.insert(place, record.into());
            self.resize(key_end..end, 0, index + 1);
            self.entries[index].record_end = OUTSIDE;
        } else {
            self.resize(key_end..end, record.len(), index + 1);
            let end = key_end + record.len();
            self.bytes[key_end..end].copy_from_slice(record);
            self.entries[index].record_end = offset(end);
        }
        replaced
    }

    /// Takes the record of an entry if it is outside. An empty one is in its place.
    fn take_outside(&mut self, index: usize) -> Option<Outside> {
        let entry = self.entries[index];
        entry.is_outside().then(|| {
            self.entries[index].record_end = entry.key_end;
            self.outside.remove(self.outside_before(index))
        })
    }

    /// Gives a range of the buffer another length. The entries from this index on come after it.
    fn resize(&mut self, range: Range<usize>, length: usize, from: usize) {
        if length == range.len() {
            return;
        }
        let end = self.bytes.len();
        if length > range.len() {
            let more = length - range.len();
            self.make_room(more);
            self.bytes.resize(end + more, 0);
            self.bytes.copy_within(range.end..end, range.start + length);
        } else {
            self.bytes.copy_within(range.end..end, range.start + length);
            self.bytes.truncate(end - (range.len() - length));
            self.shrink();
        }
        let by = offset(length).wrapping_sub(offset(range.len()));
        for entry in &mut self.entries[from..] {
            *entry = entry.moved(by);
        }
    }

    fn make_room(&mut self, bytes: usize) {
        let length = self.bytes.len() + bytes;
        if length > self.bytes.capacity() {
            self.bytes
                .reserve_exact(capacity_for(length) - self.bytes.len());
        }
    }

    /// Returns memory that the leaf no longer needs.
    fn shrink(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to(capacity_for(self.bytes.len()));
            self.entries.shrink_to(self.entries.len() + ENTRIES_STEP);
        }
    }

    /// Finds what the keys have in common now.
    fn find_prefix(&mut self) {
        let last = self.len().checked_sub(1);
        self.set_prefix(last.map_or(0, |last| common(self.key(0), self.key(last))));
    }

    fn set_prefix(&mut self, prefix: usize) {
        self.prefix = prefix;
        for index in 0..self.len() {
            self.entries[index].head = head_of(self.key(index), prefix);
        }
    }

    /// Where to split a leaf for a new entry, whether that goes to the left part, and how much its
    /// part has carried then. Neither part is empty then.
    ///
    /// Entries are often added in the order of their keys, or in the reverse order, somewhere
    /// between others. Then the part that gets no more of them stays full but for the others, which
    /// the other part carries along. Once they have cost as much as a leaf, they get a leaf of
    /// their own.
    fn split_point(&self, index: usize, weight: usize) -> (usize, bool, usize) {
        let weight_of = |entries: Range<usize>| {
            let bytes = self.start(entries.end) - self.start(entries.start);
            let outside = self.outside_before(entries.end) - self.outside_before(entries.start);
            bytes + outside * OUTSIDE_WEIGHT
        };
        let (before, after) = (weight_of(0..index), weight_of(index..self.len()));
        let parts = |others: usize, part: usize| {
            let carried = self.carried + others;
            let is_parted = others > 0 && carried > CARRIED_MAX && part + weight <= WEIGHT_MAX;
            (is_parted, if is_parted { 0 } else { carried })
        };
        let added = self.added.unwrap_or(usize::MAX - 1);
        if index == added + 1 && after <= WEIGHT_MAX / 2 {
            let (is_parted, carried) = parts(after, before);
            return (index, is_parted, carried);
        }
        if index == added && before <= WEIGHT_MAX / 2 {
            let (is_parted, carried) = parts(before, after);
            return (index, !is_parted, carried);
        }
        if self.len() == 1 {
            return (index, index == 0, 0);
        }
        let at = self.middle();
        (at, index < at, 0)
    }

    /// Where both parts have about the same weight, and neither is empty.
    fn middle(&self) -> usize {
        let half = self.weight() / 2;
        let (mut at, mut outside) = (0, 0);
        while at + 1 < self.len() && self.start(at) + outside * OUTSIDE_WEIGHT < half {
            outside += usize::from(self.entries[at].is_outside());
            at += 1;
        }
        at.max(1)
    }

    /// Takes the entries from an index on out.
    fn split_off(&mut self, at: usize) -> Self {
        let (start, outside) = (self.start(at), self.outside_before(at));
        let mut right = Self::default();
        right.make_room(self.bytes.len() - start);
        right.bytes.extend_from_slice(&self.bytes[start..]);
        let by = offset(start).wrapping_neg();
        let moved = self.entries[at..].iter().map(|entry| entry.moved(by));
        right.entries.extend(moved);
        right.outside = self.outside.split_off(outside);
        self.bytes.truncate(start);
        self.bytes.shrink_to(capacity_for(start));
        self.entries.truncate(at);
        self.entries.shrink_to_fit();
        // Otherwise entries in the reverse order after entries in order would get a leaf each.
        self.added = None;
        self.carried = 0;
        right.find_prefix();
        self.find_prefix();
        right
    }

    /// The split of this leaf from the entries after it.
    fn split_from(&self, right: Self) -> Split {
        let (last, first) = (self.key(self.len() - 1), right.key(0));
        // The shortest key that is after the last one on the left.
        let separator = first[..=common(last, first)].to_vec();
        Split {
            separator,
            right: Node::Leaf(Arc::new(right)),
        }
    }
}

/// Iterates over entries of a leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries<'m> {
    /// The buffer of the leaf.
    bytes: &'m [u8],
    /// Where the next entry starts.
    start: usize,
    /// Where the entries are that come next.
    rest: slice::Iter<'m, Entry>,
    outside: slice::Iter<'m, Outside>,
}

impl<'m> Iterator for Entries<'m> {
    type Item = (&'m [u8], &'m [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.rest.next()?;
        let key = &self.bytes[self.start..entry.key_end()];
        let record = if entry.is_outside() {
            self.outside.next()?
        } else {
            &self.bytes[entry.key_end()..entry.end()]
        };
        self.start = entry.end();
        Some((key, record))
    }
}

impl Entry {
    const fn key_end(self) -> usize {
        self.key_end as usize
    }

    const fn end(self) -> usize {
        let end = if self.is_outside() {
            self.key_end
        } else {
            self.record_end
        };
        end as usize
    }

    const fn is_outside(self) -> bool {
        self.record_end == OUTSIDE
    }

    /// The same entry, so many bytes later. The number wraps for an earlier place.
    const fn moved(self, by: u32) -> Self {
        Self {
            head: self.head,
            key_end: self.key_end.wrapping_add(by),
            record_end: if self.is_outside() {
                OUTSIDE
            } else {
                self.record_end.wrapping_add(by)
            },
        }
    }
}

/// The bytes of a key after a prefix. Keys with the same prefix are in the order of their heads, or
/// have the same head.
fn head_of(key: &[u8], prefix: usize) -> u32 {
    u32::from_be_bytes(bytes_after(key, prefix))
}

fn weight_of(key: &[u8], record: &[u8]) -> usize {
    let record = if record.len() > INSIDE_MAX {
        OUTSIDE_WEIGHT
    } else {
        record.len()
    };
    key.len() + record
}

fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a leaf has less than 4 GiB")
}

/// The capacity of a buffer with so many bytes: a size that allocators have, so nothing is lost to
/// rounding.
const fn capacity_for(bytes: usize) -> usize {
    if bytes <= CAPACITY_STEP * 4 {
        let power = bytes.next_power_of_two();
        if power < CAPACITY_MIN {
            CAPACITY_MIN
        } else {
            power
        }
    } else {
        bytes.next_multiple_of(CAPACITY_STEP)
    }
}

/// The weight of a full leaf. A wider one has fewer bytes of overhead for an entry; a narrower one
/// is copied faster.
pub(super) const WEIGHT_MAX: usize = 16 * 1024;

/// How much splits carry along at most. Entries in order are not always many: a batch at some place
/// should not leave small leaves.
const CARRIED_MAX: usize = WEIGHT_MAX;

/// The number of entries of a full leaf, however small they are.
pub(super) const ENTRIES_MAX: usize = 256;

/// A larger record is outside of the buffer.
pub(super) const INSIDE_MAX: usize = 2048;

/// How much a record outside of the buffer counts: a copy of the leaf copies the reference to it.
const OUTSIDE_WEIGHT: usize = 512;

/// Marks a record that is outside of the buffer.
const OUTSIDE: u32 = u32::MAX;

/// The capacity grows by so many entries.
const ENTRIES_STEP: usize = 8;

/// The capacity of a buffer grows by so many bytes once it has four times as many.
const CAPACITY_STEP: usize = 2048;

/// The least capacity of a buffer.
const CAPACITY_MIN: usize = 512;

#[cfg(test)]
impl Leaf {
    /// Asserts that the leaf is consistent.
    pub(super) fn check(&self) {
        let mut at = 0;
        for entry in &self.entries {
            assert!(at <= entry.key_end() && entry.key_end() <= entry.end());
            at = entry.end();
        }
        for index in 0..self.len() {
            let key = self.key(index);
            assert!(key.starts_with(&self.bytes[..self.prefix]));
            assert_eq!(self.entries[index].head, head_of(key, self.prefix));
        }
        assert_eq!(at, self.bytes.len());
        assert!(self.added.is_none_or(|added| added < self.len()));
        assert_eq!(self.outside_before(self.len()), self.outside.len());
        assert!(self.outside.iter().all(|record| record.len() > INSIDE_MAX));
        let spare = self.bytes.capacity() - self.bytes.len();
        assert!(
            spare <= self.bytes.len().max(CAPACITY_MIN),
            "{spare} spare bytes"
        );
        let spare = self.entries.capacity() - self.len();
        assert!(spare <= ENTRIES_MAX, "{spare} spare entries");
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
