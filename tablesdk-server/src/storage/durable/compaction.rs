//! Removes what deletions leave behind in the tables of the embedded store: the records that are hidden, and the removals that hide them.
//!
//! The store merges tables when a level has too many bytes. A removal takes few bytes and may hide many, so records that were deleted
//! could stay for good: those of deleted tables are not written again. So a thread merges tables whenever a large part of their entries
//! are removals. Each removal pays for a few entries that are written again.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use lsm_tree::compaction::{CompactionStrategy, Leveled};
use lsm_tree::{AbstractTree as _, AnyTree, SeqNo, Table};

/// Merges tables in a thread of its own, one at a time. A drop waits for the merge that runs.
#[derive(Default)]
pub(super) struct Compactor {
    /// The thread, with the number of removals that it leaves.
    running: Option<JoinHandle<lsm_tree::Result<u64>>>,
    /// How many removals the last compaction has left in the last level: snapshots may have needed what they hide.
    left: u64,
    /// Whether a compaction has failed. What it has written stays on the disk until the store is opened again, so there is no other one.
    has_failed: bool,
}

impl Compactor {
    /// Starts a compaction if there is something to remove. Versions of records that are older than a later one below the watermark are not
    /// needed any more.
    pub(super) fn start(&mut self, tree: &AnyTree, watermark: SeqNo) {
        if self.is_running() || self.has_failed {
            return;
        }
        let removals = tree.tombstone_count().saturating_sub(self.left);
        if !is_much(removals, entries(tree)) {
            return;
        }
        let tree = tree.clone();
        let thread = thread::Builder::new().name("tablesdk-compaction".to_owned());
        match thread.spawn(move || compact(&tree, watermark)) {
            Ok(thread) => self.running = Some(thread),
            Err(error) => self.failed(&error),
        }
    }

    /// Whether a compaction runs.
    pub(super) fn is_running(&mut self) -> bool {
        match self.running.take_if(|thread| thread.is_finished()) {
            Some(thread) => {
                self.end(thread);
                false
            }
            None => self.running.is_some(),
        }
    }

    fn end(&mut self, thread: JoinHandle<lsm_tree::Result<u64>>) {
        match thread.join() {
            Ok(Ok(left)) => self.left = left,
            Ok(Err(error)) => self.failed(&error),
            Err(_) => self.failed(&io::Error::other("the thread has panicked")),
        }
    }

    fn failed(&mut self, error: &dyn std::fmt::Display) {
        self.has_failed = true;
        tracing::warn!(%error, "space of deleted records is not reused until the data directory is opened again");
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(thread) = self.running.take() {
            self.end(thread);
        }
    }
}

/// Merges the first level into the next one, unless another thread does so.
///
/// The threads of the store look whether there is something to merge once for each table that they write. If the first level was part of
/// a long compaction each time, no thread merges what has come meanwhile, and no table follows while writes wait for that.
pub(super) fn merge_first_level(tree: &AnyTree, watermark: SeqNo) -> lsm_tree::Result<()> {
    tree.compact(Arc::new(Leveled::default()), watermark)
}

/// About how many bytes of tables are hidden by so many removals that are in none yet.
pub(super) fn bytes_hidden(tree: &AnyTree, removals: usize) -> u64 {
    let entries = entries(tree);
    let removals = u64::try_from(removals).unwrap_or(u64::MAX).min(entries);
    let bytes = u128::from(tree.disk_space()) * u128::from(removals);
    u64::try_from(bytes / u128::from(entries.max(1))).unwrap_or(u64::MAX)
}

/// Returns how many removals are left.
fn compact(tree: &AnyTree, watermark: SeqNo) -> lsm_tree::Result<u64> {
    if tree.disk_space() <= WHOLE_BYTES_MAX {
        tree.major_compact(TABLE_BYTES, watermark)?;
        return Ok(removals_in_last_level(tree));
    }
    // Steps of bounded size, between which the store merges what was written meanwhile. They move what is above the last level down to it.
    let levels = Leveled::default()
        .with_l0_threshold(1)
        .with_table_target_size(STEP_TABLE_BYTES)
        .with_level_ratio_policy(vec![1.0]);
    let levels: Arc<dyn CompactionStrategy> = Arc::new(levels);
    loop {
        let before = tree.current_version().id();
        tree.compact(Arc::clone(&levels), watermark)?;
        let is_through = tree.current_version().id() == before;
        if is_through || !is_much(tree.tombstone_count(), entries(tree)) {
            return Ok(removals_in_last_level(tree));
        }
    }
}

fn removals_in_last_level(tree: &AnyTree) -> u64 {
    let version = tree.current_version();
    let last = version.iter_levels().last().into_iter();
    let tables = last.flat_map(|level| level.iter().flat_map(|run| run.iter()));
    tables.map(Table::tombstone_count).sum()
}

/// Whether so many of the entries are removals that they are merged with what they hide.
const fn is_much(removals: u64, entries: u64) -> bool {
    removals > 0 && removals.saturating_mul(ENTRIES_PER_REMOVAL) >= entries
}

/// How many entries there are in tables, removals included.
fn entries(tree: &AnyTree) -> u64 {
    let version = tree.current_version();
    version.iter_tables().map(|it| it.metadata.item_count).sum()
}

/// So the hidden records are at most as many as the others.
const ENTRIES_PER_REMOVAL: u64 = 3;

/// Up to so many bytes, all tables are merged at once, which takes seconds.
const WHOLE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The size of the tables that result, as the store makes them, and as steps do.
const TABLE_BYTES: u64 = 64 * 1024 * 1024;
const STEP_TABLE_BYTES: u64 = 16 * 1024 * 1024;
