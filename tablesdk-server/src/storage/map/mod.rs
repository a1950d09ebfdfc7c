//! The ordered map that storages use: a B+ tree with wide leaves. A clone is cheap, and a snapshot
//! is a clone.
//!
//! Clones share nodes. A change is made in place in each node that no other clone has, and in a
//! copy of each other node on its way. Entries are in the leaves, keys and records side by side in
//! one buffer, so that an entry needs no allocation, a lookup touches few cache lines and a scan
//! reads memory in order.

mod inner;
mod leaf;
mod range;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::inner::Inner;
use self::leaf::Leaf;
pub(super) use self::range::Range;

/// An ordered map from byte keys to records.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    root: Node,
}

/// A record that is not in the buffer of its leaf, so that a copy of the leaf shares it.
pub(super) type Outside = Arc<[u8]>;

impl Map {
    /// The record under a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Inner(inner) => node = inner.child(inner.find(key)),
                Node::Leaf(leaf) => return leaf.get(key).map(|index| leaf.record(index)),
            }
        }
    }

    /// The entries from `start` up to but not including `end`; none if `start` is not before `end`.
    pub(super) fn range(&self, start: &[u8], end: &[u8]) -> Range<'_> {
        Range::new(&self.root, start, end)
    }

    /// Puts a record under a key. A large record that it replaces is returned, because freeing it
    /// takes time.
    pub(super) fn insert(&mut self, key: &[u8], record: &[u8]) -> Option<Outside> {
        let (replaced, split) = self.root.insert(key, record);
        if let Some(split) = split {
            let left = std::mem::take(&mut self.root);
            self.root = Node::Inner(Arc::new(Inner::new(left, split)));
        }
        replaced
    }

    /// Removes the record under a key, if there is one. A large record is returned, because freeing
    /// it takes time.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Outside> {
        let removed = self.root.remove(key);
        while let Node::Inner(inner) = &mut self.root {
            match Arc::make_mut(inner).take_only_child() {
                Some(only) => self.root = only,
                None => break,
            }
        }
        removed
    }
}

#[cfg(feature = "durable")]
impl Map {
    /// All entries.
    pub(super) fn iter(&self) -> Range<'_> {
        Range::all(&self.root)
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.root, Node::Leaf(leaf) if leaf.is_empty())
    }
}

/// A node of the tree. All leaves have the same depth.
#[derive(Clone, Debug)]
enum Node {
    Inner(Arc<Inner>),
    Leaf(Arc<Leaf>),
}

/// The right part of a node that was split.
struct Split {
    /// Not before any key of the left part, and not after any key of the right part.
    separator: Vec<u8>,
    right: Node,
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Arc::default())
    }
}

impl Node {
    fn insert(&mut self, key: &[u8], record: &[u8]) -> (Option<Outside>, Option<Split>) {
        match self {
            Self::Inner(inner) => Arc::make_mut(inner).insert(key, record),
            Self::Leaf(leaf) => Arc::make_mut(leaf).insert(key, record),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<Outside> {
        match self {
            Self::Inner(inner) => Arc::make_mut(inner).remove(key),
            Self::Leaf(leaf) => Arc::make_mut(leaf).remove(key),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Inner(inner) => inner.is_empty(),
            Self::Leaf(leaf) => leaf.is_empty(),
        }
    }

    /// Returns true if so little is left that the node should become a part of its neighbour.
    fn is_small(&self) -> bool {
        match self {
            Self::Inner(inner) => inner.is_small(),
            Self::Leaf(leaf) => leaf.is_small(),
        }
    }

    /// Returns true if both nodes fit in one, with room for further entries.
    fn fits_with(&self, right: &Self) -> bool {
        match (self, right) {
            (Self::Inner(left), Self::Inner(right)) => left.fits_with(right),
            (Self::Leaf(left), Self::Leaf(right)) => left.fits_with(right),
            _ => false,
        }
    }

    /// Adds the entries of the node after this one.
    fn append(&mut self, separator: &[u8], right: &Self) {
        match (self, right) {
            (Self::Inner(left), Self::Inner(right)) => {
                Arc::make_mut(left).append(separator, right);
            }
            (Self::Leaf(left), Self::Leaf(right)) => Arc::make_mut(left).append(right),
            _ => unreachable!("neighbours have the same depth"),
        }
    }
}

/// How many bytes two keys begin with in common.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The first bytes of a key after a prefix, with zeros after its end.
fn bytes_after<const N: usize>(key: &[u8], prefix: usize) -> [u8; N] {
    let rest = key.get(prefix..).unwrap_or_default();
    if let Some(first) = rest.first_chunk() {
        return *first;
    }
    let mut first = [0; N];
    first[..rest.len()].copy_from_slice(rest);
    first
}
