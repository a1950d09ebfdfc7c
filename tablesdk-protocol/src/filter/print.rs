//! Prints a filter as the string of `$filter`, with no more parentheses than necessary.
//!
//! Comparisons bind tighter than `not`, `not` than `and`, `and` than `or`. Text only:
//! percent-encoding for the URL is not done here. Deliberately knows nothing of the limits of the
//! parser: a tree of any depth prints, without recursion.

use std::fmt;
use std::slice;

use super::{Comparison, ComparisonOperator, Filter, PropertyComparison};
use crate::types::ValueRef;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = vec![Piece::Filter(self, Binding::Or)];
        while let Some(piece) = pieces.pop() {
            match piece {
                Piece::Filter(filter, within) => filter.write(f, within, &mut pieces)?,
                Piece::Others(mut terms, binding) => {
                    if let Some(term) = terms.next() {
                        f.write_str(match binding {
                            Binding::And => " and ",
                            Binding::Or => " or ",
                        })?;
                        pieces.push(Piece::Others(terms, binding));
                        pieces.push(Piece::Filter(term, binding));
                    }
                }
                Piece::Text(text) => f.write_str(text)?,
            }
        }
        Ok(())
    }
}

/// The string form: a tree of any depth in one line.
impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let literal = Literal(self.literal.as_ref());
        write!(f, "{} {} {literal}", self.property, self.operator)
    }
}

impl fmt::Display for PropertyComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let right = self.right.as_deref().unwrap_or("null");
        write!(f, "{} {} {right}", self.left, self.operator)
    }
}

impl fmt::Display for ComparisonOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operators that join terms, the loosest first.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
}

/// A part of the filter that is still to be written. The parts are a stack: the last of a list is
/// written first.
enum Piece<'f> {
    Filter(&'f Filter, Binding),
    /// The terms after the first.
    Others(slice::Iter<'f, Filter>, Binding),
    Text(&'static str),
}

impl Filter {
    /// Writes the beginning, and leaves the rest in `pieces`.
    fn write<'f>(
        &'f self,
        f: &mut fmt::Formatter<'_>,
        within: Binding,
        pieces: &mut Vec<Piece<'f>>,
    ) -> fmt::Result {
        let (terms, binding) = match self {
            Self::And(terms) => (terms, Binding::And),
            Self::Comparison(comparison) => return write!(f, "{comparison}"),
            Self::Constant(constant) => return write!(f, "{constant}"),
            Self::Not(negated) => {
                pieces.push(Piece::Text(")"));
                pieces.push(Piece::Filter(negated, Binding::Or));
                return f.write_str("not (");
            }
            Self::Or(terms) => (terms, Binding::Or),
            Self::Properties(comparison) => return write!(f, "{comparison}"),
            Self::Property(name) => return f.write_str(name),
        };
        match terms.as_slice() {
            // An empty `And` is true; an empty `Or` is false.
            [] => write!(f, "{}", binding == Binding::And),
            [only] => {
                pieces.push(Piece::Filter(only, within));
                Ok(())
            }
            [first, others @ ..] => {
                if binding < within {
                    f.write_str("(")?;
                    pieces.push(Piece::Text(")"));
                }
                pieces.push(Piece::Others(others.iter(), binding));
                pieces.push(Piece::Filter(first, binding));
                Ok(())
            }
        }
    }
}

/// Prints a value as a literal of the language, from which its type follows.
///
/// ```
/// use tablesdk_protocol::ValueRef;
/// use tablesdk_protocol::filter::Literal;
///
/// assert_eq!(Literal(ValueRef::Int64(7)).to_string(), "7L");
/// assert_eq!(Literal(ValueRef::String("O'Hare".into())).to_string(), "'O''Hare'");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a value and nothing else")]
pub struct Literal<'a>(pub ValueRef<'a>);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ValueRef::Binary(bytes) => {
                f.write_str("X'")?;
                // A value has up to 64 KiB: the formatter is called once for many digits.
                let digit = |half| match half {
                    0..=9 => b'0' + half,
                    _ => b'a' - 10 + half,
                };
                let mut digits = [0; 128];
                for piece in bytes.chunks(digits.len() / 2) {
                    let (pairs, _) = digits.as_chunks_mut();
                    for (pair, byte) in pairs.iter_mut().zip(piece) {
                        *pair = [digit(byte >> 4), digit(byte & 0xF)];
                    }
                    let printed = digits.get(..2 * piece.len()).unwrap_or_default();
                    f.write_str(str::from_utf8(printed).map_err(|_| fmt::Error)?)?;
                }
                f.write_str("'")
            }
            ValueRef::Boolean(value) => write!(f, "{value}"),
            ValueRef::DateTime(value) => write!(f, "datetime'{value}'"),
            ValueRef::Double(f64::INFINITY) => f.write_str("INF"),
            ValueRef::Double(f64::NEG_INFINITY) => f.write_str("-INF"),
            // `Debug` is the shortest that reads back, always with a point or an exponent, and
            // `NaN` as it should be.
            ValueRef::Double(value) => write!(f, "{value:?}"),
            ValueRef::Guid(value) => write!(f, "guid'{value}'"),
            ValueRef::Int32(value) => write!(f, "{value}"),
            ValueRef::Int64(value) => write!(f, "{value}L"),
            ValueRef::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filter::OPERATORS;
    use crate::types::{Guid, Timestamp, Value};

    fn property(name: &str) -> Filter {
        Filter::Property(name.to_owned())
    }

    #[test]
    fn trees_without_a_string_form_print_an_equivalent() {
        let (a, b, c) = (|| property("a"), || property("b"), || property("c"));
        for (filter, printed) in [
            (Filter::And(vec![]), "true"),
            (Filter::Or(vec![]), "false"),
            (Filter::Or(vec![a().and(b())]).and(c()), "a and b and c"),
            (
                Filter::Or(vec![Filter::Or(vec![a().or(b())])]).and(c()),
                "(a or b) and c",
            ),
        ] {
            assert_eq!(filter.to_string(), printed);
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(filter in any_filter()) {
            let printed = filter.to_string();
            prop_assert_eq!(form(&printed.parse().unwrap()), form(&filter), "{}", printed);
        }
    }

    /// The tree as it is. Distinguishes -0.0 from 0.0 and all neighbouring doubles; NaN equals NaN.
    fn form(filter: &Filter) -> String {
        filter.fold(|filter, terms: Vec<String>| match filter {
            Filter::And(_) => format!("all{terms:?}"),
            Filter::Comparison(comparison) => format!("{comparison:?}"),
            Filter::Constant(constant) => format!("{constant}"),
            Filter::Not(_) => format!("not{terms:?}"),
            Filter::Or(_) => format!("any{terms:?}"),
            Filter::Properties(comparison) => format!("{comparison:?}"),
            Filter::Property(name) => format!("property {name}"),
        })
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<Vec<u8>>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(
                |at| Timestamp::from_unix_ticks(at % 100_000_000_000_000_000)
                    .unwrap()
                    .into()
            ),
            any::<u64>().prop_map(|bits| Value::from(f64::from_bits(bits))),
            prop::sample::select(vec![
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                1e16,
                5e-324,
                f64::MAX
            ])
            .prop_map(Value::from),
            any::<[u8; 16]>().prop_map(|bytes| Guid::from_bytes(bytes).into()),
            any::<i32>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,9}|['a ]{0,5}".prop_map(Value::from),
        ]
    }

    fn any_name() -> impl Strategy<Value = String> {
        "[a-zé_啊][a-z0-9é_啊]{0,4}"
            .prop_filter("reserved", |name| name.parse() == Ok(property(name)))
    }

    fn any_filter() -> impl Strategy<Value = Filter> {
        let operator = prop::sample::select(OPERATORS.to_vec());
        let leaf = prop_oneof![
            4 => (any_name(), operator, any_value())
                .prop_map(|(name, operator, value)| Filter::comparison(name, operator, value)),
            1 => any_name().prop_map(Filter::Property),
            1 => any::<bool>().prop_map(Filter::Constant),
        ];
        leaf.prop_recursive(6, 40, 4, |inner| {
            let terms = || prop::collection::vec(inner.clone(), 2..5);
            prop_oneof![
                terms().prop_map(|terms| terms.into_iter().reduce(Filter::and).unwrap()),
                terms().prop_map(|terms| terms.into_iter().reduce(Filter::or).unwrap()),
                inner.clone().prop_map(|filter| !filter),
            ]
        })
    }
}
