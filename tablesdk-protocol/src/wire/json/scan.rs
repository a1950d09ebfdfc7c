//! Reads entities and pages as the service writes them, several times faster than a general reader
//! of JSON.
//!
//! A scanner accepts a part of what [`reader`](super::reader) accepts, and reads it as the same. It
//! gives up, with `None`, on all that is malformed, and on what hardly any response contains:
//! arrays and objects as values, names with escapes, an annotation that is not next to its
//! property. The reader then starts again and decides.

use std::borrow::Cow;

use super::entity::JsonEntity;
use super::object::{MEMBERS_MAX, TYPE_SUFFIX};
use super::value::Scalar;
use crate::types::ETag;

/// Reads the whole input as an entity.
pub(super) fn entity<'a>(text: &'a str, entity: &mut JsonEntity<'a>) -> Option<()> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.entity(entity)?;
    scanner.end()
}

/// Reads the whole input as a page, whose entities are read by a function one by one. An error of
/// the function ends it.
pub(super) fn page<'a, E>(
    text: &'a str,
    mut entity: impl FnMut(&mut Scanner<'a>) -> Option<Result<(), E>>,
) -> Option<Result<(), E>> {
    let mut scanner = Scanner::new(text);
    let mut found = false;
    scanner.space();
    scanner.byte(b'{')?;
    loop {
        scanner.space();
        let name = scanner.name()?;
        if name == "value" {
            if found {
                return None;
            }
            found = true;
            if let Err(error) = scanner.list(&mut entity)? {
                return Some(Err(error));
            }
        } else {
            scanner.skip()?;
        }
        if scanner.is_last(b'}')? {
            break;
        }
    }
    scanner.end()?;
    found.then_some(Ok(()))
}

/// A position in JSON. White space before it has been skipped where a value or a name is read.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn list<E>(
        &mut self,
        entity: &mut impl FnMut(&mut Self) -> Option<Result<(), E>>,
    ) -> Option<Result<(), E>> {
        self.byte(b'[')?;
        self.space();
        if self.take(b']') {
            return Some(Ok(()));
        }
        loop {
            self.space();
            if let Err(error) = entity(self)? {
                return Some(Err(error));
            }
            if self.is_last(b']')? {
                return Some(Ok(()));
            }
        }
    }

    /// Reads an entity as a list of members.
    pub(super) fn entity(&mut self, entity: &mut JsonEntity<'a>) -> Option<()> {
        entity.clear();
        self.byte(b'{')?;
        self.space();
        if self.take(b'}') {
            return Some(());
        }
        // Of the member that must come next.
        let mut early: Option<(&'a str, Cow<'a, str>)> = None;
        let mut count = 0;
        loop {
            self.space();
            let name = self.name()?;
            count += 1;
            if count > MEMBERS_MAX {
                return None;
            }
            if name == "odata.etag" {
                entity.etag = Some(self.etag()?);
            } else {
                let scalar = self.scalar()?;
                if let Some(property) = name.strip_suffix(TYPE_SUFFIX) {
                    let Scalar::Text(edm_type) = scalar else {
                        return None;
                    };
                    let last = entity.members.last_mut();
                    match last.filter(|last| last.name == property) {
                        Some(last) if last.annotation.is_none() => last.annotation = Some(edm_type),
                        None if early.is_none() => early = Some((property, edm_type)),
                        Some(_) | None => return None,
                    }
                } else if !name.starts_with("odata.") {
                    let annotation = match early.take() {
                        Some((property, edm_type)) if property == name => Some(edm_type),
                        Some(_) => return None,
                        None => None,
                    };
                    entity.push(Cow::Borrowed(name), scalar, annotation);
                }
            }
            if self.is_last(b'}')? {
                return early.is_none().then_some(());
            }
        }
    }

    /// The name of a member, with the colon and the space behind it.
    #[inline]
    pub(super) fn name(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let start = self.at;
        self.plain()?;
        let name = self.text.get(start..self.at)?;
        // Neither an escape nor a control character.
        self.byte(b'"')?;
        self.space();
        self.byte(b':')?;
        self.space();
        Some(name)
    }

    /// A string without escapes.
    pub(super) fn plain_text(&mut self) -> Option<&'a str> {
        match self.scalar()? {
            Scalar::Text(Cow::Borrowed(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn skip(&mut self) -> Option<()> {
        self.scalar().map(drop)
    }

    #[expect(clippy::inline_always, reason = "otherwise each value is copied")]
    #[inline(always)]
    pub(super) fn scalar(&mut self) -> Option<Scalar<'a>> {
        Some(match self.peek()? {
            b'"' => {
                self.at += 1;
                Scalar::Text(self.string()?)
            }
            b't' => self.literal("true", Scalar::Boolean(true))?,
            b'f' => self.literal("false", Scalar::Boolean(false))?,
            b'n' => self.literal("null", Scalar::Null)?,
            _ => Scalar::Number(self.number()?),
        })
    }

    fn literal(&mut self, literal: &str, scalar: Scalar<'a>) -> Option<Scalar<'a>> {
        let rest = self.text.as_bytes().get(self.at..)?;
        if !rest.starts_with(literal.as_bytes()) {
            return None;
        }
        self.at += literal.len();
        Some(scalar)
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    /// One or more digits.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// The ETag of an entity. Its quotes are escaped in JSON; where nothing else is, it is not
    /// unescaped by way of a string.
    pub(super) fn etag(&mut self) -> Option<ETag> {
        self.byte(b'"')?;
        let start = self.at;
        let rest = self.text.get(start..)?;
        if let Some(rest) = rest.strip_prefix(r#"W/\""#) {
            let end = plain_end(rest.as_bytes())?;
            if let Some((inner, r#"\"""#)) = rest.get(..end + 3)?.split_at_checked(end) {
                self.at += r#"W/\""#.len() + end + r#"\"""#.len();
                return Some(ETag::weak(inner));
            }
        }
        self.string().map(ETag::from_opaque)
    }

    /// A string behind its opening quote.
    #[expect(clippy::inline_always, reason = "otherwise each string is copied")]
    #[inline(always)]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        self.plain()?;
        if self.take(b'"') {
            return self.text.get(start..self.at - 1).map(Cow::Borrowed);
        }
        self.escaped(start)
    }

    /// The rest of a string that began there and has escapes.
    #[cold]
    fn escaped(&mut self, start: usize) -> Option<Cow<'a, str>> {
        while self.take(b'\\') {
            // What is escaped may be a quote.
            self.at += 1;
            self.plain()?;
        }
        self.byte(b'"')?;
        // The only place where escapes are read.
        let quoted = self.text.get(start - 1..self.at)?;
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    }

    /// Skips what a string contains as it is.
    #[inline]
    fn plain(&mut self) -> Option<()> {
        self.at += plain_end(self.text.as_bytes().get(self.at..)?)?;
        Some(())
    }

    /// Returns true if a list or an object ends here with that byte, and false if a comma and the
    /// next item follow.
    pub(super) fn is_last(&mut self, closing: u8) -> Option<bool> {
        self.space();
        if self.take(b',') {
            return Some(false);
        }
        self.byte(closing).map(|()| true)
    }

    pub(super) fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }

    pub(super) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn byte(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes the text, if it comes next.
    #[inline]
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..);
        let is_next = rest.is_some_and(|rest| rest.starts_with(text.as_bytes()));
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The text from that position on.
    pub(super) fn since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Where the first byte is that a string cannot contain as it is: a quote, a backslash or a control
/// character.
// Eight bytes at a time: most strings are too short for a search by `memchr`, which also does not
// find control characters.
#[inline]
fn plain_end(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let below = |word: u64, limit: u8| word.wrapping_sub(LOW * u64::from(limit)) & !word;
        let is = |byte: u8| below(word ^ (LOW * u64::from(byte)), 1);
        // The high bit of the first such byte is set, and of none before it.
        let found = (is(b'"') | is(b'\\') | below(word, b' ')) & (LOW << 7);
        if found != 0 {
            let skipped = bytes.len() - rest.len();
            return Some(skipped + found.trailing_zeros() as usize / 8);
        }
        rest = after;
    }
    let skipped = bytes.len() - rest.len();
    let found = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    found.map(|index| skipped + index)
}

/// A one in each byte.
const LOW: u64 = u64::MAX / 0xFF;

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::error::JsonError;
    use super::super::reader::{read_any_entity, read_any_page, read_page};
    use super::*;

    fn scanned(text: &str) -> Option<JsonEntity<'_>> {
        let mut scanned = JsonEntity::default();
        entity(text, &mut scanned)?;
        Some(scanned)
    }

    fn shown(entity: &JsonEntity<'_>) -> String {
        format!("{entity:?}")
    }

    /// Returns true if the scanner accepts the text. The reader of any JSON must then read the
    /// same.
    fn is_scanned(text: &str) -> bool {
        let Some(scanned) = scanned(text) else {
            return false;
        };
        let read = read_any_entity(text.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(shown(&scanned), shown(&read), "{text:?}");
        true
    }

    /// The entities of a page, and the error at its end.
    fn entities(
        read: impl FnOnce(&mut dyn FnMut(String)) -> Result<(), JsonError>,
    ) -> (Vec<String>, Option<String>) {
        let mut entities = Vec::new();
        let read = read(&mut |entity| entities.push(entity));
        (entities, read.err().map(|error| error.to_string()))
    }

    fn assert_reads_as_any(body: &str) {
        let both = entities(|push| {
            read_page(body.as_bytes(), |entity| {
                push(shown(entity));
                Ok(())
            })
        });
        let any = entities(|push| {
            read_any_page(body.as_bytes(), |entity| {
                push(shown(entity));
                Ok(())
            })
        });
        assert_eq!(both, any, "{body}");
    }

    #[test]
    fn responses_of_the_service_are_scanned() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":1,"b":"x","c":true,"d":false,"e":null,"f":-1.5E+07,"g":0,"h":-0.0e-1}"#,
            "\t{ \"a\" : 1 ,\r\n \"b\" : \"\" }\n",
            r#"{"a@odata.type":"Edm.Int64","a":"5"}"#,
            r#"{"a":"5","a@odata.type":"Edm.Int64","b":1}"#,
            r#"{"a@odata.type":"Edm.Int64","odata.type":"x","a":"5"}"#,
            r#"{"odata.metadata":"x","odata.etag":"W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"","PartitionKey":"p","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-09-21T01:04:37.9678478Z"}"#,
            r#"{"odata.etag":"W/\"\""}"#,
            r#"{"odata.etag":"W/\"\u0061\\\"b\"","a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}"#,
            r#"{"odata.etag":"","odata.etag":"x"}"#,
            r#"{"":"","é":"é😀","a@b":1,"a":1,"a":2}"#,
        ] {
            assert!(is_scanned(text), "{text}");
        }
        for length in 0..40 {
            let text = "é".repeat(length);
            assert!(is_scanned(&format!(
                "{{\"a\":\"{text}\",\"b\":\"{text}\\n\"}}"
            )));
        }
    }

    #[test]
    fn what_is_malformed_or_unusual_is_not_scanned() {
        for text in [
            "",
            "{",
            "[]",
            "1",
            "{}x",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":01}"#,
            r#"{"a":-}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":1e}"#,
            r#"{"a":+1}"#,
            r#"{"a":truee}"#,
            r#"{"a":nul}"#,
            r#"{"a":NaN}"#,
            r#"{"a":"x}"#,
            r#"{"a":"\"}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12"}"#,
            r#"{"a":"\ud800"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"12345678\u{1F}\"}",
            "{\"a\":\"\\\n\"}",
            r#"{"odata.etag":"W/\"x"}"#,
            "{\"odata.etag\":\"W/\\\"\n\\\"\"}",
            r#"{"odata.etag":null}"#,
            r#"{"a":[]}"#,
            r#"{"odata.a":{}}"#,
            r#"{"\u0061":1}"#,
            r#"{"a@odata.type":"Edm.Int64"}"#,
            r#"{"a@odata.type":5,"a":"5"}"#,
            r#"{"a@odata.type":"Edm.Int64","b":1,"a":"5"}"#,
            r#"{"a":"5","b":1,"a@odata.type":"Edm.Int64"}"#,
            r#"{"a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64","a":"5"}"#,
            r#"{"a@odata.type":"Edm.Int64","a":"5","a@odata.type":"Edm.Int64"}"#,
            r#"{"odata.a@odata.type":"Edm.Int64","odata.a":"5"}"#,
        ] {
            assert!(scanned(text).is_none(), "{text}");
        }
        let members = |count| {
            let members: Vec<_> = (0..count).map(|index| format!("\"a{index}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(is_scanned(&members(MEMBERS_MAX)));
        assert!(!is_scanned(&members(MEMBERS_MAX + 1)));
    }

    #[test]
    fn the_reader_goes_on_where_a_page_is_not_scanned() {
        for unusual in [
            r#"{"b":[1]}"#,
            r#"{"b":"5","a":1,"b@odata.type":"Edm.Int64"}"#,
            r#"{"b":01}"#,
            "1",
            "",
        ] {
            for page in [
                format!(r#"{{"value":[{{"a":1}},{{"a":2}},{unusual},{{"a":3}}]}}"#),
                format!(r#"{{"odata.metadata":{{}},"value":[{unusual}]}}"#),
                format!(r#"{{"value":[{unusual}],"value":[]}}"#),
                format!(r#"{{"value":[{{"a":1}}],"odata.metadata":{{}}}} {unusual}"#),
            ] {
                assert_reads_as_any(&page);
            }
        }
        // An entity is passed once, whatever comes after it.
        let page = r#"{"value":[{"a":1},{"a":[]},{"a":2}]}"#;
        let (read, error) = entities(|push| {
            read_page(page.as_bytes(), |entity| {
                push(entity.members().len().to_string());
                Ok(())
            })
        });
        assert_eq!((read.len(), error), (3, None));
    }

    #[test]
    fn an_error_of_the_visitor_ends_a_page() {
        let page = r#"{"value":[{"a":1},{"a":2},{"a":3}],"x":[]}"#;
        let mut visited = 0;
        let read = read_page(page.as_bytes(), |_| {
            visited += 1;
            if visited == 2 {
                Err(JsonError::TooManyMembers)
            } else {
                Ok(())
            }
        });
        assert!(matches!(read, Err(JsonError::TooManyMembers)));
        assert_eq!(visited, 2);
    }

    /// Pieces of which some orders are JSON, and most are nearly so.
    pub(in super::super) fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            8 => select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "null", "true", "-", "0", "12", ".", "e", "1.5e-3",
            ]).prop_map(str::to_owned),
            8 => select(vec![
                "\"a\":", "\"b\":", "\"a@odata.type\":\"Edm.Int64\"", "\"b@odata.type\":", "\"odata.etag\":\"W/\\\"x\\\"\"",
                "\"a\":\"5\"", "\"b\":null", "\"x\\ny\"", "\"W/\\\"\"", "\"\\ud83d\\ude00\"", "\"plain text that is longer\"",
            ]).prop_map(str::to_owned),
            1 => ".{0,12}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// Members that are each well formed, joined as they should be.
    pub(in super::super) fn members() -> impl Strategy<Value = String> {
        let name = select(vec![
            "a",
            "b",
            "RowKey",
            "odata.etag",
            "odata.x",
            "a@odata.type",
            "b@odata.type",
            "\\u0061",
        ]);
        let text = ".{0,24}".prop_map(|text| serde_json::to_string(&text).unwrap());
        let value = prop_oneof![
            4 => text,
            2 => select(vec!["\"Edm.Int64\"", "\"W/\\\"x\\\"\"", "null", "true", "false", "[1]", "{}"]).prop_map(str::to_owned),
            2 => any::<f64>().prop_filter("JSON has it", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
            1 => any::<i64>().prop_map(|value| value.to_string()),
        ];
        let space = select(vec!["", "", "", " ", "\n\t"]);
        let member = (name, value, space).prop_map(|(name, value, space)| {
            format!("{space}\"{name}\"{space}:{space}{value}{space}")
        });
        prop::collection::vec(member, 0..8).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    proptest! {
        #[test]
        fn the_scanner_takes_nothing_that_the_reader_refuses(text in pieces(), inner in pieces()) {
            is_scanned(&text);
            is_scanned(&format!("{{{text}}}"));
            is_scanned(&format!("{{\"a\":{text},\"b\":{inner}}}"));
            assert_reads_as_any(&format!("{{\"value\":[{{{text}}},{inner}]}}"));
        }

        #[test]
        fn the_scanner_reads_what_the_reader_reads(entities in prop::collection::vec(members(), 0..4)) {
            for entity in &entities {
                is_scanned(entity);
            }
            assert_reads_as_any(&format!("{{\"m\":\"\",\"value\":[{}]}}", entities.join(",")));
        }

        #[test]
        fn a_changed_byte_is_noticed_as_the_reader_notices_it(entity in members(), at: prop::sample::Index, byte: u8) {
            let mut bytes = entity.into_bytes();
            let at = at.index(bytes.len());
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Ok(text) = std::str::from_utf8(&bytes) {
                is_scanned(text);
                assert_reads_as_any(&format!("{{\"value\":[{text}]}}"));
            }
        }

        #[test]
        fn a_string_ends_where_a_search_byte_by_byte_ends_it(bytes: Vec<u8>) {
            let expected = bytes.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(plain_end(&bytes), expected);
            let high: Vec<u8> = bytes.iter().map(|byte| byte | 0x80).collect();
            prop_assert_eq!(plain_end(&high), None);
        }
    }
}
