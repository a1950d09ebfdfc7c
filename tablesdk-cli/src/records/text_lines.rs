//! Records that are lines: those of an export, and entities without a table.

use std::io::{BufRead, Read};

use serde::de::IgnoredAny;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};
use tablesdk_protocol::wire::lines;

use super::entity::{Rules, entity_of};
use super::error::{Place, RecordError, RecordProblem};
use super::{MAX_LINE_BYTES, Record};
use crate::lines::Line;

#[derive(Debug)]
pub(super) struct TextLines<R> {
    from: R,
    line: Vec<u8>,
    /// The number of lines that were read.
    number: u64,
    rules: Rules,
}

impl<R: BufRead> TextLines<R> {
    /// Reads lines after this number of them.
    pub(super) const fn new(from: R, number: u64, as_string: bool) -> Self {
        Self {
            from,
            line: Vec::new(),
            number,
            rules: Rules::of_service(as_string),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<(Place, Record)>, RecordError> {
        loop {
            let place = Place::Line(self.number + 1);
            let problem = |problem| RecordError::new(place, problem);
            if read_line(&mut self.from, &mut self.line).map_err(problem)? {
                return Ok(None);
            }
            self.number += 1;
            let line = trimmed(&self.line);
            if !line.is_empty() {
                return Ok(Some((place, read(line, self.rules).map_err(problem)?)));
            }
        }
    }
}

fn read(line: &[u8], rules: Rules) -> Result<Record, RecordProblem> {
    let error = match Line::read_as(line, rules) {
        Ok(line) => return Ok(Record::Line(line)),
        Err(error) => error,
    };
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(line) {
        return Err(RecordProblem::Line(lines::LineError::Json(error).into()));
    }
    // No line of an export has a key.
    match read_entity(line) {
        Ok(json) if has_key(&json) => match entity_of(&json, rules) {
            Ok(entity) => Ok(Record::Entity {
                table: None,
                entity,
                etag: json.etag().cloned(),
            }),
            Err(error) => Err(RecordProblem::Line(error)),
        },
        _ => Err(RecordProblem::Line(error)),
    }
}

fn has_key(json: &JsonEntity<'_>) -> bool {
    let is_there = |name| json.property(name).is_some();
    is_there("PartitionKey") || is_there("RowKey")
}

/// Reads a line with its end, in place of what is in `line`. Returns whether the file has none. Of a line that is too long, only so much is
/// read that its length shows it.
pub(super) fn read_line(
    from: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> Result<bool, RecordProblem> {
    line.clear();
    // One byte more than a line can have, with its end, so that a longer line is recognized.
    let max = MAX_LINE_BYTES as u64 + 2;
    let read = Read::take(from, max).read_until(b'\n', line);
    let read = read.map_err(RecordProblem::Read)?;
    Ok(read == 0)
}

/// A line without its end, the blanks around it, and a byte order mark.
pub(super) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    line.trim_ascii()
}

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
