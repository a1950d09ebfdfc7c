//! The entries of a range of keys, in order.

use std::ops::ControlFlow;
use std::{mem, slice};

use super::Node;
use super::leaf::{Entries, Leaf};

/// Iterates over the entries of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range<'m> {
    /// The next entries of the leaf that is read, as far as they are part of the range.
    entries: Entries<'m>,
    /// On each level above the leaf, the nodes after the ones that are read.
    path: Vec<slice::Iter<'m, Node>>,
    /// Before which key the range ends; `None` for the end of the map.
    end: Option<Box<[u8]>>,
}

impl<'m> Range<'m> {
    pub(super) fn new(root: &'m Node, start: &[u8], end: &[u8]) -> Self {
        let mut range = Self::default();
        if start < end {
            range.end = Some(end.into());
            range.seek(root, start);
        }
        range
    }

    #[cfg(feature = "durable")]
    pub(super) fn all(root: &'m Node) -> Self {
        let mut range = Self::default();
        range.seek(root, &[]);
        range
    }

    fn seek(&mut self, mut node: &'m Node, start: &[u8]) {
        loop {
            match node {
                Node::Inner(inner) => {
                    let mut nodes = inner.children()[inner.find(start)..].iter();
                    let Some(next) = nodes.next() else {
                        return;
                    };
                    self.path.push(nodes);
                    node = next;
                }
                Node::Leaf(leaf) => {
                    self.enter(leaf, leaf.find(start).unwrap_or_else(|index| index));
                    return;
                }
            }
        }
    }

    fn enter(&mut self, leaf: &'m Leaf, from: usize) {
        let mut until = leaf.len();
        // One comparison for each leaf instead of one for each entry.
        if let (Some(end), Some(last)) = (&self.end, until.checked_sub(1))
            && leaf.key(last) >= &**end
        {
            until = leaf.find(end).unwrap_or_else(|index| index);
            self.path.clear();
        }
        self.entries = leaf.entries(from, until);
    }

    /// Passes the entries to a visitor until it breaks. Leaf by leaf, so that nothing but the place
    /// in the leaf changes between two entries.
    #[inline]
    pub(crate) fn visit<B>(
        mut self,
        mut visitor: impl FnMut(&'m [u8], &'m [u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        loop {
            for (key, record) in mem::take(&mut self.entries) {
                visitor(key, record)?;
            }
            if self.advance().is_none() {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Enters the next leaf; `None` at the end of the range.
    fn advance(&mut self) -> Option<()> {
        loop {
            match self.path.last_mut()?.next() {
                Some(Node::Inner(inner)) => self.path.push(inner.children().iter()),
                Some(Node::Leaf(leaf)) => {
                    self.enter(leaf, 0);
                    return Some(());
                }
                None => {
                    self.path.pop();
                }
            }
        }
    }
}

impl<'m> Iterator for Range<'m> {
    type Item = (&'m [u8], &'m [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            self.advance()?;
        }
    }
}
