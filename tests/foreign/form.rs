//! Values as the processes and the tests compare them: by type and string, because equality of
//! numbers ignores the sign of a zero and the type of a number, and does not hold for a NaN.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tablesdk::{Timestamp, Value};

/// A value, as the processes say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) edm_type: String,
    pub(crate) text: String,
}

pub(crate) type Properties = BTreeMap<String, Form>;

/// The properties that have arrived, or the status and the code of the refusal.
pub(crate) type Outcome = Result<Properties, (u16, Option<String>)>;

impl Form {
    pub(crate) fn new(edm_type: &str, text: impl Into<String>) -> Self {
        Self {
            edm_type: edm_type.to_owned(),
            text: text.into(),
        }
    }

    pub(crate) fn of(value: &Value) -> Self {
        let text = match value {
            Value::Binary(bytes) => STANDARD.encode(bytes),
            Value::Boolean(value) => value.to_string(),
            Value::DateTime(at) => at.to_string(),
            // One NaN is as good as another.
            Value::Double(value) if value.is_nan() => bits(f64::NAN),
            Value::Double(value) => bits(*value),
            Value::Guid(guid) => guid.to_string(),
            Value::Int32(value) => value.to_string(),
            Value::Int64(value) => value.to_string(),
            Value::String(text) => text.clone(),
        };
        Self::new(value.as_ref().edm_type().as_str(), text)
    }

    /// A value that a process printed. Dates come with all their digits from one client and with
    /// few from another.
    pub(crate) fn told(edm_type: &str, text: &str) -> Self {
        if edm_type == "Edm.DateTime" {
            let at: Timestamp = text.parse().unwrap_or_else(|_| panic!("no date: {text}"));
            return Self::new(edm_type, at.to_string());
        }
        Self::new(edm_type, text)
    }

    pub(crate) fn properties<'v>(
        properties: impl IntoIterator<Item = (&'v str, &'v Value)>,
    ) -> Properties {
        let properties = properties.into_iter();
        properties
            .map(|(name, value)| (name.to_owned(), Self::of(value)))
            .collect()
    }
}

/// Where the two differ, with values cut short.
pub(crate) fn difference(got: &Outcome, expected: &Outcome) -> String {
    let (Ok(got), Ok(expected)) = (got, expected) else {
        return format!("\n  {got:.300?}\n  instead of {expected:.300?}");
    };
    let names: BTreeSet<_> = got.keys().chain(expected.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| got.get(*name) != expected.get(*name));
    let lines = differing.map(|name| {
        let shown = |form: Option<&Form>| match form {
            Some(Form { edm_type, text }) => format!("{edm_type} {text:.100?}"),
            None => "absent".to_owned(),
        };
        let (got, expected) = (shown(got.get(name)), shown(expected.get(name)));
        format!("\n  {name}: {got} instead of {expected}")
    });
    lines.collect()
}

fn bits(double: f64) -> String {
    format!("{:016x}", double.to_bits())
}
