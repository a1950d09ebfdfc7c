//! How the service finds what a query asks for, as far as the filter shows it. This module knows
//! nothing of requests.

use std::fmt;

use super::{ComparisonOperator, Filter};
use crate::types::{EntityKey, Value};

/// How the service finds what a query asks for: what it costs, in four steps.
///
/// ```
/// # use tablesdk_protocol::filter::AccessClass;
///
/// let class = |filter: &str| Ok::<_, Box<dyn std::error::Error>>(AccessClass::of(Some(&filter.parse()?)));
/// assert_eq!(class("Name eq 'Ada'")?, AccessClass::Scan);
/// assert_eq!(class("PartitionKey eq 'Sales' and Name eq 'Ada'")?, AccessClass::Partition);
/// assert!(AccessClass::Partition < AccessClass::Scan, "it costs less");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the four that the service's design guide knows"
)]
pub enum AccessClass {
    /// One entity, by both keys.
    Point,
    /// A range of row keys in one partition.
    RowRange,
    /// One partition, all of whose entities are looked at.
    Partition,
    /// The table, all of whose entities are looked at, or those of a range of partitions.
    Scan,
}

impl AccessClass {
    /// The class in words: `point`, `row range`, `partition` or `scan`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::RowRange => "row range",
            Self::Partition => "partition",
            Self::Scan => "scan",
        }
    }

    /// The class of a query with that filter.
    pub fn of(filter: Option<&Filter>) -> Self {
        let terms = filter.map(conjuncts).unwrap_or_default();
        let is_equal = |name| terms.iter().any(|term| key_term(term, name) == Some(true));
        let is_bounded = |name| terms.iter().any(|term| key_term(term, name).is_some());
        if !is_equal(PARTITION_KEY) {
            // SERVICE: a choice between several partitions is said to be a scan, too.
            Self::Scan
        } else if is_equal(ROW_KEY) {
            Self::Point
        } else if is_bounded(ROW_KEY) {
            Self::RowRange
        } else {
            Self::Partition
        }
    }

    /// The partition that a filter is restricted to.
    pub fn partition(filter: Option<&Filter>) -> Option<&str> {
        let terms = filter.map(conjuncts).unwrap_or_default();
        terms.iter().find_map(|term| match term {
            Filter::Comparison(it) if key_term(term, PARTITION_KEY) == Some(true) => {
                match &it.literal {
                    Value::String(text) => Some(text.as_str()),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// The one entity that a filter is true of, if the filter consists of the two keys and nothing
    /// else.
    pub fn point(filter: Option<&Filter>) -> Option<EntityKey> {
        let terms = filter.map(conjuncts)?;
        let [first, second] = terms else {
            return None;
        };
        let equal = |term: &Filter, name| match term {
            Filter::Comparison(it) if it.property == name => match (&it.literal, it.operator) {
                (Value::String(text), ComparisonOperator::Equal) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let keys = |one, other| Some((equal(one, PARTITION_KEY)?, equal(other, ROW_KEY)?));
        let (partition_key, row_key) = keys(first, second).or_else(|| keys(second, first))?;
        EntityKey::new(partition_key, row_key).ok()
    }
}

impl fmt::Display for AccessClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The terms of a conjunction; any other filter is the only term.
fn conjuncts(filter: &Filter) -> &[Filter] {
    match filter {
        Filter::And(terms) => terms,
        one => std::slice::from_ref(one),
    }
}

/// Returns `None` if a condition does not bound that key; otherwise, true if it bounds the key to
/// one value.
fn key_term(term: &Filter, name: &str) -> Option<bool> {
    match term {
        Filter::Comparison(comparison)
            if comparison.property == name && matches!(comparison.literal, Value::String(_)) =>
        {
            match comparison.operator {
                ComparisonOperator::Equal => Some(true),
                ComparisonOperator::NotEqual => None,
                _ => Some(false),
            }
        }
        _ => None,
    }
}

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_has_its_class() {
        let class = |text: &str| AccessClass::of(Some(&text.parse().unwrap()));
        for (text, expected) in [
            ("PartitionKey eq 'a' and RowKey eq 'b'", AccessClass::Point),
            (
                "RowKey eq 'b' and Age gt 3 and PartitionKey eq 'a'",
                AccessClass::Point,
            ),
            (
                "PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'c'",
                AccessClass::RowRange,
            ),
            (
                "PartitionKey eq 'a' and RowKey ne 'b'",
                AccessClass::Partition,
            ),
            (
                "PartitionKey eq 'a' and RowKey gt 3",
                AccessClass::Partition,
            ),
            ("PartitionKey eq 'a'", AccessClass::Partition),
            (
                "PartitionKey eq 'a' and (RowKey eq 'b' or RowKey eq 'c')",
                AccessClass::Partition,
            ),
            (
                "PartitionKey ge 'a' and PartitionKey lt 'b'",
                AccessClass::Scan,
            ),
            (
                "PartitionKey eq 'a' or PartitionKey eq 'b'",
                AccessClass::Scan,
            ),
            ("not (PartitionKey eq 'a')", AccessClass::Scan),
            ("RowKey eq 'b'", AccessClass::Scan),
            ("Age gt 3", AccessClass::Scan),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
        assert_eq!(AccessClass::of(None), AccessClass::Scan);
    }

    #[test]
    fn a_point_is_two_keys_and_nothing_else() {
        let point = |text: &str| AccessClass::point(Some(&text.parse().unwrap()));
        let key = EntityKey::new("a", "b").ok();
        assert_eq!(point("PartitionKey eq 'a' and RowKey eq 'b'"), key);
        assert_eq!(point("RowKey eq 'b' and PartitionKey eq 'a'"), key);
        for text in [
            "PartitionKey eq 'a'",
            "PartitionKey eq 'a' and PartitionKey eq 'b'",
            "PartitionKey eq 'a' and RowKey ge 'b'",
            "PartitionKey eq 'a' and RowKey eq 'b' and Age gt 3",
            "PartitionKey eq 'a' or RowKey eq 'b'",
            "PartitionKey eq 'a/b' and RowKey eq 'b'",
        ] {
            assert_eq!(point(text), None, "{text}");
        }
    }
}
