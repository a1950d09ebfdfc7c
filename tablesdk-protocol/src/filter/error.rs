//! Why a string is not a filter: for the people who wrote it, and as the service says it.

use std::fmt;

use crate::types::limits::FILTER_BYTES_MAX;
use crate::types::{ErrorCode, continues_property_name};

/// The reason why a string is not a [`Filter`](super::Filter), and the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseFilterError {
    offset: usize,
    kind: ParseFilterErrorKind,
}

impl ParseFilterError {
    /// The position in the string, in bytes: for a [`Syntax`](ParseFilterErrorKind::Syntax) error
    /// the end of the unexpected token, or where a blank is missing; for a string that is [too
    /// long](ParseFilterErrorKind::TooLong) the limit; for every other the start of what is
    /// refused.
    // SERVICE: "Syntax error at position 7 in 'aaa bbb ccc'.", directly after the word that should
    // have been an operator.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The kind of the error.
    pub const fn kind(&self) -> ParseFilterErrorKind {
        self.kind
    }

    /// Returns true if the service would respond with `NotImplemented` instead of `InvalidInput`.
    pub const fn is_unsupported(&self) -> bool {
        matches!(self.kind, ParseFilterErrorKind::Unsupported { .. })
    }

    /// The message of the service for this string.
    ///
    /// ```
    /// use tablesdk_protocol::filter::{Filter, FilterSyntax};
    ///
    /// let text = "at gt 1498179600055";
    /// let error = Filter::read(text, FilterSyntax::Service).unwrap_err();
    /// let message = "Unrecognized 'Edm.Int32' literal '1498179600055' at '6' in 'at gt 1498179600055'.";
    /// assert_eq!(error.service_message(text), message);
    /// ```
    pub fn service_message(&self, text: &str) -> String {
        let Self { offset, kind } = self;
        // SERVICE: that it counts as .NET does is assumed.
        let at = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            before.encode_utf16().count()
        };
        let (left, right, operator) = match *kind {
            ParseFilterErrorKind::Character { character } => {
                return invalid_character(character, at(*offset), text);
            }
            ParseFilterErrorKind::Literal {
                type_name, length, ..
            } => {
                let end = offset.saturating_add(length);
                let literal = text.get(*offset..end).unwrap_or_default();
                // It is in the text, too.
                let literal: String = literal.chars().take(LITERAL_LENGTH_MAX).collect();
                let at = at(*offset);
                // SERVICE: reports quote the beginning; the rest is how the library of the service
                // for OData writes it.
                return format!(
                    "Unrecognized '{type_name}' literal '{literal}' at '{at}' in '{text}'."
                );
            }
            // `=` belongs to the language, though to no filter.
            ParseFilterErrorKind::Symbol { symbol, .. } if !symbol.starts_with('=') => {
                let character = symbol.chars().next().unwrap_or_default();
                return invalid_character(character, at(*offset), text);
            }
            ParseFilterErrorKind::Symbol { .. } => {
                return syntax_error(at(*offset).saturating_add(1), text);
            }
            ParseFilterErrorKind::Syntax { .. } => return syntax_error(at(*offset), text),
            ParseFilterErrorKind::TooLong => return format!("The filter is {kind}."),
            ParseFilterErrorKind::Unsupported { .. } => {
                return ErrorCode::NotImplemented.message().to_owned();
            }
            ParseFilterErrorKind::Condition { type_name, operand } => match operand {
                // SERVICE: the other side is said to be a Boolean, although it may be a key, too,
                // or have an error of its own.
                Operand::Left(operator) => (type_name, BOOLEAN, operator),
                Operand::Right(operator) => (BOOLEAN, type_name, operator),
                Operand::Negated => {
                    return format!(
                        "A unary operator with an incompatible type was detected. Found operand type '{type_name}' for operator kind \
                         'Not'."
                    );
                }
                Operand::Whole => {
                    return "The $filter expression must evaluate to a single boolean value."
                        .to_owned();
                }
            },
        };
        format!(
            "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for operator kind \
             '{operator}'."
        )
    }

    pub(super) const fn too_long() -> Self {
        Self {
            offset: FILTER_BYTES_MAX,
            kind: ParseFilterErrorKind::TooLong,
        }
    }

    pub(super) const fn literal(
        offset: usize,
        end: usize,
        what: &'static str,
        type_name: &'static str,
    ) -> Self {
        Self {
            offset,
            kind: ParseFilterErrorKind::Literal {
                what,
                type_name,
                length: end.saturating_sub(offset),
            },
        }
    }

    pub(super) const fn condition(
        offset: usize,
        type_name: &'static str,
        operand: Operand,
    ) -> Self {
        Self {
            offset,
            kind: ParseFilterErrorKind::Condition { type_name, operand },
        }
    }

    pub(super) const fn syntax(offset: usize, expected: &'static str) -> Self {
        Self {
            offset,
            kind: ParseFilterErrorKind::Syntax { expected },
        }
    }

    /// As [`syntax`](Self::syntax), of the token from `start` to `end`, with which this text
    /// starts.
    pub(super) fn unexpected(start: usize, end: usize, text: &str, expected: &'static str) -> Self {
        let mut symbols = SYMBOLS.into_iter();
        if let Some((symbol, instead)) = symbols.find(|(symbol, _)| text.starts_with(symbol)) {
            return Self {
                offset: start,
                kind: ParseFilterErrorKind::Symbol { symbol, instead },
            };
        }
        match text.chars().next() {
            Some(character) if !is_of_the_language(character) => Self {
                offset: start,
                kind: ParseFilterErrorKind::Character { character },
            },
            _ => Self::syntax(end, expected),
        }
    }

    pub(super) const fn unsupported(offset: usize, what: &'static str) -> Self {
        Self {
            offset,
            kind: ParseFilterErrorKind::Unsupported { what },
        }
    }
}

impl fmt::Display for ParseFilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.kind {
            ParseFilterErrorKind::Unsupported { .. } => "unsupported filter",
            ParseFilterErrorKind::Condition { .. } => "type error",
            _ => "syntax error",
        };
        write!(f, "{problem} at position {}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for ParseFilterError {}

/// The error in the string of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFilterErrorKind {
    /// A character that is nowhere in the language, but in strings.
    #[error("the character {character:?} cannot stand there")]
    Character {
        /// The character.
        character: char,
    },
    /// A key or the `Timestamp`, which are no Booleans, without a comparison.
    #[error(
        "the property has the type {type_name}, and is no condition: compare it with a literal"
    )]
    Condition {
        /// Its type.
        type_name: &'static str,
        /// Where it stands.
        operand: Operand,
    },
    /// A literal with the right form and the wrong content, such as `guid'xyz'`.
    #[error("the literal is not {what}")]
    Literal {
        /// A description of a valid literal.
        what: &'static str,
        /// The type that it should have.
        type_name: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// A symbol of other languages, in whose place this one has a word or a sign of its own.
    #[error("OData has no `{symbol}`: write `{instead}`")]
    Symbol {
        /// The symbol.
        symbol: &'static str,
        /// The word or sign to write instead.
        instead: &'static str,
    },
    /// The string is not of the language.
    #[error("expected {expected}")]
    Syntax {
        /// A description of the expected part.
        expected: &'static str,
    },
    /// A string of more than [`FILTER_BYTES_MAX`] bytes.
    #[error("longer than {FILTER_BYTES_MAX} bytes")]
    TooLong,
    /// A part of the language that the service does not implement.
    #[error("{what}")]
    Unsupported {
        /// A description of that part.
        what: &'static str,
    },
}

/// Where something stands that is no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operand {
    /// On the left of `And` or `Or`.
    Left(&'static str),
    /// After `not`.
    Negated,
    /// On the right of `And` or `Or`.
    Right(&'static str),
    /// It is the filter.
    Whole,
}

fn invalid_character(character: char, offset: usize, text: &str) -> String {
    format!("Syntax error: character '{character}' is not valid at position {offset} in '{text}'.")
}

fn syntax_error(offset: usize, text: &str) -> String {
    format!("Syntax error at position {offset} in '{text}'.")
}

/// Returns true if a character begins or continues a token of OData. OData has more tokens than the
/// filters of the service.
fn is_of_the_language(character: char) -> bool {
    character.is_whitespace()
        || continues_property_name(character)
        || matches!(
            character,
            '\'' | '(' | ')' | ',' | '-' | '=' | '/' | '?' | '.' | '*' | ':' | '$'
        )
}

/// Symbols of other languages, the longer ones first, each with the word or sign to write instead.
const SYMBOLS: [(&str, &str); 12] = [
    ("==", "eq"),
    ("!=", "ne"),
    ("<>", "ne"),
    (">=", "ge"),
    ("<=", "le"),
    ("&&", "and"),
    ("||", "or"),
    ("=", "eq"),
    ("!", "not"),
    (">", "gt"),
    ("<", "lt"),
    ("\"", "'"),
];

const BOOLEAN: &str = "Edm.Boolean";
/// The longest literal that a message quotes, in characters.
const LITERAL_LENGTH_MAX: usize = 100;
