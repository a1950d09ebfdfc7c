//! The states that a search keeps, without those that another one makes superfluous.

use std::collections::HashMap;

use crate::register::State;

/// A state that is possible, and the operations in flight that have taken effect on the way to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Possible {
    pub(crate) state: State,
    /// Writes that must take effect.
    writes: Set,
    passed: Passed,
}

/// Operations of which it is better to have more, or fewer.
#[derive(Clone, Debug, Default)]
struct Passed {
    /// Reads and rejections: the more have taken effect, the fewer remain.
    settled: Set,
    /// Writes that need not take effect: the fewer have, the more remain.
    spent: Set,
}

impl Possible {
    /// Returns true if the operation has taken effect.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.writes.has(index) || self.passed.settled.has(index) || self.passed.spent.has(index)
    }

    /// Lets a write take effect.
    pub(crate) fn write(&mut self, index: usize, is_required: bool, state: State) {
        self.state = state;
        if is_required {
            self.writes.insert(index);
        } else {
            self.passed.spent.insert(index);
        }
    }

    /// Lets a read or a rejection take effect.
    pub(crate) fn settle(&mut self, index: usize) {
        self.passed.settled.insert(index);
    }

    /// The operation is not in flight any more.
    pub(crate) fn forget(&mut self, index: usize) {
        self.writes.remove(index);
        self.passed.settled.remove(index);
    }
}

impl Passed {
    /// Returns true if all that is possible after the other one is possible after this one.
    fn covers(&self, other: &Self) -> bool {
        self.spent.is_within(&other.spent) && other.settled.is_within(&self.settled)
    }
}

/// Possible states. None of them covers another one.
#[derive(Default)]
pub(crate) struct Frontier {
    groups: HashMap<(State, Set), Vec<Passed>>,
    count: usize,
}

impl Frontier {
    /// Returns whether it is new, and not superfluous.
    pub(crate) fn add(&mut self, possible: &Possible) -> bool {
        let key = (possible.state, possible.writes.clone());
        let group = self.groups.entry(key).or_default();
        if group.iter().any(|other| other.covers(&possible.passed)) {
            return false;
        }
        self.count -= group.len();
        group.retain(|other| !possible.passed.covers(other));
        group.push(possible.passed.clone());
        self.count += group.len();
        true
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn into_vec(self) -> Vec<Possible> {
        let groups = self.groups.into_iter();
        let states = groups.flat_map(|((state, writes), group)| {
            group.into_iter().map(move |passed| Possible {
                state,
                writes: writes.clone(),
                passed,
            })
        });
        states.collect()
    }
}

/// A small set of operations, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Set(Vec<usize>);

impl Set {
    fn has(&self, index: usize) -> bool {
        self.0.binary_search(&index).is_ok()
    }

    fn insert(&mut self, index: usize) {
        if let Err(place) = self.0.binary_search(&index) {
            self.0.insert(place, index);
        }
    }

    fn remove(&mut self, index: usize) {
        if let Ok(place) = self.0.binary_search(&index) {
            self.0.remove(place);
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().all(|index| other.has(*index))
    }
}
