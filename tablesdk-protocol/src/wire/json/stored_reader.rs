//! Reads the entity in a request straight into the form in which a server keeps it.
//!
//! Clients mostly write what a server keeps: such a value is checked and copied, and not converted.
//! The changes of a batch mostly have the same names in the same order, with the same
//! annotations. So what stands in front of a value is first compared with what stood there in the
//! entity before.
//!
//! Takes a part of the entities that a request may contain, and gives up, with `None`, on all
//! others: where keys have escapes, annotations are not in front of their values, or anything is
//! wrong. The [reader](super::reader) then reads the entity, and its caller decides.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use super::entity::has_repeated;
use super::is_printed;
use super::object::TYPE_SUFFIX;
use super::scan::Scanner;
use super::stored::{is_annotated, write_stored_name, write_stored_property};
use super::value::Scalar;
use crate::types::limits::{PROPERTIES_MAX, STRING_UNITS_MAX};
use crate::types::{EdmType, check_property_name};

/// Reads entities one after another, such as those of a batch.
#[derive(Debug, Default)]
pub struct StoredReader<'a> {
    /// The leads of the entity before, and of this one as far as it has been read. Their names are
    /// valid, and differ once the entity has been read.
    leads: Vec<Lead<'a>>,
}

/// The keys in a body, without a look at their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredKeys<'a> {
    /// The partition key, if there is one.
    pub partition_key: Option<&'a str>,
    /// The row key, if there is one.
    pub row_key: Option<&'a str>,
}

/// The text in front of a value: the name, and the annotation before it.
#[derive(Clone, Copy, Debug)]
struct Lead<'a> {
    /// All of it, up to the value.
    text: &'a str,
    name: &'a str,
    kind: Kind,
    /// From where on a server keeps it; `None` if there is white space in that.
    kept: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PartitionKey,
    RowKey,
    /// The timestamp, or metadata.
    Ignored,
    Property(Option<EdmType>),
}

impl<'a> StoredReader<'a> {
    /// Reads the entity in a body. Adds its properties to `out`, each as [`write_stored_property`]
    /// writes it, and passes their names and lengths to `ended`. Nulls are left out.
    ///
    /// Returns its keys, or `None` if it gives up. Then `out` has some of the properties.
    pub fn read(
        &mut self,
        body: &'a [u8],
        out: &mut Vec<u8>,
        ended: impl FnMut(&'a str, usize),
    ) -> Option<StoredKeys<'a>> {
        let mut known = self.leads.len();
        let keys = self.members(body, &mut known, out, ended);
        let is_new = known < self.leads.len();
        if keys.is_none() || is_new && has_repeated(&self.leads, |lead| lead.name) {
            self.leads.clear();
            return None;
        }
        keys
    }

    /// Reads the members. `known`: how many leads are those of the entity before.
    fn members(
        &mut self,
        body: &'a [u8],
        known: &mut usize,
        out: &mut Vec<u8>,
        mut ended: impl FnMut(&'a str, usize),
    ) -> Option<StoredKeys<'a>> {
        let mut scanner = Scanner::new(std::str::from_utf8(body).ok()?);
        let mut keys = StoredKeys::default();
        let mut copy = Copy::of(body);
        let (mut next, mut properties) = (0, 0);
        scanner.space();
        scanner.byte(b'{')?;
        scanner.space();
        let mut is_last = scanner.take(b'}');
        while !is_last {
            scanner.space();
            let start = scanner.at();
            if !self.is_expected(&mut next, &mut scanner) {
                self.leads.truncate(next);
                *known = next.min(*known);
                if next == LEADS_MAX {
                    return None;
                }
                self.leads.push(Lead::scan(&mut scanner)?);
                next += 1;
            }
            let lead = self.leads.get(next - 1)?;
            match lead.kind {
                Kind::PartitionKey => keys.partition_key = Some(scanner.plain_text()?),
                Kind::RowKey => keys.row_key = Some(scanner.plain_text()?),
                Kind::Ignored => scanner.skip()?,
                Kind::Property(edm_type) => {
                    let length = lead.write(edm_type, start, &mut scanner, &mut copy, out)?;
                    if length > 0 {
                        ended(lead.name, length);
                        properties += 1;
                    }
                }
            }
            is_last = scanner.is_last(b'}')?;
        }
        scanner.end()?;
        copy.finish(out);
        (properties <= PROPERTIES_MAX).then_some(keys)
    }

    /// Takes the lead that comes next, if the entity before had it here, or a little later.
    #[inline]
    fn is_expected(&self, next: &mut usize, scanner: &mut Scanner<'a>) -> bool {
        let leads = self.leads.get(*next..).unwrap_or_default().iter();
        for (absent, lead) in leads.take(1 + ABSENT_MAX).enumerate() {
            if scanner.take_text(lead.text) {
                scanner.space();
                *next += absent + 1;
                return true;
            }
        }
        false
    }
}

/// Bytes of a body that are copied. Those beside each other are copied together.
struct Copy<'a> {
    body: &'a [u8],
    /// Not copied yet.
    range: Range<usize>,
}

impl<'a> Copy<'a> {
    const fn of(body: &'a [u8]) -> Self {
        Self { body, range: 0..0 }
    }

    /// Copies a range, soon.
    #[inline]
    fn add(&mut self, range: Range<usize>, out: &mut Vec<u8>) {
        if self.range.end == range.start {
            self.range.end = range.end;
        } else {
            self.finish(out);
            self.range = range;
        }
    }

    /// Copies what is not copied yet.
    fn finish(&mut self, out: &mut Vec<u8>) {
        let range = mem::take(&mut self.range);
        out.extend_from_slice(self.body.get(range).unwrap_or_default());
    }
}

impl<'a> Lead<'a> {
    /// Reads one that is not known.
    fn scan(scanner: &mut Scanner<'a>) -> Option<Self> {
        let start = scanner.at();
        let (mut named, mut name) = (start, scanner.name()?);
        let mut edm_type = None;
        if let Some(property) = name.strip_suffix(TYPE_SUFFIX) {
            edm_type = Some(scanner.plain_text()?.parse().ok()?);
            if scanner.is_last(b'}')? {
                return None;
            }
            scanner.space();
            named = scanner.at();
            name = scanner.name()?;
            if name != property {
                return None;
            }
        }
        let kind = match name {
            "PartitionKey" | "RowKey" if !matches!(edm_type, None | Some(EdmType::String)) => {
                return None;
            }
            "PartitionKey" => Kind::PartitionKey,
            "RowKey" => Kind::RowKey,
            "Timestamp" => Kind::Ignored,
            _ if name.starts_with("odata.") => Kind::Ignored,
            _ => {
                check_property_name(name).ok()?;
                Kind::Property(edm_type)
            }
        };
        // White space only makes it longer.
        let name_bytes = name.len() + "\"\":".len();
        let (kept, bytes) = match edm_type.filter(|edm_type| is_annotated(*edm_type)) {
            Some(edm_type) => {
                let type_bytes = TYPE_SUFFIX.len() + "\"\",".len() + edm_type.as_str().len();
                (start, 2 * name_bytes + type_bytes)
            }
            None => (named, name_bytes),
        };
        Some(Self {
            text: scanner.since(start)?,
            name,
            kind,
            kept: (scanner.at() - kept == bytes).then_some(kept - start),
        })
    }

    /// Writes the property whose lead starts there, and whose value comes next. Returns its length,
    /// which is 0 for null.
    #[inline]
    fn write(
        &self,
        edm_type: Option<EdmType>,
        start: usize,
        scanner: &mut Scanner<'a>,
        copy: &mut Copy<'a>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let value = scanner.at();
        let scalar = scanner.scalar()?;
        if scalar == Scalar::Null {
            return Some(0);
        }
        let is_kept = is_kept(edm_type, &scalar);
        // With the comma in front of it.
        let kept = self.kept.and_then(|kept| (start + kept).checked_sub(1));
        if let Some(kept) = kept.filter(|kept| is_kept && copy.body.get(*kept) == Some(&b',')) {
            copy.add(kept..scanner.at(), out);
            return Some(scanner.at() - kept);
        }
        copy.finish(out);
        let before = out.len();
        if is_kept {
            let annotated = edm_type.filter(|edm_type| is_annotated(*edm_type));
            write_stored_name(out, self.name, annotated);
            out.extend_from_slice(copy.body.get(value..scanner.at())?);
        } else {
            let value = scalar.into_value_ref(edm_type).ok()?;
            if value.is_too_large() {
                return None;
            }
            write_stored_property(out, self.name, &value);
        }
        Some(out.len() - before)
    }
}

/// Returns true if the value is valid, and in JSON as a server keeps it.
#[inline]
fn is_kept(edm_type: Option<EdmType>, scalar: &Scalar<'_>) -> bool {
    match (scalar, edm_type) {
        // Without escapes. A text has no more UTF-16 units than bytes.
        (Scalar::Text(Cow::Borrowed(text)), None | Some(EdmType::String)) => {
            text.len() <= STRING_UNITS_MAX
        }
        (Scalar::Boolean(_), None | Some(EdmType::Boolean)) => true,
        (Scalar::Number(number), None) => is_printed::int32(number) || is_printed::double(number),
        (Scalar::Number(number), Some(EdmType::Int32)) => is_printed::int32(number),
        (Scalar::Number(number), Some(EdmType::Double)) => is_printed::double(number),
        (Scalar::Text(text), Some(EdmType::Int64)) => is_printed::int64(text),
        (Scalar::Text(text), Some(EdmType::DateTime)) => is_printed::date_time(text),
        (Scalar::Text(text), Some(EdmType::Guid)) => is_printed::guid(text),
        _ => false,
    }
}

/// Few entities have more members, and an annotation counts as one.
const LEADS_MAX: usize = 512;

/// How many properties of the entity before may be missing in a row.
const ABSENT_MAX: usize = 3;
