//! The map behaves like `BTreeMap`, and so do its clones. Its nodes are filled, and freed when
//! their entries are removed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;

use super::leaf::INSIDE_MAX;
use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The numbers of the parts of a map.
#[derive(Debug, Default, PartialEq, Eq)]
struct Size {
    depth: usize,
    inners: usize,
    leaves: usize,
    entries: usize,
    /// The bytes of the buffers.
    capacity: usize,
}

impl Map {
    /// Asserts that the tree is consistent.
    fn size(&self) -> Size {
        let mut size = Size::default();
        size.add(&self.root, 0, None, None);
        assert!(
            size.leaves == 1 || size.entries >= size.leaves,
            "a leaf is empty"
        );
        size
    }
}

impl Size {
    /// Adds a node whose keys are not before the lower key, and before the upper key.
    fn add(&mut self, node: &Node, depth: usize, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        match node {
            Node::Inner(inner) => {
                inner.check();
                self.inners += 1;
                assert!(depth > 0 || inner.children().len() > 1);
                for (index, child) in inner.children().iter().enumerate() {
                    assert!(!child.is_empty());
                    let before = index.checked_sub(1);
                    let lower = before.and_then(|before| inner.separator(before)).or(lower);
                    let upper = inner.separator(index).or(upper);
                    self.add(child, depth + 1, lower, upper);
                }
            }
            Node::Leaf(leaf) => {
                leaf.check();
                let keys = (0..leaf.len()).map(|index| leaf.key(index));
                assert!(keys.clone().is_sorted_by(|a, b| a < b));
                assert!(
                    keys.clone()
                        .all(|key| lower.is_none_or(|lower| lower <= key))
                );
                assert!(
                    keys.clone()
                        .all(|key| upper.is_none_or(|upper| key < upper))
                );
                if self.leaves == 0 {
                    self.depth = depth;
                }
                assert_eq!(self.depth, depth);
                self.leaves += 1;
                self.entries += leaf.len();
                self.capacity += leaf.capacity();
            }
        }
    }
}

/// A change of a map, or a clone.
#[derive(Clone, Debug)]
enum Step {
    Clone,
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    /// Puts records of this length under keys from a number on, so many times, with a distance.
    Fill(u16, u16, i16, usize),
    /// Removes the keys from a number on, so many times, with a distance.
    Clear(u16, u16, i16),
    /// Replaces the record of an existing key.
    Replace(Index, usize),
}

fn numbered(number: u16) -> Vec<u8> {
    format!("a rather long prefix, as that of a partition/{number:05}").into_bytes()
}

fn record(number: u16, length: usize) -> Vec<u8> {
    let [byte, _] = number.to_le_bytes();
    vec![byte; length]
}

/// The numbers from one on, so many, with a distance.
fn numbers(from: u16, count: u16, distance: i16) -> impl Iterator<Item = u16> {
    let next = move |number: &u16| Some(number.wrapping_add_signed(distance));
    std::iter::successors(Some(from), next).take(count.into())
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0_u16..400).prop_map(numbered),
        2 => prop::collection::vec(any::<u8>(), 0..4),
        1 => (1_usize..40_000, 0_u8..3).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0),
        6 => 0..600_usize,
        2 => INSIDE_MAX - 5..INSIDE_MAX + 5,
        1 => INSIDE_MAX..50_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let distance = || prop_oneof![Just(1), Just(-1), -40_i16..40];
    let count = || 0_u16..400;
    prop_oneof![
        2 => Just(Step::Clone),
        6 => (key(), any::<u8>(), length()).prop_map(|(key, byte, length)| Step::Put(key, vec![byte; length])),
        4 => key().prop_map(Step::Remove),
        3 => (count(), count(), distance(), length()).prop_map(|(from, count, distance, length)| {
            Step::Fill(from, count, distance, length)
        }),
        3 => (count(), count(), distance()).prop_map(|(from, count, distance)| {
            Step::Clear(from, count, distance)
        }),
        3 => (any::<Index>(), length()).prop_map(|(index, length)| Step::Replace(index, length)),
    ]
}

fn put(map: &mut Map, model: &mut Model, key: Vec<u8>, record: Vec<u8>) {
    let replaced = map.insert(&key, &record);
    let expected = model.insert(key, record);
    let expected = expected.filter(|record| record.len() > INSIDE_MAX);
    assert_eq!(replaced.as_deref(), expected.as_deref());
}

fn remove(map: &mut Map, model: &mut Model, key: &[u8]) {
    let removed = map.remove(key);
    let expected = model.remove(key);
    let expected = expected.filter(|record| record.len() > INSIDE_MAX);
    assert_eq!(removed.as_deref(), expected.as_deref());
}

fn take(map: &mut Map, model: &mut Model, step: Step) {
    match step {
        Step::Clone => {}
        Step::Put(key, record) => put(map, model, key, record),
        Step::Remove(key) => remove(map, model, &key),
        Step::Fill(from, count, distance, length) => {
            for number in numbers(from, count, distance) {
                put(map, model, numbered(number), record(number, length));
            }
        }
        Step::Clear(from, count, distance) => {
            for number in numbers(from, count, distance) {
                remove(map, model, &numbered(number));
            }
        }
        Step::Replace(index, length) => {
            if !model.is_empty() {
                let key = model.keys().nth(index.index(model.len())).unwrap().clone();
                put(map, model, key, record(7, length));
            }
        }
    }
}

fn entries<'m>(range: impl Iterator<Item = (&'m [u8], &'m [u8])>) -> Vec<(&'m [u8], &'m [u8])> {
    range.collect()
}

fn assert_same(map: &Map, model: &Model) {
    assert_eq!(map.size().entries, model.len());
    let expected = model.iter().map(|(key, record)| (&**key, &**record));
    assert_eq!(
        entries(map.range(&[], &vec![0xFF; 50_000])),
        entries(expected)
    );
}

proptest! {
    #[test]
    fn maps_and_their_clones_behave_like_models(
        steps in prop::collection::vec(step(), 0..40),
        bounds in prop::collection::vec((key(), key()), 8),
    ) {
        let (mut map, mut model) = (Map::default(), Model::new());
        let mut clones = Vec::new();
        for step in steps {
            if matches!(step, Step::Clone) {
                clones.push((map.clone(), model.clone()));
            }
            take(&mut map, &mut model, step);
        }
        clones.push((map, model));
        for (map, model) in &clones {
            assert_same(map, model);
            for (start, end) in &bounds {
                let expected = model.range(start.clone()..).take_while(|(key, _)| *key < end);
                let expected = expected.map(|(key, record)| (&**key, &**record));
                prop_assert_eq!(entries(map.range(start, end)), entries(expected));
                prop_assert_eq!(map.get(start), model.get(start).map(Vec::as_slice));
            }
            for (key, record) in model {
                prop_assert_eq!(map.get(key), Some(&**record));
            }
        }
        // Freeing a clone does not free what another one has.
        while let Some((map, model)) = clones.pop() {
            drop(map);
            if let Some((map, model)) = clones.last() {
                assert_same(map, model);
            }
            drop(model);
        }
    }
}

/// Numbers below a count, in an order without a pattern.
fn shuffled(count: u16) -> Vec<u16> {
    let mut numbers: Vec<_> = (0..count).collect();
    let mut state = 1_u64;
    numbers.sort_by_cached_key(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    });
    numbers
}

fn filled(numbers: impl IntoIterator<Item = u16>) -> Map {
    let mut map = Map::default();
    // As the tables of a server are after its entities.
    map.insert(b"z", b"last");
    for number in numbers {
        map.insert(&numbered(number), &record(number, 450));
    }
    map
}

/// The bytes of buffers, and those of keys and records.
fn fill(map: &Map) -> (usize, usize) {
    let entries = map.range(&[], &[0xFF]);
    let bytes = entries.map(|(key, record)| key.len() + record.len()).sum();
    (map.size().capacity, bytes)
}

#[test]
fn leaves_are_full_after_entries_in_order() {
    let count = 20_000_u16;
    for map in [filled(0..count), filled((0..count).rev())] {
        let (capacity, bytes) = fill(&map);
        assert!(capacity < bytes + bytes / 32, "{capacity} for {bytes}");
        let size = map.size();
        assert_eq!(size.depth, 2);
        assert!(size.inners <= 1 + size.leaves.div_ceil(24), "{size:?}");
    }
}

#[test]
fn many_partitions_in_order_leave_little_room() {
    // One number of each partition after another.
    let numbers =
        (0..1000_u16).flat_map(|round| (0..20).map(move |partition| partition * 1000 + round));
    let (capacity, bytes) = fill(&filled(numbers));
    assert!(capacity < bytes + bytes / 16, "{capacity} for {bytes}");
}

#[test]
fn partitions_that_are_filled_side_by_side_leave_little_room() {
    // Four partitions at a time, each in batches of a hundred in order.
    let numbers = (0..5_u16).flat_map(|group| {
        (0..40).flat_map(move |batch| {
            let first = (group * 4 + batch % 4) * 1000 + batch / 4 * 100;
            first..first + 100
        })
    });
    let map = filled(numbers);
    let (_, bytes) = fill(&map);
    let leaves = map.size().leaves;
    assert!(
        leaves * leaf::WEIGHT_MAX < bytes + bytes / 8,
        "{leaves} for {bytes}"
    );
}

#[test]
fn batches_at_any_place_leave_no_small_leaves() {
    for length in [10_u16, 30] {
        let batches = shuffled(20_000 / length).into_iter();
        let map = filled(batches.flat_map(|batch| batch * length..(batch + 1) * length));
        let (_, bytes) = fill(&map);
        let leaves = map.size().leaves;
        assert!(
            leaves * leaf::WEIGHT_MAX < bytes / 4 * 7,
            "{leaves} for {bytes}"
        );
    }
}

#[test]
fn leaves_are_two_thirds_full_after_entries_in_any_order() {
    let map = filled(shuffled(20_000));
    let (capacity, bytes) = fill(&map);
    assert!(capacity < bytes + bytes / 4, "{capacity} for {bytes}");
    let size = map.size();
    assert!(size.leaves * leaf::WEIGHT_MAX < bytes / 2 * 3, "{size:?}");
}

#[test]
fn turns_in_the_order_do_not_make_leaves_of_one_entry() {
    let count = 2_000;
    let up_and_down = (0..count / 2).chain((count / 2..count).rev());
    let from_the_middle =
        (0..count / 2).flat_map(|number| [count / 2 - 1 - number, count / 2 + number]);
    for map in [filled(up_and_down), filled(from_the_middle)] {
        let size = map.size();
        assert!(size.leaves < 2 * usize::from(count) / 30, "{size:?}");
    }
}

#[test]
fn a_leaf_whose_last_added_entry_was_removed_is_not_split_at_its_end() {
    let (mut map, mut model) = (Map::default(), Model::new());
    put(&mut map, &mut model, b"a".to_vec(), Vec::new());
    put(&mut map, &mut model, b"b".to_vec(), Vec::new());
    remove(&mut map, &mut model, b"b");
    put(
        &mut map,
        &mut model,
        vec![b'c'; leaf::WEIGHT_MAX],
        Vec::new(),
    );
    assert_same(&map, &model);
}

#[test]
fn removed_entries_free_their_nodes() {
    let count = 20_000_u16;
    let mut map = filled(shuffled(count));
    let full = map.size();
    for (kept, part) in [(10, 3), (100, 30)] {
        for number in (0..count).filter(|number| number % kept != 0) {
            map.remove(&numbered(number));
        }
        let size = map.size();
        assert!(size.leaves < full.leaves / part, "{size:?} of {full:?}");
        assert!(size.capacity < full.capacity / part, "{size:?} of {full:?}");
    }
    for number in 0..count {
        map.remove(&numbered(number));
    }
    map.remove(b"z");
    let size = Size {
        leaves: 1,
        ..Size::default()
    };
    assert_eq!(
        map.size(),
        Size {
            capacity: map.size().capacity,
            ..size
        }
    );
    assert!(map.size().capacity <= 512);
}

#[test]
fn smaller_records_free_the_rest() {
    let count = 5_000;
    let mut map = filled(0..count);
    let full = map.size();
    for number in 0..count {
        map.insert(&numbered(number), &[]);
    }
    let size = map.size();
    assert!(size.capacity < full.capacity / 4, "{size:?} of {full:?}");
}

#[test]
fn copies_share_large_records_and_removal_frees_them() {
    let mut map = Map::default();
    map.insert(b"a", &vec![1; INSIDE_MAX + 1]);
    map.insert(b"b", &vec![2; INSIDE_MAX]);
    let before = map.clone();
    map.insert(b"c", b"3");
    let same = |key: &[u8]| std::ptr::eq(map.get(key).unwrap(), before.get(key).unwrap());
    assert_eq!((same(b"a"), same(b"b")), (true, false));
    let large = map.remove(b"a").unwrap();
    assert_eq!(before.get(b"a"), Some(&*large));
    let weak = Arc::downgrade(&large);
    drop(large);
    assert!(weak.upgrade().is_some());
    drop(before);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_change_copies_only_the_way_to_its_leaf() {
    let mut map = filled(0..20_000);
    let before = map.clone();
    map.insert(&numbered(9_999), b"changed");
    map.insert(&numbered(9_998), b"in the same leaf");
    let leaves = |map: &Map| {
        let mut leaves = Vec::new();
        collect_leaves(&map.root, &mut leaves);
        leaves
    };
    let (old, new) = (leaves(&before), leaves(&map));
    let differ = old
        .iter()
        .zip(&new)
        .filter(|(old, new)| !Arc::ptr_eq(old, new));
    assert_eq!((old.len(), differ.count()), (new.len(), 1));
}

fn collect_leaves(node: &Node, leaves: &mut Vec<Arc<Leaf>>) {
    match node {
        Node::Inner(inner) => {
            for child in inner.children() {
                collect_leaves(child, leaves);
            }
        }
        Node::Leaf(leaf) => leaves.push(Arc::clone(leaf)),
    }
}
