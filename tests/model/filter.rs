//! Random filters: their spelling, in every form of the grammar, and their meaning.

use std::cmp::Ordering;

use fastrand::Rng;

use crate::oracle::{KEYS, NAMES};
use crate::value::Val;

#[derive(Clone, Debug)]
pub(crate) enum Filter {
    And(Box<Filter>, Box<Filter>),
    Bare(&'static str),
    Compare(&'static str, &'static str, Val),
    Constant(bool),
    Not(Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
}

impl Filter {
    pub(crate) fn random(rng: &mut Rng, depth: u32) -> Self {
        let branch = |rng: &mut Rng| Box::new(Self::random(rng, depth - 1));
        match rng.u8(..if depth == 0 { 12 } else { 20 }) {
            0 => Self::Constant(rng.bool()),
            1 => Self::Bare(NAMES[rng.usize(..NAMES.len())]),
            2..=5 => {
                let key = Val::Text(KEYS[rng.usize(..KEYS.len())].to_owned());
                let name = ["PartitionKey", "RowKey"][rng.usize(..2)];
                Self::Compare(name, operator(rng), key)
            }
            6 => {
                let name = ["PartitionKey", "RowKey"][rng.usize(..2)];
                Self::Compare(name, operator(rng), Val::random(rng))
            }
            7..=11 => {
                let name = NAMES[rng.usize(..NAMES.len())];
                Self::Compare(name, operator(rng), Val::random(rng))
            }
            12..=14 => Self::And(branch(rng), branch(rng)),
            15..=17 => Self::Or(branch(rng), branch(rng)),
            _ => Self::Not(branch(rng)),
        }
    }

    /// Puts parentheses where they are needed, and sometimes where they are not.
    pub(crate) fn text(&self, rng: &mut Rng) -> String {
        let text = match self {
            Self::And(a, b) => format!("({}) and ({})", a.text(rng), b.text(rng)),
            Self::Or(a, b) => format!("({})or({})", a.text(rng), b.text(rng)),
            Self::Not(a) => format!("not ({})", a.text(rng)),
            Self::Bare(name) => (*name).to_owned(),
            Self::Constant(value) => value.to_string(),
            Self::Compare(name, operator, value) if rng.bool() => {
                format!("{name} {operator} {}", value.literal())
            }
            Self::Compare(name, operator, value) => {
                let flipped = match *operator {
                    "ge" => "le",
                    "gt" => "lt",
                    "le" => "ge",
                    "lt" => "gt",
                    same => same,
                };
                format!("{}  {flipped} {name}", value.literal())
            }
        };
        if rng.u8(..4) == 0 {
            format!("( {text} )")
        } else {
            text
        }
    }

    /// Returns true if an entity with these properties, which include the keys, matches.
    pub(crate) fn holds(&self, property: &dyn Fn(&str) -> Option<Val>) -> bool {
        match self {
            Self::And(a, b) => a.holds(property) && b.holds(property),
            Self::Or(a, b) => a.holds(property) || b.holds(property),
            Self::Not(a) => !a.holds(property),
            Self::Constant(value) => *value,
            Self::Bare(name) => property(name) == Some(Val::Boolean(true)),
            Self::Compare(name, operator, literal) => {
                // An absent property satisfies no comparison, not even `ne`.
                let Some(value) = property(name) else {
                    return false;
                };
                let order = value.compare(literal);
                match *operator {
                    "eq" => order == Some(Ordering::Equal),
                    "ge" => order.is_some_and(Ordering::is_ge),
                    "gt" => order == Some(Ordering::Greater),
                    "le" => order.is_some_and(Ordering::is_le),
                    "lt" => order == Some(Ordering::Less),
                    _ => order != Some(Ordering::Equal),
                }
            }
        }
    }
}

fn operator(rng: &mut Rng) -> &'static str {
    ["eq", "eq", "eq", "ge", "gt", "le", "lt", "ne"][rng.usize(..8)]
}
