//! Records that are lines: those of an export, and entities without a table.

use std::io::{BufRead, Read};

use serde::de::IgnoredAny;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};
use tablesdk_protocol::wire::lines;

use super::entity::{Rules, entity_of, etag_of};
use super::error::{Place, RecordError, RecordProblem};
use super::{MAX_LINE_BYTES, Record};
use crate::lines::{Line, LineError};

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
    match Line::read_as(line, rules) {
        Ok((line, etag)) => Ok(Record::Line(line, etag)),
        Err(error @ LineError::Line(lines::LineError::TooLong)) => Err(RecordProblem::Line(error)),
        Err(error) => without_table(line, rules, error).map_err(RecordProblem::Line),
    }
}

/// Reads an entity that is a line by itself. `error` says why it is no line of an export, which has
/// no key.
fn without_table(line: &[u8], rules: Rules, error: LineError) -> Result<Record, LineError> {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(line) {
        return Err(lines::LineError::Json(error).into());
    }
    let json = read_entity(line).map_err(LineError::Entity)?;
    if !has_key(&json) {
        return Err(if is_of_export(&json) {
            error
        } else {
            LineError::NoKey("PartitionKey")
        });
    }
    Ok(Record::Entity {
        table: None,
        entity: entity_of(&json, rules)?,
        etag: etag_of(&json)?,
    })
}

/// Returns true if an object without a key is meant to be a line of an export.
fn is_of_export(json: &JsonEntity<'_>) -> bool {
    let members = ["format", "version", "table", "entity", "end"];
    json.members().is_empty() || members.iter().any(|name| json.property(name).is_some())
}

fn has_key(json: &JsonEntity<'_>) -> bool {
    let is_there = |name| json.property(name).is_some();
    is_there("PartitionKey") || is_there("RowKey")
}

/// Reads a line with its end, in place of what is in `line`. Returns whether the file has none. Of
/// a line that is too long, only so much is read that its length shows it.
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
