//! Removes a group of writes that a loss of power has torn, where the store does not do so itself.
//!
//! The store takes the first bytes of a journal that it cannot read for its end. But of a group of
//! several pages, one inside of a record may be missing while all others are there: then the store
//! reads the group to its end, finds that its checksum is wrong, and refuses the journal. Such a
//! group was not synced. Without its end, the store removes it like any other that is incomplete.
//!
//! The end of a group is found by its [mark](group_mark): in a journal, a record follows its key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::group_mark;

/// The newest journal of a store that refuses to open.
pub(super) struct TornTail {
    path: PathBuf,
    /// The content of the file, without the zeros at the end.
    bytes: Vec<u8>,
    length: u64,
    /// Where the groups end that may be torn, the last one first.
    ends: Vec<usize>,
    /// How many of them are cut off next.
    next: usize,
}

impl TornTail {
    /// Reads the newest journal in the directory of the store. All groups up to `required` must
    /// stay. `None` without a journal.
    pub(super) fn read(directory: &Path, required: u64) -> io::Result<Option<Self>> {
        let mut newest = None;
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let number = name.and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
            newest = newest.max(number.map(|number| (number, path)));
        }
        let Some((_, path)) = newest else {
            return Ok(None);
        };
        let mut bytes = fs::read(&path)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        // What is not used yet, almost all of it at first.
        let unused = bytes
            .rchunks_exact(PAGE.len())
            .take_while(|page| **page == PAGE);
        bytes.truncate(bytes.len() - unused.count() * PAGE.len());
        let mut ends: Vec<_> = group_mark::find(&bytes, required).collect();
        ends.reverse();
        Ok(Some(Self {
            path,
            bytes,
            length,
            ends,
            next: 1,
        }))
    }

    /// Cuts the end of the last group off, and then those of two, four and so on: with relaxed
    /// durability, several may be torn. Returns whether there was one more to cut. If not, the
    /// journal is as it was.
    pub(super) fn cut(&mut self) -> io::Result<bool> {
        let left = self.ends.len();
        let is_over = self.next >= left.saturating_mul(2);
        let file = OpenOptions::new().write(true).open(&self.path)?;
        if is_over {
            self.put_back(&file)?;
        } else {
            let count = self.next.min(left);
            self.next *= 2;
            let end = self.ends.get(count - 1).copied().unwrap_or_default();
            file.set_len(u64::try_from(end).unwrap_or_default())?;
            tracing::warn!(
                file = %self.path.display(),
                from = end,
                groups = count,
                "the last writes before a crash, which were not acknowledged, are incomplete and removed"
            );
        }
        file.sync_all()?;
        Ok(!is_over)
    }

    fn put_back(&self, mut file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        let cut_off = usize::try_from(length).ok();
        let cut_off = cut_off.and_then(|length| self.bytes.get(length..));
        file.seek(SeekFrom::Start(length))?;
        file.write_all(cut_off.unwrap_or_default())?;
        file.set_len(self.length)
    }
}

static PAGE: [u8; 4096] = [0; 4096];
