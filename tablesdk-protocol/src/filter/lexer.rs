//! Splits the string of a filter into tokens, one at a time; literals become values.
//!
//! Knows words, quotes and numbers, but not which token may follow which. What is no token is
//! passed on as [`TokenKind::Unknown`], since only the parser can tell what should stand in its
//! place.

use super::{ComparisonOperator, FilterSyntax, ParseFilterError};
use crate::types::{Value, continues_property_name, starts_property_name};

/// A token and the bytes of the string that it was read from.
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) enum TokenKind<'a> {
    And,
    Close,
    Comparison(ComparisonOperator),
    End,
    Literal(Value),
    Not,
    Null,
    Open,
    Or,
    /// A character that begins no token.
    Unknown,
    /// Any other identifier: a property, or a function or operator that is not implemented.
    Word(&'a str),
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    syntax: FilterSyntax,
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str, syntax: FilterSyntax) -> Self {
        Self {
            text,
            syntax,
            offset: 0,
        }
    }

    /// Reads the next token; at the end of the string, always [`TokenKind::End`].
    pub(super) fn token(&mut self) -> Result<Token<'a>, ParseFilterError> {
        self.take_while(char::is_whitespace);
        let start = self.offset;
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('(') => self.single('(', TokenKind::Open),
            Some(')') => self.single(')', TokenKind::Close),
            Some('\'') => TokenKind::Literal(Value::String(self.quoted()?)),
            Some('-' | '.' | '0'..='9') => TokenKind::Literal(self.number()?),
            Some(c) if starts_property_name(c) => self.word()?,
            Some(c) => self.single(c, TokenKind::Unknown),
        };
        if !matches!(
            kind,
            TokenKind::Open | TokenKind::Close | TokenKind::Unknown
        ) {
            self.require_boundary()?;
        }
        Ok(Token {
            kind,
            start,
            end: self.offset,
        })
    }

    /// The text from an offset on.
    pub(super) fn from(&self, offset: usize) -> &'a str {
        self.text.get(offset..).unwrap_or_default()
    }

    fn single(&mut self, c: char, kind: TokenKind<'a>) -> TokenKind<'a> {
        self.offset += c.len_utf8();
        kind
    }

    /// Blanks are optional around parentheses only.
    fn require_boundary(&self) -> Result<(), ParseFilterError> {
        match self.peek() {
            None | Some('(' | ')') => Ok(()),
            Some(c) if c.is_whitespace() => Ok(()),
            Some('/') => Err(ParseFilterError::unsupported(
                self.offset,
                "a path of properties",
            )),
            Some(_) => Err(ParseFilterError::unexpected(
                self.offset,
                self.offset,
                self.rest(),
                "a blank or a parenthesis",
            )),
        }
    }

    fn word(&mut self) -> Result<TokenKind<'a>, ParseFilterError> {
        let start = self.offset;
        let word = self.take_while(continues_property_name);
        if self.peek() == Some('\'')
            && let Some(literal) = PrefixedLiteral::named(word)
        {
            let content = self.quoted()?;
            return match (literal.read)(&content) {
                Some(value) => Ok(TokenKind::Literal(value)),
                None => Err(self.literal_error(start, literal.what, literal.type_name)),
            };
        }
        Ok(match word {
            "and" => TokenKind::And,
            "not" => TokenKind::Not,
            "null" => TokenKind::Null,
            "or" => TokenKind::Or,
            "INF" => TokenKind::Literal(Value::Double(f64::INFINITY)),
            "NaN" => TokenKind::Literal(Value::Double(f64::NAN)),
            // SERVICE: filters written by hand contain the `True` of Python or C#.
            _ if word.eq_ignore_ascii_case("false") => TokenKind::Literal(Value::Boolean(false)),
            _ if word.eq_ignore_ascii_case("true") => TokenKind::Literal(Value::Boolean(true)),
            _ => match ComparisonOperator::from_word(word) {
                Some(operator) => TokenKind::Comparison(operator),
                None => TokenKind::Word(word),
            },
        })
    }

    fn number(&mut self) -> Result<Value, ParseFilterError> {
        let start = self.offset;
        let negative = self.accept("-");
        if negative && self.accept("INF") {
            return Ok(Value::Double(f64::NEG_INFINITY));
        }
        let whole = self.digits();
        let point = self.accept(".");
        let fraction = self.digits();
        if whole + fraction == 0 {
            return Err(self.expected("a digit"));
        }
        let exponent = self.accept("e") || self.accept("E");
        if exponent {
            let _sign = self.accept("+") || self.accept("-");
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let number = self.text.get(start..self.offset).unwrap_or_default();
        let suffixed = ["d", "D", "f", "F"].iter().any(|c| self.accept(c));
        if suffixed || point || exponent {
            // Too large a number reads as infinite.
            return match number.parse::<f64>() {
                Ok(double) if double.is_finite() => Ok(Value::Double(double)),
                _ => Err(self.literal_error(start, "a finite double", "Edm.Double")),
            };
        }
        let long = self.accept("L") || self.accept("l");
        if !long && let Ok(integer) = number.parse() {
            return Ok(Value::Int32(integer));
        }
        match number.parse() {
            Ok(integer) if long || !self.syntax.requires_suffix() => Ok(Value::Int64(integer)),
            Ok(_) => {
                let what = "an integer of 32 bits, and larger ones have the suffix `L`";
                Err(self.literal_error(start, what, "Edm.Int32"))
            }
            Err(_) => {
                let type_name = if long { "Edm.Int64" } else { "Edm.Int32" };
                Err(self.literal_error(start, "an integer of 64 bits", type_name))
            }
        }
    }

    /// Reads a literal in quotes, inside which a doubled quote stands for one.
    fn quoted(&mut self) -> Result<String, ParseFilterError> {
        let mut content = String::new();
        self.accept("'");
        loop {
            content.push_str(self.take_while(|c| c != '\''));
            if self.accept("''") {
                content.push('\'');
            } else if self.accept("'") {
                return Ok(content);
            } else {
                return Err(self.expected("a closing quote"));
            }
        }
    }

    const fn literal_error(
        &self,
        start: usize,
        what: &'static str,
        type_name: &'static str,
    ) -> ParseFilterError {
        ParseFilterError::literal(start, self.offset, what, type_name)
    }

    const fn expected(&self, expected: &'static str) -> ParseFilterError {
        ParseFilterError::syntax(self.offset, expected)
    }

    fn digits(&mut self) -> usize {
        self.take_while(|c| c.is_ascii_digit()).len()
    }

    fn take_while(&mut self, predicate: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !predicate(c)).unwrap_or(rest.len());
        self.offset += end;
        rest.get(..end).unwrap_or_default()
    }

    fn accept(&mut self, expected: &str) -> bool {
        let accepted = self.rest().starts_with(expected);
        if accepted {
            self.offset += expected.len();
        }
        accepted
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.from(self.offset)
    }
}

/// A literal that a word in front of its quotes gives its type.
struct PrefixedLiteral {
    read: fn(&str) -> Option<Value>,
    what: &'static str,
    type_name: &'static str,
}

impl PrefixedLiteral {
    fn named(prefix: &str) -> Option<Self> {
        Some(match prefix {
            "X" | "x" | "binary" => Self {
                read: |content| read_hexadecimal(content).map(Value::Binary),
                what: "pairs of hexadecimal digits",
                type_name: "Edm.Binary",
            },
            "datetime" => Self {
                read: |content| content.parse().ok().map(Value::DateTime),
                what: "a date and time from 1601 to 9999",
                type_name: "Edm.DateTime",
            },
            "guid" => Self {
                read: |content| content.parse().ok().map(Value::Guid),
                what: "a GUID",
                type_name: "Edm.Guid",
            },
            _ => return None,
        })
    }
}

fn read_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::types::{Guid, Timestamp};

    #[test]
    fn reads_every_literal_on_either_side() {
        let guid: Guid = "c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap();
        let at: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        for (literal, value, printed) in [
            ("''", Value::from(""), "''"),
            ("'O''Brien'", "O'Brien".into(), "'O''Brien'"),
            ("'a) or (é'", "a) or (é".into(), "'a) or (é'"),
            ("5", 5.into(), "5"),
            ("-05", (-5).into(), "-5"),
            ("-2147483648", i32::MIN.into(), "-2147483648"),
            ("2147483648", 2_147_483_648_i64.into(), "2147483648L"),
            ("5L", 5_i64.into(), "5L"),
            (
                "-9223372036854775808l",
                i64::MIN.into(),
                "-9223372036854775808L",
            ),
            ("5.", 5.0.into(), "5.0"),
            (".5", 0.5.into(), "0.5"),
            ("-.5e-1", (-0.05).into(), "-0.05"),
            ("1.e+2", 100.0.into(), "100.0"),
            ("1E20", 1e20.into(), "1e20"),
            ("5d", 5.0.into(), "5.0"),
            ("5D", 5.0.into(), "5.0"),
            ("0.1f", 0.1.into(), "0.1"),
            ("1e1F", 10.0.into(), "10.0"),
            ("INF", f64::INFINITY.into(), "INF"),
            ("-INF", f64::NEG_INFINITY.into(), "-INF"),
            ("True", true.into(), "true"),
            ("FALSE", false.into(), "false"),
            (
                "datetime'2020-01-01T00:00:00.0000000Z'",
                at.into(),
                "datetime'2020-01-01T00:00:00Z'",
            ),
            (
                "guid'C9DA6455-213D-42C9-9A79-3E9149A57833'",
                guid.into(),
                "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
            ),
            ("binary'62696E'", b"bin".to_vec().into(), "X'62696e'"),
            ("X''", Vec::new().into(), "X''"),
            ("x'0102'", vec![1, 2].into(), "X'0102'"),
        ] {
            let filter = Filter::comparison("a", ComparisonOperator::Equal, value);
            let printed = format!("a eq {printed}");
            assert_eq!(filter.to_string(), printed);
            for text in [
                &format!("a eq {literal}"),
                &format!("{literal} eq a"),
                &printed,
            ] {
                assert_eq!(text.parse().as_ref(), Ok(&filter), "{text}");
            }
        }
    }
}
