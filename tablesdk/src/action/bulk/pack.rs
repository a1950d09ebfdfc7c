//! Sorts changes into batches: one partition, one change an entity, 100 changes and 4 MiB at most, and in order for each entity.
//!
//! Holds a bounded number of changes, and knows nothing of sending: batches are taken out when they may be sent, and noted as
//! done when they are.
//!
//! Full batches need a hundredth of the requests, but an input with endless partitions never fills one. So the open batches share a bound,
//! and the oldest is closed when it is reached. Sizes are estimated from above, and measured to the byte only near 4 MiB.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use bytes::Bytes;
use tablesdk_protocol::limits::{BATCH_CHANGES_MAX, REQUEST_BODY_BYTES_MAX};
use tablesdk_protocol::{EntityKey, IfMatch, PartitionKey};

/// A change of one entity, ready to be sent.
#[derive(Clone)]
pub(super) struct Item {
    /// Which of the input it is.
    pub(super) index: u64,
    pub(super) key: EntityKey,
    /// Empty for a delete.
    pub(super) body: Bytes,
    pub(super) if_match: Option<IfMatch>,
}

/// Changes that go into one batch.
pub(super) struct Packed {
    id: u64,
    pub(super) items: Vec<Item>,
    keys: HashSet<u64>,
}

/// How large a batch gets.
pub(super) trait Measure {
    /// What a batch has besides its changes, in bytes.
    fn frame(&self) -> usize;

    /// What a change adds, in bytes.
    fn exact(&self, item: &Item) -> usize;

    /// What a change adds at most: cheap to tell.
    fn at_most(&self, item: &Item) -> usize;
}

pub(super) struct Packer<M> {
    measure: M,
    entities_max: usize,
    bytes_max: usize,
    hasher: RandomState,
    next_id: u64,
    open: HashMap<PartitionKey, Open>,
    /// The partitions of the open batches, in the order in which those were opened.
    oldest: BTreeMap<u64, PartitionKey>,
    /// What the open batches hold.
    entities: usize,
    bytes: usize,
    /// Closed batches that are not sent yet.
    closed: VecDeque<Packed>,
    /// Which closed batches change an entity, in order, including the batches in flight. Indexed by the hash of the key: two
    /// entities with the same hash wait for each other unnecessarily, which does no harm.
    holders: HashMap<u64, Holders>,
}

struct Open {
    opened: u64,
    items: Vec<Item>,
    keys: HashSet<u64>,
    bytes: usize,
    /// The size of the batch, at most, or exactly.
    size: usize,
    is_exact: bool,
}

struct Holders {
    first: u64,
    others: VecDeque<u64>,
}

impl<M: Measure> Packer<M> {
    pub(super) fn new(measure: M, entities_max: usize, bytes_max: usize) -> Self {
        Self {
            measure,
            entities_max,
            bytes_max,
            hasher: RandomState::new(),
            next_id: 0,
            open: HashMap::new(),
            oldest: BTreeMap::new(),
            entities: 0,
            bytes: 0,
            closed: VecDeque::new(),
            holders: HashMap::new(),
        }
    }

    /// Takes a change. Batches that it fills, and the oldest where there are too many, are closed.
    pub(super) fn push(&mut self, item: Item) {
        let key = self.hasher.hash_one(&item.key);
        if !self.fits(&item, key) {
            self.close(&item.key.partition_key().clone());
        }
        let partition = item.key.partition_key().clone();
        let (at_most, bytes) = (self.measure.at_most(&item), item.body.len());
        let frame = self.measure.frame();
        self.next_id += 1;
        let id = self.next_id;
        let open = self.open.entry(partition.clone()).or_insert_with(|| {
            self.oldest.insert(id, partition.clone());
            Open {
                opened: id,
                items: Vec::new(),
                keys: HashSet::new(),
                bytes: 0,
                size: frame,
                is_exact: true,
            }
        });
        if open.size + at_most <= REQUEST_BODY_BYTES_MAX {
            open.size += at_most;
            open.is_exact = false;
        } else {
            open.size += self.measure.exact(&item);
        }
        open.keys.insert(key);
        open.items.push(item);
        open.bytes += bytes;
        self.entities += 1;
        self.bytes += bytes;
        if open.items.len() == BATCH_CHANGES_MAX {
            self.close(&partition);
        }
        while self.entities > self.entities_max || self.bytes > self.bytes_max {
            self.close_oldest();
        }
    }

    /// Whether a change may join the open batch of its partition, if there is one.
    fn fits(&mut self, item: &Item, key: u64) -> bool {
        let Some(open) = self.open.get_mut(item.key.partition_key()) else {
            return true;
        };
        if open.keys.contains(&key) {
            return false;
        }
        if open.size + self.measure.at_most(item) <= REQUEST_BODY_BYTES_MAX {
            return true;
        }
        // Near the limit, and so measured to the byte.
        if !open.is_exact {
            let sizes = open.items.iter().map(|item| self.measure.exact(item));
            open.size = self.measure.frame() + sizes.sum::<usize>();
            open.is_exact = true;
        }
        open.size + self.measure.exact(item) <= REQUEST_BODY_BYTES_MAX
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
            self.holders
                .entry(*key)
                .and_modify(|holders| holders.others.push_back(id))
                .or_insert(Holders {
                    first: id,
                    others: VecDeque::new(),
                });
        }
        self.closed.push_back(Packed {
            id,
            items: open.items,
            keys: open.keys,
        });
    }

    /// Closes the batch that is open for the longest time; `false` when there is none.
    pub(super) fn close_oldest(&mut self) -> bool {
        let partition = self.oldest.values().next().cloned();
        partition.is_some_and(|partition| {
            self.close(&partition);
            true
        })
    }

    /// How many batches wait to be sent.
    pub(super) fn closed(&self) -> usize {
        self.closed.len()
    }

    /// A batch that may be sent: none before it that changes one of its entities is still to be done.
    pub(super) fn take(&mut self) -> Option<Packed> {
        let index = self.closed.iter().position(|packed| self.may_go(packed))?;
        self.closed.remove(index)
    }

    fn may_go(&self, packed: &Packed) -> bool {
        packed.keys.iter().all(|key| {
            let holders = self.holders.get(key);
            holders.is_none_or(|holders| holders.first == packed.id)
        })
    }

    /// Notes that a batch that was taken is done.
    pub(super) fn done(&mut self, done: &Done) {
        for key in &done.keys {
            let Some(holders) = self.holders.get_mut(key) else {
                continue;
            };
            match holders.others.pop_front() {
                Some(next) => holders.first = next,
                None => {
                    self.holders.remove(key);
                }
            }
        }
    }
}

/// What is left of a batch when it is done.
pub(super) struct Done {
    keys: HashSet<u64>,
}

impl Packed {
    /// The changes, and what to give back when they are done.
    pub(super) fn split(self) -> (Vec<Item>, Done) {
        (self.items, Done { keys: self.keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that can be counted by hand; the cheap ones are twice the exact ones.
    struct ByHand;

    impl Measure for ByHand {
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
        }
    }

    fn packer(entities_max: usize) -> Packer<ByHand> {
        Packer::new(ByHand, entities_max, usize::MAX)
    }

    fn take(packer: &mut Packer<ByHand>) -> Option<(Vec<u64>, Done)> {
        let (items, done) = packer.take()?.split();
        Some((items.iter().map(|item| item.index).collect(), done))
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
            let room = REQUEST_BODY_BYTES_MAX - 100;
            packer.push(item(0, "a", "0", room / 2));
            packer.push(item(1, "a", "1", room - room / 2 - 10));
            packer.push(item(2, "a", "2", 10 + last));
            while packer.close_oldest() {}
            assert_eq!(packer.closed(), batches, "{last} bytes too many");
        }
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

        let mut packer = Packer::new(ByHand, usize::MAX, 1000);
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
        assert_eq!(
            packer.holders.len(),
            1,
            "nothing is kept but what is on its way"
        );
    }
}
