//! One value as JSON: how it prints, and what a JSON scalar means with and without its type
//! annotation.

use std::borrow::Cow;
use std::io::Write as _;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::PropertyProblem;
use crate::types::text::Cursor;
use crate::types::{EdmType, ParseTimestampError, Timestamp, ValueRef};

/// A JSON value, as far as a property can hold one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Boolean(bool),
    /// A number as it is written, since only its type determines how it is read.
    Number(&'a str),
    Text(Cow<'a, str>),
    /// An array or object, which no property can hold.
    Nested,
}

/// Prints the value.
pub(super) fn write_value(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    match value {
        ValueRef::Binary(bytes) => write_base64(out, bytes),
        ValueRef::Boolean(true) => out.extend_from_slice(b"true"),
        ValueRef::Boolean(false) => out.extend_from_slice(b"false"),
        ValueRef::DateTime(value) => write_plain(out, value.print().as_str()),
        ValueRef::Double(value) => write_double(out, *value),
        ValueRef::Guid(value) => {
            out.push(b'"');
            out.extend_from_slice(&value.to_ascii());
            out.push(b'"');
        }
        ValueRef::Int32(value) => {
            out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes());
        }
        ValueRef::Int64(value) => write_plain(out, itoa::Buffer::new().format(*value)),
        ValueRef::String(text) => write_string(out, text),
    }
}

/// Prints bytes as base64 in quotes.
fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let place = out.get_mut(start..).unwrap_or_default();
    let written = STANDARD.encode_slice(bytes, place);
    written.expect("the length is that of the printed form");
    out.push(b'"');
}

/// Prints a string in quotes that needs no escapes.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Prints a string in quotes, escaped.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        return write_plain(out, text);
    }
    serde_json::to_writer(out, text).expect("writing a text to memory cannot fail");
}

/// Prints a string, escaped, between two quotes, of which the first is the last byte of what is
/// there, and the second is not added.
#[inline]
pub(super) fn write_quoted(out: &mut Vec<u8>, text: &str) {
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.pop();
        write_string(out, text);
        out.pop();
    }
}

/// Returns true if no byte needs an escape in a JSON string.
fn is_plain(bytes: &[u8]) -> bool {
    // Eight bytes at a time, the last eight of them again if there are fewer in the end. The loop
    // has no early end, so that the compiler can look at several words at once.
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        let marks = words.iter().fold(0, |marks, word| marks | escapes(*word));
        return (marks | escapes(*last)) & HIGH_BITS == 0;
    }
    bytes
        .iter()
        .all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\')
}

/// The high bit of a byte is set if one of eight bytes needs an escape: subtracting a number from
/// each sets that of one that is less and had none. The borrow of such a byte may change those
/// after it, so the bits do not say which byte it is.
const fn escapes(bytes: [u8; 8]) -> u64 {
    let word = u64::from_ne_bytes(bytes);
    let controls = less(word, b' ');
    let quotes = less(word ^ each(b'"'), 1);
    let backslashes = less(word ^ each(b'\\'), 1);
    controls | quotes | backslashes
}

const fn less(word: u64, than: u8) -> u64 {
    word.wrapping_sub(each(than)) & !word
}

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

const HIGH_BITS: u64 = each(0x80);

/// The text of .NET Framework's format "R", always with a point or an exponent: fifteen significant
/// digits if they read back as the same number, else seventeen; `5.0`, `1E+300`, `1.5E-07`, and the
/// names of the values that are no numbers in quotes.
fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(b"\"NaN\"");
    }
    if value.is_infinite() {
        let text: &[u8] = if value > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        };
        return out.extend_from_slice(text);
    }
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        let start = out.len();
        serde_json::to_writer(&mut *out, &value).expect("writing a number to memory cannot fail");
        // The shortest digits that read back: up to fifteen, they are those of this format.
        let written = out.get(start..).unwrap_or_default();
        if written.iter().filter(|byte| byte.is_ascii_digit()).count() <= DIGITS_FEW {
            return;
        }
        out.truncate(start);
    }
    let few = format!("{value:.0$e}", DIGITS_FEW - 1);
    if few.parse() == Ok(value) {
        write_digits(out, &few, DIGITS_FEW);
    } else {
        write_digits(out, &format!("{value:.0$e}", DIGITS_MANY - 1), DIGITS_MANY);
    }
}

/// Prints a number in the form `-1.50e7`. It has an exponent if it has more digits before the
/// point, or more than three zeros behind it.
fn write_digits(out: &mut Vec<u8>, scientific: &str, digits_max: usize) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let (sign, mantissa) = mantissa.split_at(usize::from(mantissa.starts_with('-')));
    let digits = mantissa.replace('.', "");
    let size = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
    let written = match exponent {
        -4..=-1 => write!(out, "{sign}0.{digits:0>0$}", size - 1 + digits.len()),
        0.. if size < digits_max => {
            let (whole, fraction) = digits.split_at_checked(size + 1).unwrap_or((&digits, ""));
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            write!(out, "{sign}{whole:0<0$}.{fraction}", size + 1)
        }
        ..0 => write!(out, "{sign}{mantissa}E-{size:02}"),
        0.. => write!(out, "{sign}{mantissa}E+{size:02}"),
    };
    written.expect("writing to memory cannot fail");
}

/// So many digits are those of every number that was given with them.
const DIGITS_FEW: usize = 15;
/// So many digits tell every number.
const DIGITS_MANY: usize = 17;

impl<'a> Scalar<'a> {
    /// The value that this JSON is, given its annotation. A null has none and fits no type.
    #[inline]
    pub(super) fn to_value_ref(
        &self,
        annotation: Option<EdmType>,
    ) -> Result<ValueRef<'_>, PropertyProblem> {
        let scalar = match self {
            Self::Null => Scalar::Null,
            Self::Boolean(value) => Scalar::Boolean(*value),
            Self::Number(number) => Scalar::Number(number),
            Self::Text(text) => Scalar::Text(Cow::Borrowed(text)),
            Self::Nested => Scalar::Nested,
        };
        scalar.into_value_ref(annotation)
    }

    /// The same value. A string is borrowed from the input where it is in the scalar.
    #[inline]
    pub(super) fn into_value_ref(
        self,
        annotation: Option<EdmType>,
    ) -> Result<ValueRef<'a>, PropertyProblem> {
        let mismatch = |edm_type| PropertyProblem::Mismatch { edm_type };
        match (self, annotation) {
            (Self::Nested, _) => Err(PropertyProblem::Nested),
            (Self::Boolean(value), None | Some(EdmType::Boolean)) => Ok(ValueRef::Boolean(value)),
            (Self::Number(number), None) => infer_number(number),
            (Self::Number(number), Some(edm_type)) => match edm_type {
                EdmType::Double | EdmType::Int32 | EdmType::Int64 => parse_text(number, edm_type),
                _ => Err(mismatch(edm_type)),
            },
            (Self::Text(text), None | Some(EdmType::String)) => Ok(ValueRef::String(text)),
            (Self::Text(text), Some(edm_type)) => parse_text(&text, edm_type),
            (_, Some(edm_type)) => Err(mismatch(edm_type)),
            (Self::Null, None) => Err(mismatch(EdmType::String)),
        }
    }

    /// The number, if it is an integer beyond Int32.
    pub(super) fn big_integer(&self) -> Option<&'a str> {
        match self {
            Self::Number(number) => {
                (is_integer(number) && number.parse::<i32>().is_err()).then_some(number)
            }
            _ => None,
        }
    }
}

/// The value of a number without an annotation: an integer that fits is an Int32, and any other
/// number a Double. The sign of a zero without a point and an exponent is lost.
fn infer_number(number: &str) -> Result<ValueRef<'static>, PropertyProblem> {
    if is_integer(number)
        && let Ok(integer) = number.parse()
    {
        return Ok(ValueRef::Int32(integer));
    }
    let double = parse_json_double(number).map(ValueRef::Double);
    double.ok_or(PropertyProblem::DoubleOutOfRange)
}

pub(super) fn is_integer(number: &str) -> bool {
    number
        .bytes()
        .all(|byte| !matches!(byte, b'.' | b'e' | b'E'))
}

/// The value of a number that is spelled as JSON has it.
pub(super) fn parse_json_double(number: &str) -> Option<f64> {
    number.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The value of that type that a string, or a number, represents.
pub(super) fn parse_text(
    text: &str,
    edm_type: EdmType,
) -> Result<ValueRef<'static>, PropertyProblem> {
    let mismatch = || PropertyProblem::Mismatch { edm_type };
    Ok(match edm_type {
        EdmType::Binary => ValueRef::Binary(STANDARD.decode(text).map_err(|_| mismatch())?.into()),
        // Some clients print it as their language does.
        EdmType::Boolean if text.eq_ignore_ascii_case("true") => ValueRef::Boolean(true),
        EdmType::Boolean if text.eq_ignore_ascii_case("false") => ValueRef::Boolean(false),
        EdmType::Boolean => return Err(mismatch()),
        EdmType::DateTime => match text.parse::<Timestamp>() {
            Ok(value) => ValueRef::DateTime(value),
            Err(ParseTimestampError::Range(_)) => return Err(PropertyProblem::DateOutOfRange),
            Err(ParseTimestampError::Form) => return Err(mismatch()),
        },
        EdmType::Double => ValueRef::Double(parse_double(text).ok_or_else(mismatch)?),
        EdmType::Guid => ValueRef::Guid(text.parse().map_err(|_| mismatch())?),
        EdmType::Int32 => ValueRef::Int32(parse_integer(text).ok_or_else(mismatch)?),
        EdmType::Int64 => ValueRef::Int64(parse_integer(text).ok_or_else(mismatch)?),
        EdmType::String => ValueRef::String(text.to_owned().into()),
    })
}

/// An optional minus sign and digits. Rust itself would read a plus sign, too.
pub(super) fn parse_integer<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer.then(|| text.parse().ok()).flatten()
}

/// The three names, or a number as JSON spells it that does not overflow. Rust itself would read
/// more spellings.
// SERVICE: zeros in front are read; a plus sign, and a point without digits on both sides, are
// assumed to be refused.
fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let mut cursor = Cursor::new(text);
    let digits = |cursor: &mut Cursor<'_>| !cursor.take_while(|c| c.is_ascii_digit()).is_empty();
    cursor.literal("-");
    let is_number = digits(&mut cursor)
        && (!cursor.literal(".") || digits(&mut cursor))
        && (!(cursor.literal("e") || cursor.literal("E")) || {
            let _sign = cursor.literal("+") || cursor.literal("-");
            digits(&mut cursor)
        })
        && cursor.is_at_end();
    if !is_number {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Value;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_double(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_print_as_the_service_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (3.1, "3.1"),
            (1e300, "1E+300"),
            (-1.5e-7, "-1.5E-07"),
            (0.0001, "0.0001"),
            (0.00001, "1E-05"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1e15, "1E+15"),
            (5e-324, "4.94065645841247E-324"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.000_123_456_789_012_345_6, "-0.00012345678901234559"),
            (1.0 / 3.0, "0.33333333333333331"),
            (f64::MAX, "1.7976931348623157E+308"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (10_000_000_000_000_002.0, "10000000000000002.0"),
            (9_223_372_036_854_775_808_000.0, "9.2233720368547758E+21"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(double(value), text);
        }
    }

    proptest! {
        #[test]
        fn bytes_that_need_an_escape_are_found_everywhere(
            plain in prop::collection::vec(prop::sample::select(b" !#[]a\x7f\x80\xa0\xdc\xff".as_slice()), 1..100),
            place: prop::sample::Index,
            byte: u8,
        ) {
            prop_assert!(is_plain(&plain));
            let mut bytes = plain;
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let expected = byte >= b' ' && byte != b'"' && byte != b'\\';
            prop_assert_eq!(is_plain(&bytes), expected);
        }

        #[test]
        fn doubles_read_back_exactly(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let read: f64 = serde_json::from_str(&double(value)).unwrap();
            prop_assert_eq!(read.to_bits(), bits);
            prop_assert!(double(value).contains(['.', 'E']));
            prop_assert_eq!(parse_double(&double(value)).map(f64::to_bits), Some(bits));
        }
    }

    #[test]
    fn every_type_reads_its_forms_only() {
        for (edm_type, accepted, refused) in SPELLINGS {
            for text in *accepted {
                let value = parse_text(text, *edm_type);
                assert_eq!(value.map(|value| value.edm_type()), Ok(*edm_type), "{text}");
            }
            for text in *refused {
                assert!(parse_text(text, *edm_type).is_err(), "{edm_type} {text:?}");
            }
        }
    }

    #[test]
    fn every_type_prints_as_the_service_prints_it() {
        let guid = "C9DA6455-213D-42C9-9A79-3E9149A57833".parse().unwrap();
        let at: Timestamp = "2021-01-19T17:08:02.4069790+00:00".parse().unwrap();
        for (value, json) in [
            (Value::from("a\"\\n\u{1}é😀/"), r#""a\"\\n\u0001é😀/""#),
            (Value::from(""), r#""""#),
            (Value::from(true), "true"),
            (Value::from(false), "false"),
            (Value::from(-5), "-5"),
            (Value::from(5.0), "5.0"),
            (Value::from(f64::NAN), r#""NaN""#),
            (Value::from(i64::MIN), r#""-9223372036854775808""#),
            (Value::from(at), r#""2021-01-19T17:08:02.406979Z""#),
            (
                Value::Guid(guid),
                r#""c9da6455-213d-42c9-9a79-3e9149a57833""#,
            ),
            (Value::from(vec![0xFB, 0xFF]), r#""+/8=""#),
        ] {
            let mut out = Vec::new();
            write_value(&mut out, &value.as_ref());
            assert_eq!(String::from_utf8(out).unwrap(), json);
        }
    }

    /// For each type the texts that are values, and some that are not.
    const SPELLINGS: &[(EdmType, &[&str], &[&str])] = &[
        (
            EdmType::Binary,
            &["", "YQ==", "YmluYXJ5", "+/+/"],
            &["YQ", "YQ=", "YQ== ", " YQ==", "-_-_", "Y", "=", "é"],
        ),
        (
            EdmType::Boolean,
            &["true", "false", "True", "FALSE"],
            &["", "true1", "1", "0", "yes", " true", "true "],
        ),
        (
            EdmType::DateTime,
            &[
                "2020-01-01T01:02",
                "2020-01-01T01:02Z",
                "2020-01-01T01:02:03",
                "2020-01-01T01:02:03.1234567Z",
                "2020-01-01T01:02:03+01:00",
                "1601-01-01T00:00:00Z",
                "9999-12-31T23:59:59.9999999Z",
                "2024-02-29T00:00:00-23:59",
            ],
            &[
                "",
                " 2020-01-01T01:02:03Z",
                "2020-01-01T01:02:03Z ",
                "2020-01-01 01:02:03Z",
                "2020-01-01t01:02:03z",
                "2020-1-1T01:02:03Z",
                "+2020-01-01T01:02:03Z",
                "2020-01-01T1:02:03Z",
                "2020-01-01T01:02:03.Z",
                "2020-01-01T01:02:03,5Z",
                "2020-01-01T01:02:03+1:00",
                "2020-01-01T01:02:03+0100",
                "2020-01-01T24:00:00Z",
                "2020-01-01T00:60:00Z",
                "2020-01-01T00:00:60Z",
                "2020-02-30T00:00:00Z",
                "2023-02-29T00:00:00Z",
                "2020-13-01T00:00:00Z",
                "2020-00-01T00:00:00Z",
                "2020-01-00T00:00:00Z",
                "20200101T000000Z",
                "1577836800",
                "today",
                "0001-01-01T00:00:00",
                "1600-12-31T23:59:59Z",
                "1601-01-01T00:00:00+00:01",
                "9999-12-31T23:59:59-00:01",
                "10000-01-01T00:00:00Z",
            ],
        ),
        (
            EdmType::Double,
            &[
                "0",
                "-0",
                "1.5",
                "-1.5E-07",
                "1E+300",
                "1e5",
                "007",
                "NaN",
                "Infinity",
                "-Infinity",
                "1.7976931348623157e308",
                "5e-324",
            ],
            &[
                "",
                "-",
                "+1",
                " 1",
                "1 ",
                "1.",
                ".5",
                ".",
                "1e",
                "1e+",
                "e1",
                "1.e1",
                "inf",
                "INF",
                "nan",
                "infinity",
                "+Infinity",
                "1.797693134862316e308",
                "-1e309",
                "0x1",
                "1_000",
                "1,5",
                "1f",
                "1.0d",
                "1.5.5",
                "--1",
            ],
        ),
        (
            EdmType::Guid,
            &[
                "c9da6455-213d-42c9-9a79-3e9149a57833",
                "C9DA6455-213D-42C9-9A79-3E9149A57833",
            ],
            &[
                "",
                "c9da6455213d42c99a793e9149a57833",
                "{c9da6455-213d-42c9-9a79-3e9149a57833}",
                " c9da6455-213d-42c9-9a79-3e9149a57833",
                "c9da6455-213d-42c9-9a79-3e9149a5783",
                "+9da6455-213d-42c9-9a79-3e9149a57833",
            ],
        ),
        (
            EdmType::Int32,
            &["0", "-0", "23", "-2147483648", "2147483647", "007"],
            &[
                "",
                "-",
                "+5",
                " 5",
                "5 ",
                "5.0",
                "5e0",
                "0x5",
                "1_000",
                "2147483648",
                "-2147483649",
                "٣",
                "5L",
                "--5",
            ],
        ),
        (
            EdmType::Int64,
            &["0", "-0", "-9223372036854775808", "9223372036854775807"],
            &[
                "",
                "-",
                "+5",
                " 5",
                "5 ",
                "5.0",
                "5e0",
                "0x5",
                "1_000",
                "9223372036854775808",
                "-9223372036854775809",
                "11111111111111111111",
                "٣",
                "5L",
            ],
        ),
        (EdmType::String, &["", " x ", "+5"], &[]),
    ];
}
