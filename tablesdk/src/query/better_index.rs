//! Which index would answer a query that reads more entities than it returns.
//!
//! No query is changed by it: the entries of an index are of another type than the entities, so the caller names the index.

use std::fmt;
use std::slice;

use tablesdk_protocol::KeyKind;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

use crate::entity::TableEntity;
use crate::entity::index::AnyIndex;
use crate::filter::AccessClass;

/// An index that would answer a query, and how to query it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BetterIndex {
    name: &'static str,
    calls: String,
}

impl BetterIndex {
    /// Of a query of `E` with that filter; `None` where the query itself reads a range of row keys, and where no index helps.
    pub(crate) fn of<E: TableEntity>(filter: Option<&Tree>) -> Option<Self> {
        if const { E::INDEXES.is_empty() } {
            return None;
        }
        let own = E::SCHEMA.own_rows();
        let own = own.as_ref().map(terms).unwrap_or_default();
        let terms = terms(filter?).iter().filter(|term| !own.contains(term));
        let terms: Vec<&Tree> = terms.collect();
        let rest = terms.iter().copied().cloned().reduce(Tree::and);
        if AccessClass::of(rest.as_ref()) < AccessClass::Partition {
            return None;
        }
        let indexes = E::INDEXES
            .iter()
            .filter_map(|index| answer(index, &terms))
            // The first of those that narrow the query most.
            .reduce(|best, other| if other.0 > best.0 { other } else { best });
        Some(indexes?.1)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Display for BetterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, calls } = self;
        write!(f, "{name} would answer this: query {name} with {calls}")
    }
}

/// How many parts of the keys of the index the conditions give, and the calls that give them; `None` where no leading part is given.
fn answer(index: &dyn AnyIndex, terms: &[&Tree]) -> Option<(usize, BetterIndex)> {
    let name = index.name();
    let [partition, row] = index.key_parts();
    let mut calls = Vec::new();
    let mut given = 0;
    if index.is_elsewhere() {
        let mut parts = partition.iter();
        if !parts.all(|part| stated(terms, part.property) == Stated::Value) {
            return None;
        }
        given += partition.len();
        calls.push(format!("partition({name}::partition(…))"));
    } else if stated(terms, KeyKind::PartitionKey.property()) != Stated::Value {
        calls.push("partition(…)".to_owned());
    }
    let mut rows = String::new();
    let fields = index.schema().row_key()?.fields();
    for (field, part) in fields.zip(row) {
        let stated = stated(terms, part.property);
        if stated == Stated::Nothing || (stated == Stated::Range && !part.has_ranges) {
            break;
        }
        given += 1;
        rows.extend([".", field, "(…)"]);
        if stated == Stated::Range {
            break;
        }
    }
    if !rows.is_empty() {
        calls.push(format!("rows(){rows}"));
    }
    if index.is_elsewhere() {
        calls.push("follow()".to_owned());
    }
    let calls = calls.join(" and ");
    (given > 0).then_some((given, BetterIndex { name, calls }))
}

/// What the conditions say of a property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stated {
    Nothing,
    Range,
    Value,
}

fn stated(terms: &[&Tree], property: &str) -> Stated {
    let of_term = |term: &&Tree| match term {
        Tree::Comparison(it) if it.property == property => match it.operator {
            ComparisonOperator::Equal => Stated::Value,
            ComparisonOperator::NotEqual => Stated::Nothing,
            _ => Stated::Range,
        },
        _ => Stated::Nothing,
    };
    terms.iter().map(of_term).max().unwrap_or(Stated::Nothing)
}

/// What must all be true.
fn terms(filter: &Tree) -> &[Tree] {
    match filter {
        Tree::And(terms) => terms,
        one => slice::from_ref(one),
    }
}
