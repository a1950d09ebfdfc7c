//! The indexes of a type, for its queries: which one would answer a query that reads more entities
//! than it returns.
//!
//! No query is changed by it: the entries of an index are of another type than the entities, so the
//! caller names the index.

use std::slice;

use tablesdk_protocol::KeyKind;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

use super::entry::{AnyIndex, Indexed};
use crate::action::extend::extension::{Extend, Extension, Extensions};
use crate::entity::{Schema, TableEntity};
use crate::filter::AccessClass;
use crate::patterns::order;
use crate::query::{Advice, Explanation};

/// The indexes of a type.
pub(crate) struct Indexes {
    schema: &'static Schema,
    all: fn() -> Vec<&'static dyn AnyIndex>,
}

impl Indexes {
    pub(super) const fn of<E: Indexed>() -> Self {
        Self {
            schema: const { &E::SCHEMA },
            all: || E::INDEXES.iter().map(|index| index as _).collect(),
        }
    }

    fn all(&self) -> Vec<&'static dyn AnyIndex> {
        (self.all)()
    }
}

/// The indexes of a type, those of all variants of an enum.
pub(crate) fn indexes_of<E: TableEntity>() -> Vec<&'static dyn AnyIndex> {
    let extensions = Extensions::all::<E>();
    let indexes = extensions.iter().filter_map(Extension::find::<Indexes>);
    indexes.flat_map(Indexes::all).collect()
}

impl Extend for Indexes {
    fn order(&self) -> u8 {
        order::INDEX
    }

    fn only_advises(&self) -> bool {
        true
    }

    /// The first of the indexes that narrow a query with that filter most. Those of a variant do
    /// not answer a query of its enum.
    fn advise(&self, schema: &'static Schema, filter: Option<&Tree>) -> Option<Advice> {
        if schema.has_variants() {
            return None;
        }
        let own = [self.schema.own_partitions(), self.schema.own_rows()];
        let own: Vec<_> = own.iter().flatten().flat_map(terms).collect();
        let terms = terms(filter?).iter().filter(|term| !own.contains(term));
        let terms: Vec<&Tree> = terms.collect();
        let rest = terms.iter().copied().cloned().reduce(Tree::and);
        if AccessClass::of(rest.as_ref()) < AccessClass::Partition {
            return None;
        }
        let all = self.all().into_iter();
        let answers = all.filter_map(|index| answer(index, &terms));
        let best = answers.reduce(|best, other| if other.0 > best.0 { other } else { best });
        Some(best?.1)
    }
}

impl Explanation {
    /// The name of the [index](crate::guide::indexes) that would answer the query, where the query
    /// itself reads all entities of a partition, or of the table, and its filter gives leading
    /// parts of the keys of that index. Printed, the explanation names the methods to call. An
    /// index in the partitions of its entities answers for one partition, and one in other
    /// partitions for the whole table.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// let query = table.query::<Employee>().partition("Sales").filter(|e| e.email.eq("ada@contoso.com"));
    /// assert_eq!(query.explain()?.index(), Some("ByEmail"));
    ///
    /// let better = table.query::<ByEmail>().partition("Sales").rows(ByEmail::rows().email("ada@contoso.com"));
    /// assert_eq!(better.explain()?.access().as_str(), "point");
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self) -> Option<&'static str> {
        self.advice.as_ref().map(|advice| advice.name)
    }
}

/// How many parts of the keys of the index the conditions give, and the calls that give them;
/// `None` where no leading part is given.
fn answer(index: &dyn AnyIndex, terms: &[&Tree]) -> Option<(usize, Advice)> {
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
    let text = format!("{name} would answer this: query {name} with {calls}");
    let noun = "index";
    (given > 0).then_some((given, Advice { noun, name, text }))
}

/// The statement of the conditions about a property.
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

/// The conditions that must all be true.
fn terms(filter: &Tree) -> &[Tree] {
    match filter {
        Tree::And(terms) => terms,
        one => slice::from_ref(one),
    }
}
