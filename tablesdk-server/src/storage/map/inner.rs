//! An inner node of the map: its children, and the keys that separate them.

use std::sync::Arc;

use super::{Node, Outside, Split};

/// An inner node.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    separators: Separators,
    /// One more than separators. The keys of a child are not before the separator before it, and before the one after it.
    children: Vec<Node>,
}

impl Inner {
    /// A root above the parts of a root that was split.
    pub(super) fn new(left: Node, split: Split) -> Self {
        let mut inner = Self {
            separators: Separators::default(),
            children: vec![left],
        };
        inner.add(0, split);
        inner
    }

    /// The index of the child that may have a key.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.separators.count_up_to(key)
    }

    pub(super) fn child(&self, index: usize) -> &Node {
        &self.children[index]
    }

    pub(super) fn children(&self) -> &[Node] {
        &self.children
    }

    pub(super) fn insert(&mut self, key: &[u8], record: &[u8]) -> (Option<Outside>, Option<Split>) {
        let index = self.find(key);
        let (replaced, split) = self.children[index].insert(key, record);
        (replaced, split.and_then(|split| self.add(index, split)))
    }

    /// Adds the right part of a child that was split.
    fn add(&mut self, index: usize, split: Split) -> Option<Split> {
        if self.children.len() < CHILDREN_MAX {
            self.separators.insert(index, &split.separator);
            self.children.insert(index + 1, split.right);
            return None;
        }
        // Where entries are added in the order of their keys, or in the reverse order, the other part stays full.
        let at = match index {
            0..FEW => index + 1,
            FEW..MANY => CHILDREN_MAX / 2,
            _ => index,
        };
        let (separator, separators) = self.separators.split_off(at - 1);
        let mut right = Self {
            separators,
            children: self.children.split_off(at),
        };
        if index < at {
            self.add(index, split);
        } else {
            right.add(index - at, split);
        }
        Some(Split {
            separator,
            right: Node::Inner(Arc::new(right)),
        })
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Outside> {
        let index = self.find(key);
        let removed = self.children[index].remove(key);
        if self.children[index].is_empty() {
            self.children.remove(index);
            if !self.children.is_empty() {
                self.separators.remove(index.saturating_sub(1));
            }
        } else if self.children[index].is_small() {
            self.merge(index);
        }
        removed
    }

    /// Merges a small child with one of its neighbours, if they fit in one node.
    fn merge(&mut self, index: usize) {
        let fits = |left: &usize| match self.children.get(*left..*left + 2) {
            Some([left, right]) => left.fits_with(right),
            _ => false,
        };
        let Some(left) = index
            .checked_sub(1)
            .filter(fits)
            .or_else(|| Some(index).filter(fits))
        else {
            return;
        };
        let right = self.children.remove(left + 1);
        let separator = self.separators.get(left).to_vec();
        self.separators.remove(left);
        self.children[left].append(&separator, &right);
    }

    pub(super) fn append(&mut self, separator: &[u8], right: &Self) {
        self.separators.append(separator, &right.separators);
        self.children.extend_from_slice(&right.children);
    }

    /// The child, if there is one only. It is taken out.
    pub(super) fn take_only_child(&mut self) -> Option<Node> {
        match self.children.len() {
            0 => Some(Node::default()),
            1 => self.children.pop(),
            _ => None,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    pub(super) const fn is_small(&self) -> bool {
        self.children.len() < FEW
    }

    pub(super) const fn fits_with(&self, right: &Self) -> bool {
        self.children.len() + right.children.len() <= MANY
    }
}

/// Ordered keys in one buffer.
#[derive(Clone, Debug, Default)]
struct Separators {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Separators {
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.ends[index]]
    }

    /// How many keys are not after this one.
    fn count_up_to(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn insert(&mut self, index: usize, key: &[u8]) {
        let start = self.start(index);
        self.bytes.splice(start..start, key.iter().copied());
        self.ends.insert(index, start);
        for end in &mut self.ends[index..] {
            *end += key.len();
        }
    }

    fn remove(&mut self, index: usize) {
        let (start, end) = (self.start(index), self.ends.remove(index));
        self.bytes.drain(start..end);
        for after in &mut self.ends[index..] {
            *after -= end - start;
        }
    }

    /// Takes the key at an index out, and all keys after it.
    fn split_off(&mut self, index: usize) -> (Vec<u8>, Self) {
        let end = self.ends[index];
        let right = Self {
            bytes: self.bytes.split_off(end),
            ends: self.ends[index + 1..]
                .iter()
                .map(|after| after - end)
                .collect(),
        };
        let key = self.bytes.split_off(self.start(index));
        self.ends.truncate(index);
        (key, right)
    }

    fn append(&mut self, key: &[u8], right: &Self) {
        self.bytes.extend_from_slice(key);
        let start = self.bytes.len();
        self.ends.push(start);
        self.bytes.extend_from_slice(&right.bytes);
        self.ends.extend(right.ends.iter().map(|end| start + end));
    }
}

/// A copy of a node counts a reference to each child, and each level that is saved saves a cache miss.
const CHILDREN_MAX: usize = 32;

/// A part with fewer children than this counts as small, and one with the rest as full.
const FEW: usize = CHILDREN_MAX / 4;
const MANY: usize = CHILDREN_MAX - FEW;

#[cfg(test)]
impl Inner {
    /// Asserts that the node is consistent.
    pub(super) fn check(&self) {
        assert_eq!(self.separators.ends.len() + 1, self.children.len());
        assert_eq!(
            self.separators.start(self.separators.ends.len()),
            self.separators.bytes.len()
        );
        assert!(self.children.len() <= CHILDREN_MAX);
    }

    pub(super) fn separator(&self, index: usize) -> Option<&[u8]> {
        (index < self.separators.ends.len()).then(|| self.separators.get(index))
    }
}
