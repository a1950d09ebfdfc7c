//! A backup: all records of a snapshot in one file, from which they can be restored into another
//! storage.
//!
//! Missing, changed or reordered data is detected: the checksum of each block includes its
//! position, and the end contains the number of records. `FORMAT.md` describes the layout. This
//! module does not know the meaning of the records.
//!
//! A backup contains records and not files of the store, so it is the same on every machine and for
//! every version of the store. A snapshot is cheap, so the server continues to serve while a backup
//! is written.

use std::io::{self, Read, Write};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Snapshot, Storage, WriteBatch};

/// Writes the records between two keys and returns their number. Before each block, calls
/// `progress` with the number so far, which can end the backup with an error.
pub(crate) fn write(
    snapshot: &dyn Snapshot,
    (start, end): (&[u8], &[u8]),
    mut to: impl Write,
    mut progress: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<u64> {
    to.write_all(HEAD)?;
    let mut blocks = 0;
    let mut count = 0_u64;
    let mut block = Vec::with_capacity(2 * BLOCK_BYTES);
    for record in snapshot.range(start, end) {
        let (key, record) = record.map_err(io::Error::other)?;
        for bytes in [&key, &record] {
            push_length(&mut block, bytes.len())?;
            block.extend_from_slice(bytes);
        }
        count += 1;
        if block.len() >= BLOCK_BYTES {
            progress(count)?;
            write_block(&mut to, &block, blocks)?;
            blocks += 1;
            block.clear();
        }
    }
    progress(count)?;
    if !block.is_empty() {
        write_block(&mut to, &block, blocks)?;
        blocks += 1;
    }
    // An empty block, and then the number of records.
    write_block(&mut to, &[], blocks)?;
    write_block(&mut to, &count.to_be_bytes(), blocks + 1)?;
    to.flush()?;
    Ok(count)
}

/// Reads a backup to its end, passes the records block by block to `visit`, and returns their
/// number.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] for everything but a complete backup, which may be detected only
/// at its end.
pub(crate) fn read(
    mut from: impl Read,
    mut visit: impl FnMut(Vec<(Bytes, Bytes)>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut head = [0; HEAD.len()];
    from.read_exact(&mut head)
        .map_err(|error| cut_short(error, "its beginning"))?;
    if head != *HEAD {
        return Err(invalid("is none, or one of another version of the server"));
    }
    let mut count = 0_u64;
    for place in 0.. {
        let block = read_block(&mut from, place)?;
        if block.is_empty() {
            let end = read_block(&mut from, place + 1)?;
            if end.as_slice() != count.to_be_bytes() {
                return Err(invalid("has not as many records as it says"));
            }
            if from.read(&mut [0])? != 0 {
                return Err(invalid("goes on behind its end"));
            }
            break;
        }
        let block = Bytes::from(block);
        let mut records = Vec::new();
        let mut at = 0;
        while at < block.len() {
            let key = take(&block, &mut at).ok_or_else(damaged)?;
            let record = take(&block, &mut at).ok_or_else(damaged)?;
            records.push((key, record));
        }
        count += u64::try_from(records.len()).unwrap_or_default();
        visit(records)?;
    }
    Ok(count)
}

/// Writes all records of a backup to an empty storage, which is complete only when this has
/// returned.
pub(crate) fn restore(
    from: impl Read,
    storage: &dyn Storage,
    mut progress: impl FnMut(u64),
) -> io::Result<u64> {
    let mut count = 0;
    let read = read(from, |records| {
        count += u64::try_from(records.len()).unwrap_or_default();
        let mut batch = WriteBatch::default();
        for (key, record) in records {
            batch.put(key, record);
        }
        let commit = storage.commit(batch).map_err(io::Error::other)?;
        if storage.has_backpressure() {
            commit.wait().map_err(io::Error::other)?;
        }
        progress(count);
        Ok(())
    })?;
    storage.wait_durable().wait().map_err(io::Error::other)?;
    Ok(read)
}

fn write_block(to: &mut impl Write, block: &[u8], place: u64) -> io::Result<()> {
    let mut head = Vec::with_capacity(BLOCK_HEAD_BYTES);
    push_length(&mut head, block.len())?;
    head.extend_from_slice(&xxh3_64_with_seed(block, place).to_be_bytes());
    to.write_all(&head)?;
    to.write_all(block)
}

fn read_block(from: &mut impl Read, place: u64) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    let mut checksum = [0; 8];
    for part in [&mut length[..], &mut checksum] {
        from.read_exact(part)
            .map_err(|error| cut_short(error, "a block"))?;
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > BLOCK_BYTES_MAX {
        return Err(damaged());
    }
    let mut block = vec![0; length];
    from.read_exact(&mut block)
        .map_err(|error| cut_short(error, "a block"))?;
    if xxh3_64_with_seed(&block, place) != u64::from_be_bytes(checksum) {
        return Err(damaged());
    }
    Ok(block)
}

fn push_length(out: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_be_bytes());
    Ok(())
}

fn take(block: &Bytes, at: &mut usize) -> Option<Bytes> {
    let (length, _) = block.get(*at..)?.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let start = *at + 4;
    let end = start
        .checked_add(length)
        .filter(|end| *end <= block.len())?;
    *at = end;
    Some(block.slice(start..end))
}

fn cut_short(error: io::Error, what: &str) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return invalid(&format!("ends in the middle of {what}"));
    }
    error
}

fn damaged() -> io::Error {
    invalid("is damaged: a checksum does not fit")
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the backup {what}"))
}

const HEAD: &[u8; 33] = b"tablesdk-server backup, format 2\n";
/// A block of this size is full.
const BLOCK_BYTES: usize = 1024 * 1024;
/// The maximum size of a block: one more record after it was almost full.
const BLOCK_BYTES_MAX: usize = 64 * 1024 * 1024;
const BLOCK_HEAD_BYTES: usize = 4 + 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    fn storage() -> MemoryStorage {
        let storage = MemoryStorage::default();
        let mut batch = WriteBatch::default();
        for number in 0..3_000_u32 {
            let key = number.to_be_bytes();
            batch.put(key, vec![7; usize::try_from(number).unwrap()]);
        }
        drop(storage.commit(batch).unwrap());
        storage
    }

    fn backup() -> Vec<u8> {
        let mut bytes = Vec::new();
        let all = (&[0][..], &[0xFF][..]);
        let count = write(&*storage().snapshot(), all, &mut bytes, |_| Ok(()));
        assert_eq!(count.unwrap(), 3_000);
        bytes
    }

    fn restored(bytes: &[u8]) -> io::Result<MemoryStorage> {
        let storage = MemoryStorage::default();
        restore(bytes, &storage, |_| {})?;
        Ok(storage)
    }

    #[test]
    fn a_backup_reads_back() {
        let restored = restored(&backup()).unwrap().snapshot();
        let expected = storage().snapshot();
        let all = |snapshot: &dyn Snapshot| {
            let records = snapshot.range(&[0], &[0xFF]).map(Result::unwrap);
            let owned = records.map(|(key, record)| (key.to_vec(), record.to_vec()));
            owned.collect::<Vec<_>>()
        };
        assert_eq!(all(&*restored), all(&*expected));
    }

    #[test]
    fn incomplete_and_damaged_backups_are_refused() {
        let whole = backup();
        let step = whole.len() / 30;
        for end in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            restored(&whole[..end]).err().unwrap();
        }
        for place in (0..whole.len()).step_by(step).chain([40, whole.len() - 1]) {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            restored(&damaged).err().unwrap();
        }
        let mut longer = whole;
        longer.push(0);
        restored(&longer).err().unwrap();
    }
}
