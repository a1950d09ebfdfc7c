//! An inner node of the map: its children, and the keys that separate them.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{Node, Outside, Split, bytes_after, common};

/// An inner node.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    separators: Separators,
    /// One more than separators. The keys of a child are not before the separator before it, and
    /// before the one after it.
    children: SmallVec<[Node; CHILDREN_MAX]>,
}

impl Inner {
    /// A root above the parts of a root that was split.
    pub(super) fn new(left: Node, split: Split) -> Self {
        let mut inner = Self {
            separators: Separators::default(),
            children: smallvec![left],
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
        // Where entries are added in the order of their keys, or in the reverse order, the other
        // part stays full.
        let at = match index {
            0..FEW => index + 1,
            FEW..MANY => CHILDREN_MAX / 2,
            _ => index,
        };
        let (separator, separators) = self.separators.split_off(at - 1);
        let mut right = Self {
            separators,
            children: self.children.drain(at..).collect(),
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
        self.children.extend(right.children.iter().cloned());
    }

    /// The child, if there is one only. It is taken out.
    pub(super) fn take_only_child(&mut self) -> Option<Node> {
        match self.children.len() {
            0 => Some(Node::default()),
            1 => self.children.pop(),
            _ => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    pub(super) fn is_small(&self) -> bool {
        self.children.len() < FEW
    }

    pub(super) fn fits_with(&self, right: &Self) -> bool {
        self.children.len() + right.children.len() <= MANY
    }
}

/// Ordered keys in one buffer.
#[derive(Clone, Debug, Default)]
struct Separators {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: SmallVec<[u32; CHILDREN_MAX]>,
    /// How many bytes all keys begin with in common, at least.
    prefix: usize,
    /// The bytes of each key after the prefix, with zeros after its end: a search reads the buffer
    /// for keys with the same head only.
    heads: SmallVec<[u128; CHILDREN_MAX]>,
}

impl Separators {
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.end(before))
    }

    fn end(&self, index: usize) -> usize {
        self.ends[index] as usize
    }

    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.end(index)]
    }

    /// How many keys are not after this one.
    fn count_up_to(&self, key: &[u8]) -> usize {
        let prefix = &self.bytes[..self.prefix];
        match prefix.cmp(&key[..key.len().min(self.prefix)]) {
            Ordering::Less => return self.ends.len(),
            Ordering::Equal => {}
            Ordering::Greater => return 0,
        }
        let head = head_of(key, self.prefix);
        // All heads in order take less time than a search in which each step waits for the memory
        // of the one before.
        let (mut low, mut high) = (0, 0);
        for separator in &self.heads {
            low += usize::from(*separator < head);
            high += usize::from(*separator <= head);
        }
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
        let prefix = match self.ends.first() {
            Some(_) => common(&self.bytes[..self.prefix], key),
            None => key.len(),
        };
        self.bytes.splice(start..start, key.iter().copied());
        self.ends.insert(index, offset(start));
        for end in &mut self.ends[index..] {
            *end += offset(key.len());
        }
        self.heads.insert(index, head_of(key, prefix));
        if prefix != self.prefix {
            self.set_prefix(prefix);
        }
    }

    fn remove(&mut self, index: usize) {
        let (start, end) = (self.start(index), self.end(index));
        self.bytes.drain(start..end);
        self.ends.remove(index);
        self.heads.remove(index);
        for after in &mut self.ends[index..] {
            *after -= offset(end - start);
        }
        if self.ends.is_empty() {
            self.prefix = 0;
        }
    }

    /// Takes the key at an index out, and all keys after it.
    fn split_off(&mut self, index: usize) -> (Vec<u8>, Self) {
        let end = self.end(index);
        let mut right = Self {
            bytes: self.bytes.split_off(end),
            ends: self.ends[index + 1..]
                .iter()
                .map(|after| after - offset(end))
                .collect(),
            ..Self::default()
        };
        let key = self.bytes.split_off(self.start(index));
        self.ends.truncate(index);
        right.find_prefix();
        self.find_prefix();
        (key, right)
    }

    fn append(&mut self, key: &[u8], right: &Self) {
        self.bytes.extend_from_slice(key);
        let start = offset(self.bytes.len());
        self.ends.push(start);
        self.bytes.extend_from_slice(&right.bytes);
        self.ends.extend(right.ends.iter().map(|end| start + end));
        self.find_prefix();
    }

    /// Finds what the keys have in common now.
    fn find_prefix(&mut self) {
        let last = self.ends.len().checked_sub(1);
        self.set_prefix(last.map_or(0, |last| common(self.get(0), self.get(last))));
    }

    fn set_prefix(&mut self, prefix: usize) {
        self.prefix = prefix;
        self.heads = (0..self.ends.len())
            .map(|index| head_of(self.get(index), prefix))
            .collect();
    }
}

/// The bytes of a key after a prefix. Keys with the same prefix are in the order of their heads, or
/// have the same head.
fn head_of(key: &[u8], prefix: usize) -> u128 {
    u128::from_be_bytes(bytes_after(key, prefix))
}

fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the separators of a node have less than 4 GiB")
}

/// A copy of a node counts a reference to each child, and each level that is saved saves a cache
/// miss.
const CHILDREN_MAX: usize = 32;

/// A part with fewer children than this counts as small, and one with the rest as full.
const FEW: usize = CHILDREN_MAX / 4;
const MANY: usize = CHILDREN_MAX - FEW;

#[cfg(test)]
impl Inner {
    /// Asserts that the node is consistent.
    pub(super) fn check(&self) {
        assert_eq!(self.separators.ends.len() + 1, self.children.len());
        self.separators.check();
        assert!(self.children.len() <= CHILDREN_MAX);
    }

    pub(super) fn separator(&self, index: usize) -> Option<&[u8]> {
        (index < self.separators.ends.len()).then(|| self.separators.get(index))
    }
}

#[cfg(test)]
impl Separators {
    /// Asserts that they are consistent.
    fn check(&self) {
        assert_eq!(self.start(self.ends.len()), self.bytes.len());
        assert_eq!(self.heads.len(), self.ends.len());
        let prefix = &self.bytes[..self.prefix];
        for (index, head) in self.heads.iter().enumerate() {
            assert!(self.get(index).starts_with(prefix));
            assert_eq!(*head, head_of(self.get(index), self.prefix));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Vec<u8>),
        Remove(Index),
        /// Splits at a key, and appends the right part again.
        Split(Index),
        /// Splits at a key, and keeps the left or the right part.
        Keep(Index, bool),
    }

    /// A key that begins like many others, or not, and may go on with zeros.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let rest = || prop::collection::vec(prop::sample::select(&[0, 1, b'a', 0xFF][..]), 0..20);
        prop_oneof![
            4 => rest().prop_map(|rest| [&b"entities of a table"[..], &rest].concat()),
            1 => (0..19_usize, rest()).prop_map(|(length, rest)| [&b"entities of a table"[..length], &rest].concat()),
            1 => rest(),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => key().prop_map(Step::Insert),
            2 => any::<Index>().prop_map(Step::Remove),
            1 => any::<Index>().prop_map(Step::Split),
            1 => (any::<Index>(), any::<bool>()).prop_map(|(index, is_left)| Step::Keep(index, is_left)),
        ]
    }

    proptest! {
        #[test]
        fn separators_behave_like_an_ordered_list(
            steps in prop::collection::vec(step(), 0..60),
            others in prop::collection::vec(key(), 8),
        ) {
            let (mut separators, mut model) = (Separators::default(), Vec::<Vec<u8>>::new());
            for step in steps {
                match step {
                    Step::Insert(key) => {
                        let index = separators.count_up_to(&key);
                        if !model.contains(&key) {
                            separators.insert(index, &key);
                            model.insert(index, key);
                        }
                    }
                    _ if model.is_empty() => {}
                    Step::Remove(index) => {
                        let index = index.index(model.len());
                        separators.remove(index);
                        model.remove(index);
                    }
                    Step::Split(index) => {
                        let index = index.index(model.len());
                        let (key, right) = separators.split_off(index);
                        separators.append(&key, &right);
                        prop_assert_eq!(&key, &model[index]);
                    }
                    Step::Keep(index, is_left) => {
                        let index = index.index(model.len());
                        let (_, right) = separators.split_off(index);
                        let after = model.split_off(index + 1);
                        model.pop();
                        if !is_left {
                            (separators, model) = (right, after);
                        }
                    }
                }
                separators.check();
                prop_assert!(model.is_sorted());
                let keys: Vec<_> = (0..separators.ends.len()).map(|index| separators.get(index)).collect();
                prop_assert_eq!(&keys, &model);
                for key in model.iter().chain(&others) {
                    let expected = model.partition_point(|known| known <= key);
                    prop_assert_eq!(separators.count_up_to(key), expected);
                }
            }
        }
    }
}
