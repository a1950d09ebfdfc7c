//! Cuts CSV into rows and checks their quotes, since the parser of the cells accepts any. It does
//! not know what a cell is for.

use std::io::BufRead;

use super::MAX_LINE_BYTES;
use super::error::{Place, RecordError, RecordProblem};

/// Finds one row after the other.
#[derive(Debug)]
pub(super) struct CsvText<R> {
    from: R,
    delimiter: u8,
    /// The number of rows before the next one, with the blank ones: spreadsheets count them.
    number: u64,
    /// The last row ended with CR: an LF after it belongs to the same end.
    after_return: bool,
}

/// The part of a row before a byte.
#[derive(Clone, Copy, PartialEq)]
enum At {
    CellStart,
    Plain,
    Quoted,
    /// A quote in a quoted cell: its end, or the first one of two.
    Quote,
    RowEnd,
}

impl<R: BufRead> CsvText<R> {
    /// Reads rows after this number of them.
    pub(super) const fn new(from: R, number: u64, delimiter: u8) -> Self {
        Self {
            from,
            delimiter,
            number,
            after_return: false,
        }
    }

    /// Puts the next row that is not blank in place of what is in `row`, and ends it with LF.
    /// Returns its number.
    pub(super) fn next(&mut self, row: &mut Vec<u8>) -> Result<Option<u64>, RecordError> {
        loop {
            row.clear();
            let place = Place::Row(self.number + 1);
            let found = self.read(row);
            if !found.map_err(|problem| RecordError::new(place, problem))? {
                return Ok(None);
            }
            self.number += 1;
            if !row.is_empty() {
                row.push(b'\n');
                return Ok(Some(self.number));
            }
        }
    }

    /// Reads a row without its end. Returns whether there is one.
    fn read(&mut self, row: &mut Vec<u8>) -> Result<bool, RecordProblem> {
        let mut at = At::CellStart;
        loop {
            let bytes = self.from.fill_buf().map_err(RecordProblem::Read)?;
            if bytes.is_empty() {
                return match at {
                    At::Quoted => Err(RecordProblem::OpenQuote),
                    _ => Ok(!row.is_empty()),
                };
            }
            if std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n') {
                self.from.consume(1);
                continue;
            }
            let mut length = 0;
            for byte in bytes {
                at = at.after(*byte, self.delimiter)?;
                if at == At::RowEnd {
                    self.after_return = *byte == b'\r';
                    break;
                }
                length += 1;
            }
            if row.len() + length > MAX_LINE_BYTES {
                return Err(RecordProblem::TooLong);
            }
            row.extend_from_slice(bytes.get(..length).unwrap_or_default());
            self.from.consume(length + usize::from(at == At::RowEnd));
            if at == At::RowEnd {
                return Ok(true);
            }
        }
    }
}

impl At {
    const fn after(self, byte: u8, delimiter: u8) -> Result<Self, RecordProblem> {
        Ok(match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::Quoted, _) | (Self::Quote | Self::CellStart, b'"') => Self::Quoted,
            (_, b'\r' | b'\n') => Self::RowEnd,
            (_, byte) if byte == delimiter => Self::CellStart,
            (Self::Quote, _) => return Err(RecordProblem::AfterQuote),
            _ => Self::Plain,
        })
    }
}
