//! The values that a foreign client cannot represent, and the result of sending them. All other
//! values must arrive unchanged.

use tablesdk::{Timestamp, Value};

use crate::form::{Form, Outcome, Properties};
use crate::{Client, Mode, Verb, Way};

pub(crate) struct Limit {
    pub(crate) client: Client,
    pub(crate) what: &'static str,
    ways: &'static [Way],
    pub(crate) example: fn() -> Value,
    /// `None` for a value that it does not concern.
    pub(crate) becomes: fn(&Value) -> Option<Expected>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Expected {
    Told(Form),
    Absent,
    /// By the server: its status and code. Or by the client: 0 and its message.
    Refused(u16, String),
}

const WRITE: Way = (Verb::Write, Mode::Plain);
const READ: Way = (Verb::Read, Mode::Plain);
const COPY: Way = (Verb::Copy, Mode::Plain);
const WRITE_TYPED: Way = (Verb::Write, Mode::Typed);
const READ_TYPED: Way = (Verb::Read, Mode::Typed);
const COPY_TYPED: Way = (Verb::Copy, Mode::Typed);

pub(crate) const LIMITS: &[Limit] = &[
    Limit {
        client: Client::Java,
        what: "a number that is none is written as its name without its type, which is a string",
        ways: &[WRITE, COPY],
        example: || Value::Double(f64::NEG_INFINITY),
        becomes: |value| no_number(value).map(|name| told(&Value::from(name))),
    },
    Limit {
        client: Client::Python,
        what: "a datetime has microseconds, and is cut to them",
        ways: &[WRITE, READ, COPY],
        example: || date("2024-03-15T10:20:30.1234567Z"),
        becomes: |value| cut(value, 10),
    },
    Limit {
        client: Client::JavaScript,
        what: "a Date has milliseconds, and is cut to them",
        ways: &[WRITE, READ, COPY],
        example: || date("2024-03-15T10:20:30.1239999Z"),
        becomes: |value| cut(value, 10_000),
    },
    Limit {
        client: Client::JavaScript,
        what: "a number without a fraction is written without one, and taken for an Int32",
        ways: &[WRITE, COPY],
        example: || Value::Double(5.0),
        becomes: as_int32,
    },
    Limit {
        client: Client::JavaScript,
        what: "JSON has null for a number that is none, and null is an absent property",
        ways: &[WRITE],
        example: || Value::Double(f64::NAN),
        becomes: |value| no_number(value).map(|_| Expected::Absent),
    },
    Limit {
        client: Client::JavaScript,
        what: "a number that is none is read as its name",
        ways: &[READ, COPY],
        example: || Value::Double(f64::NEG_INFINITY),
        becomes: |value| no_number(value).map(|name| told(&Value::from(name))),
    },
    Limit {
        client: Client::JavaScript,
        what: "a number without a fraction looks like an Int32, unless it is zero with a sign",
        ways: &[READ],
        example: || Value::Double(-5.0),
        becomes: |value| as_int32(value).filter(|_| !is_negative_zero(value)),
    },
    Limit {
        client: Client::JavaScript,
        what: "zero is written without its sign, even with its type",
        ways: &[WRITE_TYPED],
        example: || Value::Double(-0.0),
        becomes: |value| is_negative_zero(value).then(|| told(&Value::Double(0.0))),
    },
    Limit {
        client: Client::JavaScript,
        what: "asked for types, it guesses that of a number: without a fraction it is an Int32 of up to 53 bits",
        ways: &[READ_TYPED],
        example: || Value::Double(1e15),
        becomes: |value| whole(value).filter(|number| is_safe(*number)).map(int32),
    },
    Limit {
        client: Client::JavaScript,
        what: "and writes what it guessed",
        ways: &[COPY_TYPED],
        example: || Value::Double(7.0),
        becomes: as_int32,
    },
    Limit {
        client: Client::JavaScript,
        what: "which is refused where an Int32 does not reach",
        ways: &[COPY_TYPED],
        example: || Value::Double(-1e15),
        becomes: |value| {
            let number = whole(value).filter(|number| is_safe(*number) && !is_int32(*number));
            number.map(|_| Expected::Refused(400, "InvalidInput".to_owned()))
        },
    },
    Limit {
        client: Client::Go,
        what: "a float64 without a fraction is written without one, and taken for an Int32",
        ways: &[WRITE, COPY, COPY_TYPED],
        example: || Value::Double(-0.0),
        becomes: as_int32,
    },
    Limit {
        client: Client::Go,
        what: "an EDMEntity with a float64 that is not finite is not written",
        ways: &[WRITE],
        example: || Value::Double(f64::NEG_INFINITY),
        becomes: |value| no_number(value).map(unsupported),
    },
    Limit {
        client: Client::Go,
        what: "an EDMEntity has no value for a Double that is not finite",
        ways: &[READ, COPY],
        example: || Value::Double(f64::NAN),
        becomes: |value| no_number(value).map(|_| Expected::Absent),
    },
    Limit {
        client: Client::Go,
        what: "an EDMEntity reads a Double without a fraction as an Int32",
        ways: &[READ],
        example: || Value::Double(-0.0),
        becomes: as_int32,
    },
    Limit {
        client: Client::Go,
        what: "the client removes the fraction .0 of a Double from the JSON that it returns",
        ways: &[READ_TYPED],
        example: || Value::Double(-5.0),
        becomes: |value| as_int32(value).filter(|_| !is_negative_zero(value)),
    },
];

/// Names that the client reserves: a property of that name is lost, whichever client writes it.
pub(crate) const fn lost_names(client: Client) -> &'static [&'static str] {
    match client {
        Client::Go | Client::Java | Client::Python => &[],
        Client::JavaScript => &["timestamp", "etag"],
    }
}

/// The properties that are read back: an error if one of them is rejected.
pub(crate) fn expected<'v>(
    client: Client,
    way: Way,
    properties: impl Iterator<Item = (&'v str, &'v Value)>,
) -> Outcome {
    let mut expected = Properties::new();
    let mut refusals = Vec::new();
    for (name, value) in properties {
        if lost_names(client).contains(&name) {
            continue;
        }
        let mut limits = LIMITS
            .iter()
            .filter(|limit| limit.client == client && limit.ways.contains(&way));
        let limit = limits.find_map(|limit| (limit.becomes)(value));
        match limit.unwrap_or_else(|| told(value)) {
            Expected::Told(form) => drop(expected.insert(name.to_owned(), form)),
            Expected::Absent => {}
            Expected::Refused(status, code) => refusals.push((status, code)),
        }
    }
    // A client refuses a property before the server can refuse another.
    let first = refusals.into_iter().min_by_key(|(status, _)| *status);
    match first {
        Some((status, code)) => Err((status, Some(code))),
        None => Ok(expected),
    }
}

fn date(text: &str) -> Value {
    Value::DateTime(text.parse::<Timestamp>().expect("a date"))
}

fn told(value: &Value) -> Expected {
    Expected::Told(Form::of(value))
}

/// Cut to so many steps of 100 ns, towards the past.
fn cut(value: &Value, steps: i64) -> Option<Expected> {
    let Value::DateTime(at) = value else {
        return None;
    };
    let ticks = at.unix_ticks();
    let cut = ticks - ticks.rem_euclid(steps);
    (cut != ticks).then(|| {
        let at = Timestamp::from_unix_ticks(cut).expect("no earlier than a whole second");
        told(&Value::DateTime(at))
    })
}

/// A double without a fraction.
fn whole(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) if number.fract() == 0.0 => Some(*number),
        _ => None,
    }
}

fn is_negative_zero(value: &Value) -> bool {
    matches!(value, Value::Double(number) if *number == 0.0 && number.is_sign_negative())
}

/// The name in Java and JavaScript for a double that is not finite.
fn no_number(value: &Value) -> Option<&'static str> {
    match value {
        Value::Double(number) if number.is_nan() => Some("NaN"),
        Value::Double(f64::INFINITY) => Some("Infinity"),
        Value::Double(f64::NEG_INFINITY) => Some("-Infinity"),
        _ => None,
    }
}

/// The refusal of the Go client for a double that is not finite.
fn unsupported(name: &str) -> Expected {
    let error = "json: error calling MarshalJSON for type aztables.EDMEntity: json";
    let name = name.replace("Infinity", "Inf");
    let sign = if name == "Inf" { "+" } else { "" };
    Expected::Refused(0, format!("{error}: unsupported value: {sign}{name}"))
}

fn is_int32(number: f64) -> bool {
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
}

/// Up to here, JavaScript trusts its whole numbers.
fn is_safe(number: f64) -> bool {
    number.abs() < 9_007_199_254_740_992.0
}

/// A double without a fraction, where an Int32 reaches.
fn as_int32(value: &Value) -> Option<Expected> {
    whole(value).filter(|number| is_int32(*number)).map(int32)
}

/// The sign of a zero is lost.
fn int32(number: f64) -> Expected {
    Expected::Told(Form::new("Edm.Int32", format!("{:.0}", number + 0.0)))
}
