//! A response with many entities.

use super::MetadataLevel;
use super::stored::StoredProperty;
use super::usual::UsualWriter;
use super::value::write_string;
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
            usual: self.is_usual().then(UsualWriter::default),
            printed: PrintedTimestamp::default(),
        }
    }

    /// Returns true if each entity has minimal metadata and all of its properties as they are
    /// stored.
    fn is_usual(&self) -> bool {
        self.level == MetadataLevel::Minimal && self.select.is_none() && !self.is_cosmos_db()
    }
}

/// An incomplete response with many entities.
#[derive(Clone, Debug)]
pub struct PageWriter<'a> {
    format: &'a EntityFormat<'a>,
    selection: Selection<'a>,
    /// Writes the entities if they have the usual form.
    usual: Option<UsualWriter>,
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
        if let Some(usual) = &mut self.usual {
            usual.write(&mut self.out, head, stored, len == self.start);
            return Ok(());
        }
        if len > self.start {
            self.out.push(b',');
        }
        self.printed.set(head.timestamp);
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

/// The memory that a page has at first.
const PAGE_BYTES_FEW: usize = 1024;

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
                // Neighbours are of one partition, or not.
                prop_oneof!["[a\"]{0,1}", "[a\"\\\\é\u{1}\u{2028}😀 ]{0,20}"],
                "[a-z\"]{0,40}",
                prop_oneof![-20..20_i64, (-20..20_i64).prop_map(|part| part * 1_000_000)],
                0..3_u8,
            ), 1..9),
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
