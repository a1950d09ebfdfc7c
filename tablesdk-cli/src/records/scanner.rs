//! Finds the values of JSON in a file, one at a time, with a bounded memory. It knows nothing of
//! what they mean, and checks no more of their grammar than is needed to find their ends: a value
//! that is kept is checked by its reader.

use std::io::BufRead;

use super::MAX_LINE_BYTES;
use super::error::RecordProblem;
use super::text_lines::BYTE_ORDER_MARK;

#[derive(Debug)]
pub(super) struct Scanner<R> {
    from: R,
}

impl<R: BufRead> Scanner<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from }
    }

    /// The next byte that is not blank. It is not taken.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, RecordProblem> {
        loop {
            let bytes = self.from.fill_buf().map_err(RecordProblem::Read)?;
            let Some(first) = bytes.first() else {
                return Ok(None);
            };
            let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
            if blank == 0 {
                return Ok(Some(*first));
            }
            self.from.consume(blank);
        }
    }

    /// The same within a value.
    pub(super) fn expect(&mut self) -> Result<u8, RecordProblem> {
        self.peek()?.ok_or(RecordProblem::Ended)
    }

    /// Takes the byte that was peeked.
    pub(super) fn take(&mut self) {
        self.from.consume(1);
    }

    /// Takes this byte, after blanks.
    pub(super) fn take_only(
        &mut self,
        byte: u8,
        expected: &'static str,
    ) -> Result<(), RecordProblem> {
        match self.expect()? {
            found if found == byte => {
                self.take();
                Ok(())
            }
            found => Err(RecordProblem::Expected { expected, found }),
        }
    }

    /// Passes over byte order marks between values.
    pub(super) fn skip_marks(&mut self) -> Result<(), RecordProblem> {
        while self.peek()? == BYTE_ORDER_MARK.first().copied() {
            for byte in BYTE_ORDER_MARK {
                self.take_only(*byte, "a byte order mark")?;
            }
        }
        Ok(())
    }

    /// Appends the next value to what is kept.
    pub(super) fn keep(&mut self, kept: &mut Vec<u8>) -> Result<(), RecordProblem> {
        self.pass(|bytes| {
            if kept.len() + bytes.len() > MAX_LINE_BYTES {
                return Err(RecordProblem::TooLong);
            }
            kept.extend_from_slice(bytes);
            Ok(())
        })
    }

    /// Passes over the next value, whatever its length is.
    pub(super) fn skip(&mut self) -> Result<(), RecordProblem> {
        self.pass(|_| Ok(()))
    }

    fn pass(
        &mut self,
        mut part: impl FnMut(&[u8]) -> Result<(), RecordProblem>,
    ) -> Result<(), RecordProblem> {
        let mut extent = Extent::of(self.expect()?)?;
        loop {
            let bytes = self.from.fill_buf().map_err(RecordProblem::Read)?;
            if bytes.is_empty() {
                // A number has no other end.
                return extent.is_scalar().then_some(()).ok_or(RecordProblem::Ended);
            }
            let end = extent.end_in(bytes);
            let length = end.unwrap_or(bytes.len());
            part(bytes.get(..length).unwrap_or_default())?;
            self.from.consume(length);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// How far a value goes.
#[derive(Debug)]
enum Extent {
    /// A number, or a word.
    Scalar,
    /// Anything that begins with a bracket or a quote.
    Quoted {
        /// The number of brackets that are open.
        depth: u64,
        string: InString,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum InString {
    No,
    Yes,
    /// After a backslash.
    Escaped,
}

impl Extent {
    const fn of(first: u8) -> Result<Self, RecordProblem> {
        match first {
            b'{' | b'[' | b'"' => Ok(Self::Quoted {
                depth: 0,
                string: InString::No,
            }),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => Ok(Self::Scalar),
            found => Err(RecordProblem::Expected {
                expected: "a value",
                found,
            }),
        }
    }

    const fn is_scalar(&self) -> bool {
        matches!(self, Self::Scalar)
    }

    /// How many of the bytes belong to the value, if it ends in them.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Scalar => bytes
                .iter()
                .position(|byte| is_blank(*byte) || matches!(byte, b',' | b']' | b'}' | b':')),
            Self::Quoted { depth, string } => {
                let last = bytes.iter().position(|byte| closes(*byte, depth, string));
                last.map(|last| last + 1)
            }
        }
    }
}

/// Returns true if this byte is the last one of a value.
fn closes(byte: u8, depth: &mut u64, string: &mut InString) -> bool {
    match (*string, byte) {
        (InString::Yes, b'\\') => *string = InString::Escaped,
        (InString::Yes, b'"') => {
            *string = InString::No;
            return *depth == 0;
        }
        (InString::Escaped, _) | (InString::No, b'"') => *string = InString::Yes,
        (InString::No, b'{' | b'[') => *depth += 1,
        (InString::No, b'}' | b']') => {
            *depth = depth.saturating_sub(1);
            return *depth == 0;
        }
        _ => {}
    }
    false
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
