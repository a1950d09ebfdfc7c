//! A cursor over a string, for the small fixed grammars of this crate. Never slices inside a
//! character.

use std::str::FromStr;

use memchr::memchr;

/// Reads a whole number that is written in digits alone, without the sign that the standard library
/// would take.
pub(crate) fn whole_number<N: FromStr>(text: &str) -> Option<N> {
    is_digits(text).then(|| text.parse().ok()).flatten()
}

/// Returns true if a string consists of one or more digits.
pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The parts before and after the first of an ASCII character, as `split_once`: faster in the short
/// strings of a URL.
pub(crate) fn split_at_byte(text: &str, byte: u8) -> Option<(&str, &str)> {
    let (before, rest) = text.split_at_checked(memchr(byte, text.as_bytes())?)?;
    Some((before, rest.get(1..)?))
}

/// The unread rest of a string.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads that literal, if it comes next.
    pub(crate) fn literal(&mut self, literal: &str) -> bool {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads exactly that many ASCII digits, at most nine.
    pub(crate) fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let mut number = 0_u32;
        for byte in digits.bytes() {
            let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
            number = number.checked_mul(10)?.checked_add(digit.into())?;
        }
        self.rest = rest;
        Some(number)
    }

    /// Reads ASCII bytes for as long as they satisfy the predicate.
    pub(crate) fn take_while(&mut self, predicate: impl Fn(u8) -> bool) -> &'a str {
        let end = self
            .rest
            .bytes()
            .position(|byte| !(byte.is_ascii() && predicate(byte)));
        let (taken, rest) = self
            .rest
            .split_at_checked(end.unwrap_or(self.rest.len()))
            .unwrap_or(("", self.rest));
        self.rest = rest;
        taken
    }

    /// Reads a literal in single quotes, inside which a doubled quote stands for one.
    pub(crate) fn quoted(&mut self) -> Option<String> {
        let rest = self.rest.strip_prefix('\'')?;
        let (before, mut rest) = split_at_byte(rest, b'\'')?;
        let mut text = before.to_owned();
        loop {
            let Some(doubled) = rest.strip_prefix('\'') else {
                self.rest = rest;
                return Some(text);
            };
            let (before, after) = split_at_byte(doubled, b'\'')?;
            text.push('\'');
            text.push_str(before);
            rest = after;
        }
    }
}
