//! The conditions of a query. Their order in the request does not depend on the order of the calls
//! that made them, so that a page token fits a query that was written in another order.

use std::collections::BTreeMap;
use std::mem;

use tablesdk_protocol::filter::Filter as Tree;

use crate::error::Error;

/// The origins of conditions, in the order in which conditions are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// The type of the entities.
    Type,
    /// The partitions of the type: a condition for one partition implies it.
    Partitions,
    Partition,
    Rows,
    /// The selected columns: not every entity has them.
    Selection,
    Filter,
    OData,
    /// The position at which a run resumes.
    Resume,
}

/// The conditions of a query, or the first error of them.
#[derive(Debug)]
pub(crate) struct Conditions(Result<BTreeMap<Condition, Tree>, Error>);

impl Conditions {
    pub(crate) const fn new() -> Self {
        Self(Ok(BTreeMap::new()))
    }

    /// Adds a condition to those that are made in the same way.
    pub(crate) fn add(&mut self, made_by: Condition, tree: Result<Tree, Error>) {
        match (&mut self.0, tree) {
            (Ok(trees), Ok(tree)) => {
                let tree = match trees.remove(&made_by) {
                    Some(before) => before.and(tree),
                    None => tree,
                };
                trees.insert(made_by, tree);
            }
            (Ok(_), Err(error)) => self.0 = Err(error),
            (Err(_), _) => {}
        }
    }

    /// Removes the conditions that are made in that way.
    pub(crate) fn remove(&mut self, made_by: Condition) {
        if let Ok(trees) = &mut self.0 {
            trees.remove(&made_by);
        }
    }

    /// All conditions together.
    pub(crate) fn tree(&self) -> Result<Option<Tree>, &Error> {
        let trees = self.0.as_ref()?;
        Ok(trees.values().cloned().reduce(Tree::and))
    }

    /// As [`tree`](Self::tree), and leaves no condition behind.
    pub(crate) fn take(&mut self) -> Result<Option<Tree>, Error> {
        let trees = mem::replace(self, Self::new()).0?;
        Ok(trees.into_values().reduce(Tree::and))
    }
}
