//! Entities of a page in the usual form: minimal metadata, and all properties as they are stored.
//!
//! Neighbours are mostly of one partition and were often written in the same second: what they have
//! in common is printed once and copied. This module knows nothing of a page but its last entity.

use super::value::{write_quoted, write_string};
use super::writer::EntityHead;
use crate::types::{FRACTION, FRACTION_BYTES, PrintedTimestamp, Timestamp};

/// Writes entities one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct UsualWriter {
    /// The partition key that is printed in `before`.
    partition_key: String,
    /// The timestamp of the last entity; `None` at first.
    timestamp: Option<Timestamp>,
    /// Its fraction, if that alone differs from the timestamp in `before` and `after`.
    fraction: Option<[u8; FRACTION_BYTES]>,
    /// The text before the row key, with a comma in front of the entity.
    before: Vec<u8>,
    /// The text between the row key and the properties.
    after: Vec<u8>,
    printed: PrintedTimestamp,
}

impl UsualWriter {
    /// Writes an entity, after a comma unless it is the first one.
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        head: EntityHead<'_>,
        stored: &[u8],
        is_first: bool,
    ) {
        self.prepare(head);
        let before = self.before.get(usize::from(is_first)..).unwrap_or_default();
        out.reserve(before.len() + head.row_key.len() + self.after.len() + stored.len() + 1);
        let start = out.len() - usize::from(is_first);
        out.extend_from_slice(before);
        write_quoted(out, head.row_key);
        let end = out.len();
        out.extend_from_slice(&self.after);
        if let Some(digits) = self.fraction {
            // In the copies: the processor would wait for a part of the original that is new.
            for place in [start + ETAG_FRACTION, end + TIMESTAMP_FRACTION] {
                if let Some(place) = out.get_mut(place..place + digits.len()) {
                    place.copy_from_slice(&digits);
                }
            }
        }
        out.extend_from_slice(stored);
        out.push(b'}');
    }

    /// Prints what the entity does not have in common with the one before.
    fn prepare(&mut self, head: EntityHead<'_>) {
        let is_same_partition = self.partition_key == head.partition_key;
        if is_same_partition && self.timestamp == Some(head.timestamp) {
            return;
        }
        let is_same_second = self.printed.is_in_second_of(head.timestamp);
        let was_whole = self.after.len() == AFTER_BYTES_MAX;
        self.printed.set(head.timestamp);
        self.timestamp = Some(head.timestamp);
        self.fraction = None;
        if is_same_partition && is_same_second && was_whole {
            self.fraction = self.printed.whole_fraction();
            if self.fraction.is_some() {
                return;
            }
        }
        head.partition_key.clone_into(&mut self.partition_key);
        self.print(head.partition_key);
    }

    fn print(&mut self, partition_key: &str) {
        let time = self.printed.as_bytes();
        self.before.clear();
        self.before.extend_from_slice(ETAG);
        for (index, part) in time.split(|byte| *byte == b':').enumerate() {
            if index > 0 {
                self.before.extend_from_slice(b"%3A");
            }
            self.before.extend_from_slice(part);
        }
        self.before.extend_from_slice(b"'\\\"\",\"PartitionKey\":");
        write_string(&mut self.before, partition_key);
        self.before.extend_from_slice(b",\"RowKey\":\"");
        self.after.clear();
        self.after.extend_from_slice(TIMESTAMP);
        self.after.extend_from_slice(time);
        self.after.push(b'"');
    }
}

/// Before the timestamp in the ETag.
const ETAG: &[u8] = b",{\"odata.etag\":\"W/\\\"datetime'";
/// Between the row key and the timestamp.
const TIMESTAMP: &[u8] = b"\",\"Timestamp\":\"";
/// Where the fraction is in `before`: each colon of the timestamp has three bytes there.
const ETAG_FRACTION: usize = ETAG.len() + FRACTION + 4;
/// Where the fraction is in `after`.
const TIMESTAMP_FRACTION: usize = TIMESTAMP.len() + FRACTION;
/// The length of `after` with a whole fraction.
const AFTER_BYTES_MAX: usize = TIMESTAMP_FRACTION + FRACTION_BYTES + "Z\"".len();
