//! The writes that are in no table of the embedded store yet, a second time: in maps that are read as fast as records in memory.
//!
//! The store keeps new writes in memory tables, and writes each of them to a table of the disk in the background. Reads that find the
//! same writes here need not ask the store's memory tables, so they read the tables of the disk [directly](super::tables).

use std::collections::VecDeque;

use lsm_tree::{AbstractTree as _, AnyTree, MemtableId};

use super::overlay::Writes;

/// The writes that are in no table yet, and possibly some that are.
#[derive(Default)]
pub(super) struct Recent {
    /// The writes of one memory table each, the newest last.
    generations: VecDeque<Generation>,
}

struct Generation {
    memtable: MemtableId,
    writes: Writes,
}

impl Recent {
    /// Those in the newest memory table of a store.
    pub(super) fn of(tree: &AnyTree) -> Self {
        let memtable = tree.active_memtable();
        let mut writes = Writes::default();
        let mut last = None;
        for entry in memtable.iter() {
            // The newest write of a key is the first.
            let is_tombstone = entry.is_tombstone();
            let key = entry.key.user_key;
            if last.as_ref() == Some(&key) {
                continue;
            }
            if is_tombstone {
                writes.delete(&key);
            } else {
                writes.put(&key, &entry.value);
            }
            last = Some(key);
        }
        let memtable = memtable.id();
        Self {
            generations: [Generation { memtable, writes }].into(),
        }
    }

    /// Adds a group that the store has just written.
    pub(super) fn add(&mut self, group: &Writes, tree: &AnyTree) {
        // If the memory table was changed after the group, the group is kept for longer than necessary.
        let memtable = tree.active_memtable().id();
        match self.generations.back_mut() {
            Some(newest) if newest.memtable == memtable => newest.writes.add_all(group),
            _ => self.generations.push_back(Generation {
                memtable,
                writes: group.clone(),
            }),
        }
    }

    /// Removes the writes that are in tables. Returns whether all others are here. Tables must be listed after this.
    pub(super) fn remove_flushed(&mut self, tree: &AnyTree) -> bool {
        // In this order: a memory table that is sealed in between is counted twice.
        let active = tree.active_memtable().id();
        let sealed = tree.sealed_memtable_count();
        let newest = self.generations.back();
        let has_active = newest.is_some_and(|newest| newest.memtable == active);
        let unflushed = sealed + usize::from(has_active);
        // The store flushes all that are sealed, or the oldest.
        while self.generations.len() > unflushed {
            self.generations.pop_front();
        }
        self.generations.len() == unflushed
    }

    /// How many keys the newest memory table removes.
    pub(super) fn newest_removals(&self) -> usize {
        let newest = self.generations.back();
        newest.map_or(0, |newest| newest.writes.removed().count())
    }

    /// The writes from the newest memory table to the oldest.
    pub(super) fn writes(&self) -> Vec<Writes> {
        let newest_first = self.generations.iter().rev();
        newest_first
            .map(|generation| generation.writes.clone())
            .collect()
    }
}
