//! Typed values of the oracle, and their two spellings: JSON and filter literals.

use std::cmp::Ordering;

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Val {
    Binary(Vec<u8>),
    Boolean(bool),
    /// As the service prints it. The order of these strings is that of the values.
    DateTime(&'static str),
    Double(f64),
    Guid(&'static str),
    Int32(i32),
    Int64(i64),
    Text(String),
}

impl Val {
    /// One of few values, so that equal values are compared.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let pick = |rng: &mut Rng, count: usize| rng.usize(..count);
        match rng.u8(..8) {
            0 => Self::Binary(BINARIES[pick(rng, BINARIES.len())].0.to_vec()),
            1 => Self::Boolean(rng.bool()),
            2 => Self::DateTime(DATES[pick(rng, DATES.len())]),
            3 => Self::Double(DOUBLES[pick(rng, DOUBLES.len())]),
            4 => Self::Guid(GUIDS[pick(rng, GUIDS.len())]),
            5 => Self::Int32([i32::MIN, -1, 0, 1, 3, i32::MAX][pick(rng, 6)]),
            6 => Self::Int64([i64::MIN, -1, 0, 3, 9_007_199_254_740_993, i64::MAX][pick(rng, 6)]),
            _ => Self::Text(TEXTS[pick(rng, TEXTS.len())].to_owned()),
        }
    }

    /// Adds the value to a JSON object, with its type if that is necessary, and sometimes if it is
    /// not.
    pub(crate) fn write(&self, name: &str, into: &mut Map<String, Json>, rng: &mut Rng) {
        let (edm_type, value, needed) = match self {
            Self::Binary(bytes) => ("Edm.Binary", json!(base64(bytes)), true),
            Self::Boolean(value) => ("Edm.Boolean", json!(value), false),
            Self::DateTime(text) => ("Edm.DateTime", json!(text), true),
            Self::Double(value) if value.is_finite() => ("Edm.Double", json!(value), false),
            // Rust prints `NaN`, as the service does, and `inf`.
            Self::Double(value) => {
                let text = value.to_string().replace("inf", "Infinity");
                ("Edm.Double", json!(text), true)
            }
            Self::Guid(text) => ("Edm.Guid", json!(text), true),
            Self::Int32(value) => ("Edm.Int32", json!(value), false),
            Self::Int64(value) => ("Edm.Int64", json!(value.to_string()), true),
            Self::Text(text) => ("Edm.String", json!(text), false),
        };
        if needed || rng.bool() {
            into.insert(format!("{name}@odata.type"), json!(edm_type));
        }
        into.insert(name.to_owned(), value);
    }

    /// Reads a member of a response with minimal metadata.
    pub(crate) fn read(value: &Json, edm_type: Option<&str>) -> Self {
        let text = || value.as_str().unwrap().to_owned();
        let known = |list: &[&'static str]| *list.iter().find(|known| **known == text()).unwrap();
        match (edm_type, value) {
            (Some("Edm.Binary"), _) => {
                let known = BINARIES.iter().find(|(_, base64)| *base64 == text());
                Self::Binary(known.unwrap().0.to_vec())
            }
            (Some("Edm.DateTime"), _) => Self::DateTime(known(&DATES)),
            (Some("Edm.Guid"), _) => Self::Guid(known(&GUIDS)),
            (Some("Edm.Int64"), _) => Self::Int64(text().parse().unwrap()),
            // Another double needs no annotation.
            (Some("Edm.Double"), _) => {
                let known = NO_NUMBERS.iter().find(|(name, _)| *name == text());
                Self::Double(known.unwrap().1)
            }
            (None, Json::Bool(value)) => Self::Boolean(*value),
            (None, Json::String(text)) => Self::Text(text.clone()),
            (None, Json::Number(number)) if number.is_f64() => {
                Self::Double(number.as_f64().unwrap())
            }
            (None, Json::Number(number)) => {
                Self::Int32(number.as_i64().unwrap().try_into().unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    /// As a literal of a filter.
    pub(crate) fn literal(&self) -> String {
        match self {
            Self::Binary(bytes) => {
                let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
                format!("X'{}'", hex.collect::<String>())
            }
            Self::Boolean(value) => value.to_string(),
            Self::DateTime(text) => format!("datetime'{text}'"),
            Self::Double(value) => format!("{value:?}").replace("inf", "INF"),
            Self::Guid(text) => format!("guid'{text}'"),
            Self::Int32(value) => value.to_string(),
            Self::Int64(value) => format!("{value}L"),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }

    /// How a stored value compares with a literal: `None` where a NaN is involved.
    ///
    /// Integer literals are promoted to the type of the property; a value of another type is less
    /// than any literal.
    pub(crate) fn compare(&self, literal: &Self) -> Option<Ordering> {
        match (self, literal) {
            (Self::Binary(a), Self::Binary(b)) => Some(a.cmp(b)),
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::DateTime(a), Self::DateTime(b)) => Some(rank(&DATES, a).cmp(&rank(&DATES, b))),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), Self::Int32(b)) => a.partial_cmp(&f64::from(*b)),
            // All doubles here are in the range in which an i64 keeps its digits.
            #[expect(
                clippy::cast_precision_loss,
                reason = "the doubles here are small or huge"
            )]
            (Self::Double(a), Self::Int64(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Guid(a), Self::Guid(b)) => Some(a.cmp(b)),
            (Self::Int32(a), Self::Int32(b)) => Some(a.cmp(b)),
            (Self::Int64(a), Self::Int32(b)) => Some(a.cmp(&i64::from(*b))),
            (Self::Int64(a), Self::Int64(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.encode_utf16().cmp(b.encode_utf16())),
            _ => Some(Ordering::Less),
        }
    }

    /// Equality of stored values: a NaN equals itself, and zero has a sign.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }
}

fn rank(list: &[&str], text: &str) -> usize {
    list.iter().position(|known| *known == text).unwrap()
}

fn base64(bytes: &[u8]) -> &'static str {
    let known = BINARIES.iter().find(|(known, _)| *known == bytes);
    known.unwrap().1
}

const NO_NUMBERS: [(&str, f64); 3] = [
    ("NaN", f64::NAN),
    ("Infinity", f64::INFINITY),
    ("-Infinity", f64::NEG_INFINITY),
];
/// With their Base64.
const BINARIES: [(&[u8], &str); 4] = [
    (&[], ""),
    (&[0], "AA=="),
    (&[0, 1], "AAE="),
    (&[255], "/w=="),
];
/// In their order.
const DATES: [&str; 5] = [
    "1601-01-01T00:00:00Z",
    "2021-09-21T01:04:37.9678478Z",
    "2021-09-21T01:04:37.967848Z",
    "2021-09-21T01:04:38Z",
    "9999-12-31T23:59:59.9999999Z",
];
const DOUBLES: [f64; 9] = [
    f64::NEG_INFINITY,
    -1e300,
    -0.0,
    0.0,
    0.1,
    3.0,
    1e300,
    f64::INFINITY,
    f64::NAN,
];
const GUIDS: [&str; 3] = [
    "00000000-0000-0000-0000-000000000000",
    "c9da6455-213d-42c9-9a79-3e9149a57833",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
];
const TEXTS: [&str; 8] = ["", "a", "B", "O'Brien", "3", "é\n\"\\", "😀", "\u{E000}"];
