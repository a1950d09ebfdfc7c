//! Walks a filter without recursion, so that a deep one costs memory and no stack: a fold, and what
//! clones, compares and drops it.
//!
//! Knows the form of the tree and nothing of what its leaves say.

use std::mem;
use std::slice;

use super::{Comparison, Filter};

impl Filter {
    /// The terms that the filter joins or negates, in order; none for a comparison, a constant or a
    /// property.
    pub const fn terms(&self) -> &[Self] {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.as_slice(),
            Self::Not(negated) => slice::from_ref(negated),
            Self::Comparison(_) | Self::Constant(_) | Self::Properties(_) | Self::Property(_) => {
                &[]
            }
        }
    }

    /// Combines the tree from its leaves up, in order: each filter with what came of its
    /// [terms](Self::terms).
    ///
    /// ```
    /// use tablesdk_protocol::filter::Filter;
    ///
    /// let filter: Filter = "a eq 1 and not (b or c)".parse()?;
    /// let comparisons = filter.fold(|filter, terms: Vec<usize>| match filter {
    ///     Filter::Comparison(_) => 1,
    ///     _ => terms.iter().sum(),
    /// });
    /// assert_eq!(comparisons, 1);
    /// # Ok::<(), tablesdk_protocol::filter::ParseFilterError>(())
    /// ```
    pub fn fold<'f, T>(&'f self, mut combine: impl FnMut(&'f Self, Vec<T>) -> T) -> T {
        let mut open: Vec<Unfinished<'f, T>> = Vec::new();
        let mut current = Unfinished::new(self);
        loop {
            if let Some(term) = current.rest.next() {
                open.push(mem::replace(&mut current, Unfinished::new(term)));
                continue;
            }
            let combined = combine(current.filter, current.done);
            match open.pop() {
                Some(parent) => current = parent,
                None => return combined,
            }
            current.done.push(combined);
        }
    }

    /// The same filter with something else in the place of each comparison with a literal.
    ///
    /// ```
    /// use tablesdk_protocol::filter::Filter;
    ///
    /// let filter: Filter = "a eq 1 and not (b eq 2)".parse()?;
    /// let doubled = filter.map_comparisons(|comparison| Filter::Comparison(comparison.clone()).or(Filter::Constant(false)));
    /// assert_eq!(doubled.to_string(), "(a eq 1 or false) and not (b eq 2 or false)");
    /// # Ok::<(), tablesdk_protocol::filter::ParseFilterError>(())
    /// ```
    #[must_use]
    pub fn map_comparisons(&self, mut map: impl FnMut(&Comparison) -> Self) -> Self {
        self.fold(|filter, mut terms| match filter {
            Self::And(_) => Self::And(terms),
            Self::Comparison(comparison) => map(comparison),
            Self::Constant(constant) => Self::Constant(*constant),
            Self::Not(_) => !terms.pop().expect("a negation has one term"),
            Self::Or(_) => Self::Or(terms),
            Self::Properties(comparison) => Self::Properties(comparison.clone()),
            Self::Property(name) => Self::Property(name.clone()),
        })
    }

    /// Moves those terms out that have terms of their own.
    fn take_branches(&mut self, branches: &mut Vec<Self>) {
        match self {
            Self::And(terms) | Self::Or(terms) => {
                let has_terms = |term: &mut Self| !term.terms().is_empty();
                branches.extend(terms.extract_if(.., has_terms));
            }
            Self::Not(negated) if !negated.terms().is_empty() => {
                branches.push(mem::replace(negated, Self::Constant(false)));
            }
            _ => {}
        }
    }
}

/// A filter whose terms are not all folded.
struct Unfinished<'f, T> {
    filter: &'f Filter,
    rest: slice::Iter<'f, Filter>,
    done: Vec<T>,
}

impl<'f, T> Unfinished<'f, T> {
    fn new(filter: &'f Filter) -> Self {
        let terms = filter.terms();
        Self {
            filter,
            rest: terms.iter(),
            done: Vec::with_capacity(terms.len()),
        }
    }
}

impl Clone for Filter {
    fn clone(&self) -> Self {
        self.map_comparisons(|comparison| Self::Comparison(comparison.clone()))
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = vec![(self, other)];
        while let Some((left, right)) = pairs.pop() {
            let is_equal = match (left, right) {
                (Self::And(_), Self::And(_))
                | (Self::Not(_), Self::Not(_))
                | (Self::Or(_), Self::Or(_)) => left.terms().len() == right.terms().len(),
                (Self::Comparison(left), Self::Comparison(right)) => left == right,
                (Self::Constant(left), Self::Constant(right)) => left == right,
                (Self::Properties(left), Self::Properties(right)) => left == right,
                (Self::Property(left), Self::Property(right)) => left == right,
                _ => false,
            };
            if !is_equal {
                return false;
            }
            pairs.extend(left.terms().iter().zip(right.terms()));
        }
        true
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let mut branches = Vec::new();
        self.take_branches(&mut branches);
        while let Some(mut branch) = branches.pop() {
            branch.take_branches(&mut branches);
        }
    }
}
