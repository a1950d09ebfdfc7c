//! A key template: strings and parts between them, and the keys that it reads. This file knows what
//! the derive accepts, and not how a template is found.

use tablesdk::key::{Desc, Escaped, KeyPart as _};
use tablesdk::{Guid, Timestamp};

/// How all keys of a kind are made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Part(Form),
}

/// The type of a part, and how a key contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{path:escaped}`
    Escaped,
    /// A day, such as `2024-03-15`.
    Day,
    Guid,
    /// An instant, such as `2024-03-15T10:20:30.1234567Z`.
    Instant,
    /// `{id:06}`
    Number(usize),
    Text,
    /// `{at:desc}` of an instant: 19 digits that count from the end of the year 9999.
    Ticks,
}

impl Form {
    /// The number of characters, all of them ASCII, if it is the same for all values.
    pub(super) const fn width(self) -> Option<usize> {
        match self {
            Self::Escaped | Self::Text => None,
            Self::Day => Some(10),
            Self::Guid => Some(36),
            Self::Instant => Some(28),
            Self::Number(digits) => Some(digits),
            Self::Ticks => Some(19),
        }
    }

    /// Returns true if a field of this form reads the text.
    pub(super) fn reads(self, text: &str) -> bool {
        match self {
            Self::Escaped => Escaped::<String>::from_key(text).is_ok(),
            Self::Day => {
                let midnight = format!("{text}T00:00:00.0000000Z");
                Timestamp::from_key(&midnight).is_ok()
            }
            Self::Guid => Guid::from_key(text).is_ok(),
            Self::Instant => Timestamp::from_key(text).is_ok(),
            Self::Number(digits) => {
                let is_padded = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
                is_padded && digits <= DIGITS_MAX && text.parse::<u64>().is_ok()
            }
            Self::Text => true,
            Self::Ticks => Desc::<Timestamp>::from_key(text).is_ok(),
        }
    }

    /// The type of the field.
    pub(super) const fn rust(self) -> &'static str {
        match self {
            Self::Escaped | Self::Text => "String",
            Self::Day => "time::Date",
            Self::Guid => "Guid",
            Self::Instant | Self::Ticks => "Timestamp",
            // All numbers of 9 digits are a u32.
            Self::Number(0..=9) => "u32",
            Self::Number(_) => "u64",
        }
    }

    /// The text behind the name of the field in a template.
    pub(super) fn suffix(self) -> String {
        match self {
            Self::Escaped => ":escaped".to_owned(),
            Self::Number(digits) => format!(":0{digits}"),
            Self::Ticks => ":desc".to_owned(),
            Self::Day | Self::Guid | Self::Instant | Self::Text => String::new(),
        }
    }
}

impl Template {
    /// One text.
    pub(super) fn of_literal(text: &str) -> Self {
        let mut template = Self { pieces: Vec::new() };
        template.push_literal(text);
        template
    }

    /// Returns true if the derive accepts the template: the service forbids some characters in
    /// keys, though not all emulators do.
    pub(super) fn is_allowed(&self) -> bool {
        let forbidden = |c: char| matches!(c, '/' | '\\' | '#' | '?') || c.is_control();
        let mut pieces = self.pieces.iter();
        pieces.all(|piece| !matches!(piece, Piece::Literal(text) if text.contains(forbidden)))
    }

    /// The texts of the parts of a key, if the template reads it. A part of variable width ends at
    /// the first separator.
    pub(super) fn read<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let mut rest = key;
        let mut parts = Vec::new();
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            let form = match piece {
                Piece::Literal(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                Piece::Part(form) => *form,
            };
            let end = match (form.width(), pieces.peek()) {
                (Some(width), _) => width,
                (None, Some(Piece::Literal(separator))) => rest.find(separator.as_str())?,
                (None, _) => rest.len(),
            };
            let (text, after) = rest.split_at_checked(end)?;
            if !form.reads(text) {
                return None;
            }
            parts.push(text);
            rest = after;
        }
        rest.is_empty().then_some(parts)
    }

    /// The text that every key begins with.
    pub(super) fn prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// Adds a literal, as one with a literal before it.
    pub(super) fn push_literal(&mut self, text: &str) {
        if let Some(Piece::Literal(before)) = self.pieces.last_mut() {
            before.push_str(text);
        } else if !text.is_empty() {
            self.pieces.push(Piece::Literal(text.to_owned()));
        }
    }
}

/// The digits of the greatest number, and the most that a template may state.
const DIGITS_MAX: usize = 20;
