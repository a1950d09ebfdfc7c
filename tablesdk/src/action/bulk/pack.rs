//! Sorts changes into batches: one partition, at most one change of an entity, at most 100 changes,
//! and at most as many bytes as the service accepts, with what the riders of the changes also
//! write. The changes of an entity keep their order.
//!
//! The packer holds a bounded number of changes, and knows nothing about requests: `take` returns a
//! batch that may be sent, and `done` reports that it is complete.
//!
//! Full batches need a hundredth of the requests, but an input with a new partition in each change
//! never fills one. Therefore the open batches share a bound, and the oldest is closed when it is
//! reached. Sizes are estimated from above, and exact only near the limit.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::iter;

use bytes::Bytes;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{EntityKey, IfMatch, PartitionKey};

use crate::action::extend::ride::{Place, Riders};

/// A change of one entity, ready to be sent.
#[derive(Clone)]
pub(crate) struct Item {
    /// The index in the input.
    pub(crate) index: u64,
    pub(crate) key: EntityKey,
    /// Empty for a delete.
    pub(crate) body: Bytes,
    pub(crate) if_match: Option<IfMatch>,
    /// The riders of the change.
    pub(crate) riders: Riders,
}

/// The hashes of the keys of all entities that a batch writes. Two entities with the same hash wait
/// for each other unnecessarily, which does no harm.
pub(crate) type Keys = HashSet<u64>;

/// A batch that is closed: no change is added to it.
pub(crate) struct Packed {
    id: u64,
    pub(crate) items: Vec<Item>,
    pub(crate) keys: Keys,
}

impl Packed {
    pub(crate) fn partition(&self) -> Option<&PartitionKey> {
        self.items.first().map(|item| item.key.partition_key())
    }

    /// The number of entities that it writes, with what goes along with them.
    pub(crate) fn entities(&self) -> usize {
        let mut entities = self.items.len();
        for item in &self.items {
            item.riders.also_written(|_| entities += 1);
        }
        entities
    }
}

/// The size of the request of a batch, in bytes.
pub(crate) trait Measure {
    /// The largest size.
    fn limit(&self) -> usize;

    /// The size without changes.
    fn frame(&self) -> usize;

    /// The size that a change adds.
    fn exact(&self, item: &Item) -> usize;

    /// An upper bound of the size that a change adds; fast.
    fn at_most(&self, item: &Item) -> usize;
}

pub(crate) struct Packer<M> {
    measure: M,
    /// The limits of a batch, and of all open batches together.
    batch_size: usize,
    max_entities: usize,
    max_bytes: usize,
    hasher: RandomState,
    next_id: u64,
    open: HashMap<PartitionKey, Open>,
    /// The partitions of the open batches, in the order in which those were opened.
    oldest: BTreeMap<u64, PartitionKey>,
    /// The changes in all open batches.
    entities: usize,
    bytes: usize,
    /// Closed batches that are not sent yet.
    closed: VecDeque<Packed>,
    /// The closed batches that change an entity, in order, including the batches in flight.
    waiting: HashMap<u64, VecDeque<u64>>,
}

struct Open {
    opened: u64,
    items: Vec<Item>,
    keys: Keys,
    /// The keys among them that the riders of several changes may write.
    shared: Keys,
    /// The number of changes in the request.
    changes: usize,
    /// True if the riders of some changes have added one to the request.
    has_added: bool,
    bytes: usize,
    /// The size of the request: exact, or an upper bound.
    size: usize,
    is_exact: bool,
}

impl<M: Measure> Packer<M> {
    pub(crate) fn new(
        measure: M,
        batch_size: usize,
        max_entities: usize,
        max_bytes: usize,
    ) -> Self {
        Self {
            measure,
            batch_size,
            max_entities,
            max_bytes,
            hasher: RandomState::new(),
            next_id: 0,
            open: HashMap::new(),
            oldest: BTreeMap::new(),
            entities: 0,
            bytes: 0,
            closed: VecDeque::new(),
            waiting: HashMap::new(),
        }
    }

    /// Adds a change. Closes its batch if it is full, and the oldest batches if the bound of all
    /// open batches is reached.
    pub(crate) fn push(&mut self, item: Item) {
        let mut written = Vec::new();
        let mut bytes = item.body.len();
        item.riders.also_written(|it| {
            written.push((self.hasher.hash_one(it.key), it.place));
            bytes += it.bytes;
        });
        let own = (self.hasher.hash_one(&item.key), Place::Same);
        let keys = || iter::once(own).chain(written.iter().copied());
        if !self.fits(&item, keys()) {
            self.close(&item.key.partition_key().clone());
        }
        let partition = item.key.partition_key().clone();
        let at_most = self.measure.at_most(&item);
        let frame = self.measure.frame();
        self.next_id += 1;
        let id = self.next_id;
        let open = self.open.entry(partition.clone()).or_insert_with(|| {
            self.oldest.insert(id, partition.clone());
            Open {
                opened: id,
                items: Vec::new(),
                keys: Keys::new(),
                shared: Keys::new(),
                changes: 0,
                has_added: false,
                bytes: 0,
                size: frame,
                is_exact: true,
            }
        });
        if open.size + at_most <= self.measure.limit() {
            open.size += at_most;
            open.is_exact = false;
        } else {
            open.size += self.measure.exact(&item);
        }
        for (key, place) in keys() {
            open.changes += usize::from(open.keys.insert(key) && place.is_in_request());
            if place == Place::Shared {
                open.shared.insert(key);
            }
        }
        if !open.has_added && item.riders.add_change() {
            open.has_added = true;
            open.changes += 1;
        }
        open.items.push(item);
        open.bytes += bytes;
        self.entities += 1;
        self.bytes += bytes;
        if open.items.len() >= self.batch_size || open.changes >= BATCH_CHANGES_MAX {
            self.close(&partition);
        }
        while self.entities > self.max_entities || self.bytes > self.max_bytes {
            self.close_oldest();
        }
    }

    /// Returns true if a change may join the open batch of its partition, if there is one.
    fn fits(&mut self, item: &Item, keys: impl Iterator<Item = (u64, Place)>) -> bool {
        let Some(open) = self.open.get_mut(item.key.partition_key()) else {
            return true;
        };
        let is_added = !open.has_added && item.riders.add_change();
        let mut changes = open.changes + usize::from(is_added);
        for (key, place) in keys {
            if !open.keys.contains(&key) {
                changes += usize::from(place.is_in_request());
            } else if place != Place::Shared || !open.shared.contains(&key) {
                return false;
            }
        }
        if changes > BATCH_CHANGES_MAX {
            return false;
        }
        if open.size + self.measure.at_most(item) <= self.measure.limit() {
            return true;
        }
        // Near the limit, the size must be exact.
        if !open.is_exact {
            let sizes = open.items.iter().map(|item| self.measure.exact(item));
            open.size = self.measure.frame() + sizes.sum::<usize>();
            open.is_exact = true;
        }
        open.size + self.measure.exact(item) <= self.measure.limit()
    }

    fn close(&mut self, partition: &PartitionKey) {
        let Some(open) = self.open.remove(partition) else {
            return;
        };
        self.oldest.remove(&open.opened);
        self.entities -= open.items.len();
        self.bytes -= open.bytes;
        self.next_id += 1;
        let id = self.next_id;
        for key in &open.keys {
            self.waiting.entry(*key).or_default().push_back(id);
        }
        self.closed.push_back(Packed {
            id,
            items: open.items,
            keys: open.keys,
        });
    }

    /// Closes the oldest open batch. Returns `false` if no batch is open.
    pub(crate) fn close_oldest(&mut self) -> bool {
        let partition = self.oldest.values().next().cloned();
        partition.is_some_and(|partition| {
            self.close(&partition);
            true
        })
    }

    /// The number of closed batches that were not taken yet.
    pub(crate) fn closed(&self) -> usize {
        self.closed.len()
    }

    /// Takes a batch that may be sent: the batches before it that change one of its entities are
    /// done.
    pub(crate) fn take(&mut self) -> Option<Packed> {
        let index = self.closed.iter().position(|packed| self.may_go(packed))?;
        self.closed.remove(index)
    }

    fn may_go(&self, packed: &Packed) -> bool {
        packed.keys.iter().all(|key| {
            let waiting = self.waiting.get(key);
            waiting.and_then(VecDeque::front) == Some(&packed.id)
        })
    }

    /// Reports that a batch that was taken is done.
    pub(crate) fn done(&mut self, keys: &Keys) {
        for key in keys {
            if let Some(batches) = self.waiting.get_mut(key) {
                batches.pop_front();
                if batches.is_empty() {
                    self.waiting.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;

    use super::*;
    use crate::action::extend::ride::{AlsoWritten, Ride};

    /// Simple sizes; the upper bound is twice the exact size.
    struct ByHand;

    impl Measure for ByHand {
        fn limit(&self) -> usize {
            REQUEST_BODY_BYTES_MAX
        }

        fn frame(&self) -> usize {
            100
        }

        fn exact(&self, item: &Item) -> usize {
            item.body.len()
        }

        fn at_most(&self, item: &Item) -> usize {
            item.body.len() * 2
        }
    }

    fn item(index: u64, partition: &str, row: &str, bytes: usize) -> Item {
        Item {
            index,
            key: EntityKey::new(partition, row).unwrap(),
            body: vec![0; bytes].into(),
            if_match: None,
            riders: Riders::NONE,
        }
    }

    fn packer(max_entities: usize) -> Packer<ByHand> {
        Packer::new(ByHand, BATCH_CHANGES_MAX, max_entities, usize::MAX)
    }

    fn take(packer: &mut Packer<ByHand>) -> Option<(Vec<u64>, Keys)> {
        let Packed { items, keys, .. } = packer.take()?;
        Some((items.iter().map(|item| item.index).collect(), keys))
    }

    #[test]
    fn a_full_batch_is_closed_and_others_wait() {
        let mut packer = packer(1000);
        for index in 0..250 {
            packer.push(item(
                index,
                if index % 2 == 0 { "a" } else { "b" },
                &index.to_string(),
                1,
            ));
        }
        let (first, _) = take(&mut packer).unwrap();
        assert_eq!(first, (0..200).step_by(2).collect::<Vec<_>>());
        let (second, _) = take(&mut packer).unwrap();
        assert_eq!(second, (1..200).step_by(2).collect::<Vec<_>>());
        assert!(take(&mut packer).is_none());
        assert!(packer.close_oldest());
        assert_eq!(take(&mut packer).unwrap().0.len(), 25);
    }

    #[test]
    fn a_batch_is_filled_to_the_byte() {
        for (last, batches) in [(0, 1), (1, 2)] {
            let mut packer = packer(1000);
            let bytes = REQUEST_BODY_BYTES_MAX - 100;
            packer.push(item(0, "a", "0", bytes / 2));
            packer.push(item(1, "a", "1", bytes - bytes / 2 - 10));
            packer.push(item(2, "a", "2", 10 + last));
            while packer.close_oldest() {}
            assert_eq!(packer.closed(), batches, "{last} bytes too many");
        }
    }

    /// Also writes these entities.
    #[derive(Clone, Debug)]
    struct Along(Vec<(EntityKey, Place)>);

    impl Ride for Along {
        fn clone_box(&self) -> Box<dyn Ride> {
            Box::new(self.clone())
        }

        fn also_writes(&self, see: &mut dyn FnMut(AlsoWritten<'_>)) {
            for (key, place) in &self.0 {
                let (bytes, place) = (1, *place);
                see(AlsoWritten { key, bytes, place });
            }
        }
    }

    fn item_along(index: u64, row: &str, along: &[(&str, Place)]) -> Item {
        let mut item = item(index, "a", row, 1);
        let along = along.iter();
        let along = along.map(|&(row, place)| (EntityKey::new("a", row).unwrap(), place));
        item.riders.add(Box::new(Along(along.collect())));
        item
    }

    /// The batches in the order in which they go, each after the one before it is done.
    fn batches(packer: &mut Packer<ByHand>) -> Vec<Vec<u64>> {
        while packer.close_oldest() {}
        let mut batches = Vec::new();
        while let Some((batch, keys)) = take(packer) {
            assert!(take(packer).is_none(), "two at a time write one entity");
            packer.done(&keys);
            batches.push(batch);
        }
        batches
    }

    #[test]
    fn changes_and_what_goes_along_with_them_are_at_most_a_hundred() {
        for (place, size) in [(Place::Same, 50), (Place::Other, 100)] {
            let mut packer = packer(1000);
            for index in 0..100 {
                let (row, along) = (format!("{index}"), format!("along {index}"));
                packer.push(item_along(index, &row, &[(&along, place)]));
            }
            assert_eq!(take(&mut packer).unwrap().0.len(), size, "{place:?}");
        }
        // One entity that all changes share is one change.
        let mut packer = packer(1000);
        for index in 0..100 {
            packer.push(item_along(
                index,
                &index.to_string(),
                &[("shared", Place::Shared)],
            ));
        }
        assert_eq!(take(&mut packer).unwrap().0.len(), 99);
        // More than a batch has goes alone.
        let mut packer = self::packer(1000);
        let rows: Vec<_> = (0..100).map(|along| format!("along {along}")).collect();
        let many: Vec<_> = rows.iter().map(|row| (&**row, Place::Same)).collect();
        for (index, along) in [(0, &[][..]), (1, &many), (2, &[])] {
            packer.push(item_along(index, &index.to_string(), along));
        }
        while packer.close_oldest() {}
        assert_eq!(packer.closed(), 3);
    }

    #[test]
    fn what_goes_along_with_two_changes_is_written_in_turn() {
        let mut packer = packer(1000);
        packer.push(item_along(0, "x", &[("entry", Place::Same)]));
        packer.push(item_along(1, "y", &[("entry", Place::Other)]));
        packer.push(item_along(2, "z", &[]));
        packer.push(item(3, "a", "entry", 1));
        assert_eq!(batches(&mut packer), [vec![0], vec![1, 2], vec![3]]);

        // An entity, and what goes into it.
        packer.push(item(0, "a", "whole", 1));
        packer.push(item_along(1, "x", &[("whole", Place::Shared)]));
        packer.push(item_along(2, "y", &[("whole", Place::Shared)]));
        packer.push(item(3, "a", "whole", 1));
        assert_eq!(batches(&mut packer), [vec![0], vec![1, 2], vec![3]]);
        assert!(packer.waiting.is_empty());
    }

    #[test]
    fn endless_partitions_do_not_pile_up() {
        let mut packer = packer(10);
        for index in 0..1000 {
            packer.push(item(index, &index.to_string(), "", 1));
            assert!(packer.entities <= 10 && packer.open.len() <= 10 && packer.oldest.len() <= 10);
        }
        assert_eq!(packer.closed(), 990);
        assert_eq!(take(&mut packer).unwrap().0, [0], "the oldest go first");

        let mut packer = Packer::new(ByHand, BATCH_CHANGES_MAX, usize::MAX, 1000);
        for index in 0..100 {
            packer.push(item(index, &index.to_string(), "", 100));
            assert!(packer.bytes <= 1000);
        }
    }

    #[test]
    fn changes_of_one_entity_wait_for_each_other() {
        let mut packer = packer(1000);
        packer.push(item(0, "a", "x", 1));
        packer.push(item(1, "a", "y", 1));
        packer.push(item(2, "a", "x", 1));
        packer.push(item(3, "a", "x", 1));
        packer.push(item(4, "b", "x", 1));
        while packer.close_oldest() {}
        let (first, first_done) = take(&mut packer).unwrap();
        assert_eq!(first, [0, 1]);
        // The other partition's does not wait.
        let (other, _) = take(&mut packer).unwrap();
        assert_eq!(other, [4]);
        assert!(take(&mut packer).is_none());
        packer.done(&first_done);
        let (second, second_done) = take(&mut packer).unwrap();
        assert_eq!(second, [2]);
        assert!(take(&mut packer).is_none());
        packer.done(&second_done);
        let (third, third_done) = take(&mut packer).unwrap();
        assert_eq!(third, [3]);
        packer.done(&third_done);
        assert_eq!(packer.waiting.len(), 1, "only of the batch in flight");
    }
}
