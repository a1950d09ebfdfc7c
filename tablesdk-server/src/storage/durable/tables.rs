//! Reads the tables of the embedded store block by block, and passes keys and records on where they lie in a block.
//!
//! The store's own iterator makes two counted references for each record and passes them through a heap, which takes longer than the
//! rest of a page. Blocks come from the store's cache, and are put there. A table never changes, and stays readable as long as it is
//! referenced here, even if the store has replaced it. `FORMAT.md` names the layouts that are read.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use lsm_tree::table::block::BlockType;
use lsm_tree::table::filter::standard_bloom::Builder as BloomBuilder;
use lsm_tree::table::{Block, BlockHandle, IndexBlock};
use lsm_tree::{AbstractTree as _, AnyTree, CompressionType, GlobalTableId, SeqNo, Table, TableId};

use super::merge::{ReadError, Source};
use super::store::failed;
use crate::storage::{Reads, Slice, StorageError};

/// The tables of the store at one moment.
#[derive(Default)]
pub(super) struct Tables {
    /// The number of the store's list of tables.
    version: u64,
    /// The runs from the newest to the oldest. The tables of a run are in the order of their keys, which do not overlap.
    runs: Vec<Vec<Arc<OpenTable>>>,
}

struct OpenTable {
    table: Table,
    id: GlobalTableId,
}

impl Tables {
    /// The tables that the store has now, if they are others.
    pub(super) fn newer(&self, tree: &AnyTree) -> Option<Self> {
        let version = tree.current_version();
        if version.id() == self.version && !self.runs.is_empty() {
            return None;
        }
        let known: HashMap<TableId, _> = self
            .runs
            .iter()
            .flatten()
            .map(|it| (it.table.id(), it))
            .collect();
        let open = |table: &Table| match known.get(&table.id()) {
            Some(known) => Arc::clone(known),
            None => Arc::new(OpenTable {
                table: table.clone(),
                id: GlobalTableId::from((tree.id(), table.id())),
            }),
        };
        let runs = version.iter_levels().flat_map(|level| level.iter());
        Some(Self {
            version: version.id(),
            runs: runs.map(|run| run.iter().map(open).collect()).collect(),
        })
    }

    /// The record under a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Slice<'static>>, StorageError> {
        let hash = BloomBuilder::get_hash(key);
        for run in &self.runs {
            let index = run.partition_point(|table| table.last_key() < key);
            let Some(table) = run.get(index) else {
                continue;
            };
            if table.first_key() > key {
                continue;
            }
            let found = table.table.get(key, SeqNo::MAX, hash);
            if let Some(found) = found.map_err(|error| failed("read", &error))? {
                let is_removed = found.is_tombstone();
                return Ok((!is_removed).then(|| Slice::Owned(found.value.into())));
            }
        }
        Ok(None)
    }

    /// A scan of each run that may have keys from `start` up to but not including `end`, from the newest run to the oldest.
    pub(super) fn scans<'a>(
        &'a self,
        start: &'a [u8],
        end: &'a [u8],
        reads: Reads,
    ) -> impl Iterator<Item = Result<RunScan<'a>, ReadError>> {
        self.runs.iter().filter_map(move |run| {
            let from = run.partition_point(|table| table.last_key() < start);
            let until = run.partition_point(|table| table.first_key() < end);
            let tables = run.get(from..until).filter(|tables| !tables.is_empty())?;
            Some(RunScan::new(tables, start, end, reads))
        })
    }
}

impl OpenTable {
    fn first_key(&self) -> &[u8] {
        self.table.metadata.key_range.min()
    }

    fn last_key(&self) -> &[u8] {
        self.table.metadata.key_range.max()
    }
}

/// A scan of the newest entries of a run. It stands at an entry, or is at its end.
pub(super) struct RunScan<'a> {
    end: &'a [u8],
    reads: Reads,
    tables: std::slice::Iter<'a, Arc<OpenTable>>,
    blocks: Option<TableBlocks<'a>>,
    entries: Option<Entries>,
}

impl<'a> RunScan<'a> {
    fn new(
        tables: &'a [Arc<OpenTable>],
        start: &'a [u8],
        end: &'a [u8],
        reads: Reads,
    ) -> Result<Self, ReadError> {
        let mut tables = tables.iter();
        let first = tables.next();
        let mut scan = Self {
            end,
            reads,
            tables,
            blocks: first.map(|table| TableBlocks::new(table, start, reads)),
            entries: None,
        };
        scan.advance()?;
        while scan.key().is_some_and(|key| key < start) {
            scan.advance()?;
        }
        Ok(scan)
    }

    fn next_block(&mut self) -> Result<Option<Block>, ReadError> {
        while let Some(blocks) = &mut self.blocks {
            if let Some(block) = blocks.next()? {
                return Ok(Some(block));
            }
            let next = self.tables.next();
            self.blocks = next.map(|table| TableBlocks::new(table, &[], self.reads));
        }
        Ok(None)
    }
}

impl Source for RunScan<'_> {
    fn key(&self) -> Option<&[u8]> {
        let entries = self.entries.as_ref()?;
        Some(entries.key()).filter(|key| *key < self.end)
    }

    fn record(&self) -> Option<&[u8]> {
        self.entries.as_ref()?.record()
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        loop {
            if let Some(entries) = &mut self.entries
                && entries.advance()?
            {
                return Ok(());
            }
            match self.next_block()? {
                Some(block) => self.entries = Some(Entries::new(block)?),
                None => {
                    self.entries = None;
                    return Ok(());
                }
            }
        }
    }
}

/// The data blocks of a table in order, beginning with the first that may have a key.
struct TableBlocks<'a> {
    table: &'a OpenTable,
    reads: Reads,
    /// Opened for the first block that is not in the cache.
    file: Option<File>,
    handles: std::vec::IntoIter<BlockHandle>,
    next: Next,
}

/// Which handles of data blocks are next.
enum Next {
    /// The first one with this key or a later one.
    From(Vec<u8>),
    /// The first one that ends after this key.
    After(Vec<u8>),
}

impl<'a> TableBlocks<'a> {
    fn new(table: &'a OpenTable, start: &[u8], reads: Reads) -> Self {
        Self {
            table,
            reads,
            file: None,
            handles: Vec::new().into_iter(),
            next: Next::From(start.to_vec()),
        }
    }

    fn next(&mut self) -> Result<Option<Block>, ReadError> {
        let handle = match self.handles.next() {
            Some(handle) => handle,
            None => {
                self.handles = self.next_handles()?.into_iter();
                match self.handles.next() {
                    Some(handle) => handle,
                    None => return Ok(None),
                }
            }
        };
        let compression = self.table.table.metadata.data_block_compression;
        self.load(handle, BlockType::Data, compression).map(Some)
    }

    /// The handles of the next data blocks.
    fn next_handles(&mut self) -> Result<Vec<BlockHandle>, ReadError> {
        let regions = self.table.table.regions;
        let mut index = self.load_index(regions.tli)?;
        if regions.index.is_some() {
            // Its entries are of blocks of the index.
            let Some((part, _)) = self.handles_in(&index, 1)?.pop() else {
                return Ok(Vec::new());
            };
            index = self.load_index(part)?;
        }
        let mut handles = self.handles_in(&index, HANDLES_AT_A_TIME)?;
        if let Some((_, last)) = handles.last_mut() {
            self.next = Next::After(std::mem::take(last));
        }
        Ok(handles.into_iter().map(|(handle, _)| handle).collect())
    }

    /// The next entries of an index block, with the last keys of their blocks.
    fn handles_in(
        &self,
        index: &IndexBlock,
        count: usize,
    ) -> Result<Vec<(BlockHandle, Vec<u8>)>, StorageError> {
        let mut entries = index.iter();
        // Blocks that end with the same key are in the order of falling sequence numbers.
        let found = match &self.next {
            Next::From(key) => entries.seek(key, SeqNo::MAX),
            Next::After(key) => entries.seek(key, 0),
        };
        let entries = entries.take(if found { count } else { 0 });
        let handles = entries.map(|entry| {
            let key = index.as_slice().get(entry.end_key.0..entry.end_key.1);
            let key = key.filter(|_| entry.prefix.is_none()).ok_or(MALFORMED)?;
            Ok((BlockHandle::new(entry.offset, entry.size), key.to_vec()))
        });
        handles.collect()
    }

    fn load_index(&mut self, handle: BlockHandle) -> Result<IndexBlock, ReadError> {
        let compression = self.table.table.metadata.index_block_compression;
        let block = self.load(handle, BlockType::Index, compression)?;
        Ok(IndexBlock::new(block))
    }

    fn load(
        &mut self,
        handle: BlockHandle,
        block_type: BlockType,
        compression: CompressionType,
    ) -> Result<Block, ReadError> {
        let OpenTable { table, id } = self.table;
        if let Some(block) = table.cache.get_block(*id, handle.offset()) {
            return Ok(block);
        }
        if self.reads == Reads::Memory {
            return Err(ReadError::NotInMemory);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = File::open(&*table.path).map_err(|error| failed("read", &error))?;
                none.insert(file)
            }
        };
        let block = Block::from_file(file, handle, compression);
        let block = block.map_err(|error| failed("read", &error))?;
        if block.header.block_type != block_type {
            return Err(MALFORMED.into());
        }
        // The next step of what reads records once needs the same index again.
        if self.reads != Reads::Once || block_type == BlockType::Index {
            let block = block.clone();
            table.cache.insert_block(*id, handle.offset(), block);
        }
        Ok(block)
    }
}

/// The entries of a data block. It stands at an entry after the first call of [`advance`](Self::advance).
struct Entries {
    block: Block,
    /// So many entries share the beginning of a key.
    interval: u8,
    /// How many entries remain that may lack the beginning of their keys.
    remaining: u8,
    /// The key whose beginning they lack.
    base: Range<usize>,
    next: usize,
    key: Range<usize>,
    /// The key, if it is not in the block as a whole.
    joined: Option<Vec<u8>>,
    record: Option<Range<usize>>,
}

impl Entries {
    fn new(block: Block) -> Result<Self, StorageError> {
        let trailer = block.data.len().checked_sub(TRAILER_BYTES);
        let interval = trailer.and_then(|trailer| block.data.get(trailer));
        Ok(Self {
            interval: *interval.ok_or(MALFORMED)?,
            block,
            remaining: 0,
            base: 0..0,
            next: 0,
            key: 0..0,
            joined: None,
            record: None,
        })
    }

    fn key(&self) -> &[u8] {
        match &self.joined {
            Some(key) => key,
            None => self.bytes(&self.key),
        }
    }

    fn record(&self) -> Option<&[u8]> {
        self.record.as_ref().map(|record| self.bytes(record))
    }

    /// The ranges were compared with the length of the block.
    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.block.data.get(range.clone()).unwrap_or_default()
    }

    /// Goes to the next entry. Returns whether there is one.
    fn advance(&mut self) -> Result<bool, StorageError> {
        let mut reader = Reader {
            bytes: &self.block.data,
            at: self.next,
        };
        let kind = reader.byte().ok_or(MALFORMED)?;
        if kind == END_OF_ENTRIES {
            return Ok(false);
        }
        let entry = reader.entry(kind, self.remaining > 0).ok_or(MALFORMED)?;
        self.next = reader.at;
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                let shared = self.block.data.get(self.base.clone());
                let shared = shared.and_then(|base| base.get(..entry.shared));
                let mut joined = self.joined.take().unwrap_or_default();
                joined.clear();
                joined.extend_from_slice(shared.ok_or(MALFORMED)?);
                joined.extend_from_slice(self.bytes(&entry.key));
                self.joined = Some(joined);
            }
            None => {
                self.remaining = self.interval.saturating_sub(1);
                self.base = entry.key.clone();
                self.joined = None;
            }
        }
        self.key = entry.key;
        self.record = entry.record;
        Ok(true)
    }
}

struct Entry {
    /// How many bytes the key has in common with the base.
    shared: usize,
    key: Range<usize>,
    /// `None` if the entry removes the key.
    record: Option<Range<usize>>,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn entry(&mut self, kind: u8, is_truncated: bool) -> Option<Entry> {
        self.number()?; // the sequence number
        let shared = if is_truncated { self.number()? } else { 0 };
        let key = self.range()?;
        let record = match kind {
            KIND_RECORD => Some(self.range()?),
            KIND_REMOVED | KIND_REMOVED_ONCE => None,
            _ => return None,
        };
        Some(Entry {
            shared,
            key,
            record,
        })
    }

    /// A length, and so many bytes.
    fn range(&mut self) -> Option<Range<usize>> {
        let length = self.number()?;
        let start = self.at;
        self.at = start.checked_add(length)?;
        (self.at <= self.bytes.len()).then_some(start..self.at)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at)?;
        self.at += 1;
        Some(*byte)
    }

    /// A number as LEB128.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

const MALFORMED: StorageError = StorageError::corrupt("block of a table");
const HANDLES_AT_A_TIME: usize = 32;
const KIND_RECORD: u8 = 0;
const KIND_REMOVED: u8 = 1;
const KIND_REMOVED_ONCE: u8 = 2;
const END_OF_ENTRIES: u8 = 255;
const TRAILER_BYTES: usize = 31;
