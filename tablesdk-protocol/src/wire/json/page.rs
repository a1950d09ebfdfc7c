//! A response with many entities.

use super::MetadataLevel;
use super::stored::StoredProperty;
use super::value::{write_quoted, write_string};
use super::writer::{EntityFormat, EntityHead, ObjectWriter, Selection};
use crate::types::PrintedTimestamp;

impl EntityFormat<'_> {
    /// Begins a response with many entities.
    pub fn page(&self) -> PageWriter<'_> {
        let mut out = Vec::with_capacity(PAGE_BYTES_FEW);
        out.push(b'{');
        if self.level != MetadataLevel::None {
            write_string(&mut out, "odata.metadata");
            out.push(b':');
            write_string(&mut out, &self.metadata_url(false));
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
        PageWriter {
            start: out.len(),
            out,
            selection: Selection::new(self.select),
            format: self,
            is_usual: self.level == MetadataLevel::Minimal
                && self.select.is_none()
                && !self.is_cosmos_db(),
            printed: PrintedTimestamp::default(),
        }
    }
}

/// An incomplete response with many entities.
#[derive(Clone, Debug)]
pub struct PageWriter<'a> {
    format: &'a EntityFormat<'a>,
    selection: Selection<'a>,
    /// True if each entity has minimal metadata and all of its properties as they are stored.
    is_usual: bool,
    out: Vec<u8>,
    /// Where the first entity starts.
    start: usize,
    /// The timestamp of the last entity.
    printed: PrintedTimestamp,
}

impl PageWriter<'_> {
    /// Adds an entity, whose properties are given as for [`EntityFormat::single`].
    ///
    /// # Errors
    ///
    /// The first one of `properties`. The entity is not added then.
    pub fn entity<'v, E>(
        &mut self,
        head: EntityHead<'_>,
        stored: &[u8],
        properties: impl Iterator<Item = Result<StoredProperty<'v>, E>>,
    ) -> Result<(), E> {
        let len = self.out.len();
        if len > self.start {
            self.out.push(b',');
        }
        self.printed.set(head.timestamp);
        if self.is_usual {
            write_usual(&mut self.out, head, &self.printed, stored);
            return Ok(());
        }
        let mut object = ObjectWriter::start(std::mem::take(&mut self.out));
        let (selection, printed) = (&self.selection, &self.printed);
        self.format
            .entity_metadata(&mut object, head, printed, false);
        let written =
            self.format
                .members(&mut object, selection, head, printed, stored, properties);
        self.out = object.end();
        if written.is_err() {
            self.truncate(len);
        }
        written
    }

    /// Makes room for so many more bytes.
    pub fn reserve(&mut self, additional: usize) {
        self.out.reserve(additional);
    }

    /// The bytes written so far.
    pub const fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns true if there is no entity yet.
    pub const fn is_empty(&self) -> bool {
        self.out.len() == self.start
    }

    /// Removes the entities that were added since the response had that length.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len.max(self.start));
    }

    /// Ends the response.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"]}");
        self.out
    }
}

/// Writes an entity with minimal metadata and all of its properties: the usual form, in few copies,
/// each of a length that the compiler knows if possible.
fn write_usual(out: &mut Vec<u8>, head: EntityHead<'_>, printed: &PrintedTimestamp, stored: &[u8]) {
    let (padded, surplus) = printed.padded();
    let keys_bytes = head.partition_key.len() + head.row_key.len();
    out.reserve(USUAL_BYTES_MAX + keys_bytes + stored.len());
    // Each part has the bounds with which it was printed: the processor would wait for one that is
    // put together of others.
    out.extend_from_slice(b"{\"odata.etag\":\"W/\\\"datetime'");
    out.extend_from_slice(&padded[..13]);
    out.extend_from_slice(b"%3A");
    out.extend_from_slice(&padded[14..16]);
    out.extend_from_slice(b"%3A");
    out.extend_from_slice(&padded[17..19]);
    out.extend_from_slice(&padded[19..27]);
    out.truncate(out.len() - surplus);
    out.extend_from_slice(b"Z'\\\"\",\"PartitionKey\":\"");
    write_quoted(out, head.partition_key);
    out.extend_from_slice(b"\",\"RowKey\":\"");
    write_quoted(out, head.row_key);
    out.extend_from_slice(b"\",\"Timestamp\":\"");
    out.extend_from_slice(&padded[..19]);
    out.extend_from_slice(&padded[19..27]);
    out.truncate(out.len() - surplus);
    out.extend_from_slice(b"Z\"");
    out.extend_from_slice(stored);
    out.push(b'}');
}

/// The memory that a page has at first.
const PAGE_BYTES_FEW: usize = 1024;
/// The length of an entity with minimal metadata, without keys and properties, is less than this.
const USUAL_BYTES_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Timestamp, ValueRef};
    use crate::wire::json::{EntityStyle, write_stored_property};

    proptest! {
        #[test]
        fn an_entity_of_a_page_is_written_as_a_single_one(
            entities in prop::collection::vec((
                "[a\"\\\\é\u{1}\u{2028}😀 ]{0,20}",
                "[a-z\"]{0,40}",
                prop_oneof![-20..20_i64, (-20..20_i64).prop_map(|part| part * 1_000_000)],
                0..3_u8,
            ), 1..6),
        ) {
            let endpoint = "https://acct.table.core.windows.net".parse().unwrap();
            let format = EntityFormat {
                level: MetadataLevel::Minimal,
                endpoint: &endpoint,
                account: "acct",
                table: "people",
                select: None,
                select_text: None,
                style: EntityStyle::default(),
            };
            let none = std::iter::empty::<Result<_, ()>>;
            let mut page = format.page();
            let mut expected = br#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#people","value":["#.to_vec();
            for (index, (partition_key, row_key, ticks, properties)) in entities.iter().enumerate() {
                let mut stored = Vec::new();
                for property in 0..*properties {
                    write_stored_property(&mut stored, &format!("P{property}"), &ValueRef::Int32(1));
                }
                let timestamp = Timestamp::from_unix_ticks(*ticks).unwrap();
                let head = EntityHead { partition_key, row_key, timestamp };
                let single = format.single(head, &stored, none()).unwrap();
                let metadata = br#""odata.metadata":"https://acct.table.core.windows.net/$metadata#people/@Element","#;
                expected.extend_from_slice(if index == 0 { b"{" } else { b",{" });
                expected.extend_from_slice(single.strip_prefix(b"{").unwrap().strip_prefix(metadata).unwrap());
                let length = page.len();
                page.entity(head, &stored, none()).unwrap();
                if *properties == 2 {
                    page.truncate(length);
                    page.entity(head, &stored, none()).unwrap();
                }
            }
            expected.extend_from_slice(b"]}");
            prop_assert_eq!(String::from_utf8(page.finish()), String::from_utf8(expected));
        }
    }
}
