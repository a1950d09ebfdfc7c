//! Which form a file has, by its first line with a character.

use std::io::{BufRead, Cursor, Read as _};

use csv::ReaderBuilder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::error::{Place, RecordError, RecordProblem};
use super::text_lines::{BYTE_ORDER_MARK, read_line, trimmed};
use super::{MAX_LINE_BYTES, Rest};

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A record a line.
    Lines,
    /// JSON in which entities may have several lines, and lines several entities.
    Document,
    /// Rows whose cells are separated by this byte.
    Csv { delimiter: u8 },
}

/// A file of which the form is known.
pub(super) struct Opened<R> {
    pub(super) form: Form,
    /// The number of blank lines before what is left.
    pub(super) lines: u64,
    pub(super) rest: Rest<R>,
}

/// Reads the first line that is not blank. A file without one has no records.
pub(super) fn recognize<R: BufRead>(mut from: R) -> Result<Opened<R>, RecordError> {
    let mut lines = 0;
    let mut first = Vec::new();
    loop {
        let place = Place::Line(lines + 1);
        let problem = |problem| RecordError::new(place, problem);
        let is_end = read_line(&mut from, &mut first).map_err(problem)?;
        if first.starts_with(b"\xFE\xFF") || first.starts_with(b"\xFF\xFE") {
            return Err(problem(RecordProblem::Utf16));
        }
        if first.starts_with(BYTE_ORDER_MARK) {
            first.drain(..BYTE_ORDER_MARK.len());
        }
        if is_end || !trimmed(&first).is_empty() {
            let form = form(trimmed(&first)).ok_or_else(|| problem(RecordProblem::Form))?;
            let rest = Cursor::new(first).chain(from);
            return Ok(Opened { form, lines, rest });
        }
        lines += 1;
    }
}

fn form(line: &[u8]) -> Option<Form> {
    match line.first() {
        None => Some(Form::Lines),
        Some(b'{') if is_record(line) => Some(Form::Lines),
        Some(b'[' | b'{') => Some(Form::Document),
        Some(_) if !has(line, b"PartitionKey") && !has(line, b"RowKey") => None,
        Some(_) => {
            let delimiters = [b'\t', b';', b','].into_iter();
            let delimiters = delimiters.filter(|byte| line.contains(byte));
            let delimiter = delimiters.max_by_key(|delimiter| keys(line, *delimiter));
            delimiter.map(|delimiter| Form::Csv { delimiter })
        }
    }
}

/// How many columns of keys a line names, if this byte separates its cells: the name of another
/// column may contain the byte, too.
fn keys(line: &[u8], delimiter: u8) -> usize {
    let mut rows = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(line);
    let names = rows.byte_records().next().and_then(Result::ok);
    let names = names.unwrap_or_default();
    let is_key = |name: &&[u8]| matches!(*name, b"PartitionKey" | b"RowKey");
    names.iter().filter(is_key).count()
}

fn has(line: &[u8], name: &[u8]) -> bool {
    line.windows(name.len()).any(|part| part == name)
}

/// Returns true if a line is a record, or is meant to be one.
fn is_record(line: &[u8]) -> bool {
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let is_array = |member: Option<&RawValue>| member.is_some_and(|it| it.get().starts_with('['));
    let mut values = Deserializer::from_slice(line).into_iter::<Members<'_>>();
    match values.next() {
        Some(Ok(members)) if members.partition_key.is_some() || members.row_key.is_some() => true,
        Some(Ok(members)) => !is_array(members.value) && !is_array(members.collections),
        // The object goes on in the next line.
        Some(Err(error)) => !error.is_eof(),
        None => true,
    }
}

/// The members that tell an entity from an object that has entities. A property of an entity is no
/// array.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "PartitionKey")]
    partition_key: Option<IgnoredAny>,
    #[serde(rename = "RowKey")]
    row_key: Option<IgnoredAny>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    collections: Option<&'a RawValue>,
}
