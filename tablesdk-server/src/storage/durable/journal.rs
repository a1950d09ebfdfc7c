//! Reads the journals of the embedded store before the store itself opens them.
//!
//! At the first unreadable bytes of a journal, the store assumes that the rest is an incomplete write after a power loss, and
//! truncates the file there. This is correct for writes that were never acknowledged, but it loses all records after a damaged
//! byte. So each group of writes has a number, one more than that of the group before. This module reads the journals as they are
//! on the disk: which numbers they contain, and where they become unreadable. The server does so at each start, and so does `check`. It knows the format of fjall's journals, version 3,
//! but not the records in them.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::group_mark::{GROUP_KEY, GroupMark};

/// The contents of the journals of a data directory.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// The number of the last group in them.
    pub(super) last: Option<u64>,
    /// The unreadable end of the newest journal.
    pub(super) tail: Option<Tail>,
}

/// Bytes at the end of the newest journal that are not a complete group.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) path: PathBuf,
    /// Where the last complete group ends.
    pub(super) from: u64,
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is damaged at byte {}",
            self.path.display(),
            self.from
        )
    }
}

impl Tail {
    /// Truncates the file after its last complete group.
    pub(super) fn cut(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_len(self.from)?;
        file.sync_all()
    }
}

/// Why the journals are damaged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("{} cannot be read: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is damaged at byte {at}, with later writes behind it", path.display())]
    Broken { path: PathBuf, at: u64 },
    #[error("{} goes on with group {found} of the writes, where {expected} should follow: something before it is missing", path.display())]
    Gap {
        path: PathBuf,
        expected: u64,
        found: u64,
    },
}

/// Reads all journals in the directory of the store, the oldest first.
pub(super) fn read(directory: &Path) -> Result<Journals, Damage> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| Damage::Io { path, error }
    };
    let mut paths = Vec::new();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Journals::default()),
        Err(error) => return Err(io(directory)(error)),
    };
    for entry in entries {
        let path = entry.map_err(io(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
        paths.extend(id.map(|id| (id, path)));
    }
    paths.sort_unstable();
    let newest = paths.len().saturating_sub(1);
    let mut journals = Journals::default();
    let mut before = None;
    for (index, (_, path)) in paths.into_iter().enumerate() {
        let mut reader = Reader::open(&path).map_err(io(&path))?;
        let mut from = 0;
        while let Some(group) = reader.group().map_err(io(&path))? {
            if !group.stands_behind(before) {
                break;
            }
            before = Some(group.sequence);
            let number = group.number;
            let expected = journals.last.map_or(number, |last| last.saturating_add(1));
            if number != expected {
                let found = number;
                return Err(Damage::Gap {
                    path,
                    expected,
                    found,
                });
            }
            journals.last = Some(number);
            from = reader.at;
        }
        if reader.is_zero_from(from).map_err(io(&path))? {
            continue;
        }
        if index < newest {
            // A journal is complete and synced before the next one begins.
            return Err(Damage::Broken { path, at: from });
        }
        journals.tail = Some(Tail { path, from });
    }
    Ok(journals)
}

/// A complete group.
struct Group {
    number: u64,
    /// Its sequence number in the store. The checksum does not cover it, and the store ignores a group with too low a number.
    sequence: u64,
    /// The minimum of the sequence number.
    sequence_min: u64,
}

impl Group {
    /// Whether its sequence number is possible after a group with the number `before`.
    fn stands_behind(&self, before: Option<u64>) -> bool {
        let room = self.sequence_min..=self.sequence_min.saturating_add(SEQUENCE_ROOM);
        room.contains(&self.sequence) && before.is_none_or(|before| before < self.sequence)
    }
}

/// Reads a file once, from start to end.
struct Reader {
    input: BufReader<File>,
    /// The number of bytes that are not read yet.
    left: u64,
    /// The number of bytes read.
    at: u64,
    /// The bytes of the last read.
    bytes: Vec<u8>,
    checksum: Xxh3,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Self> {
        let input = File::open(path)?;
        Ok(Self {
            left: input.metadata()?.len(),
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            at: 0,
            bytes: Vec::new(),
            checksum: Xxh3::new(),
        })
    }

    /// The next group; `None` if it is incomplete.
    fn group(&mut self) -> io::Result<Option<Group>> {
        let Some([START, start @ ..]) = self.array::<13>()? else {
            return Ok(None);
        };
        let [c0, c1, c2, c3, sequence @ ..] = start;
        // It covers the items.
        self.checksum.reset();
        let mut mark = None;
        for _ in 0..u32::from_le_bytes([c0, c1, c2, c3]) {
            let Some(found) = self.item()? else {
                return Ok(None);
            };
            mark = mark.or(found);
        }
        let found = self.checksum.digest();
        let (Some([END]), Some(checksum), Some(MAGIC)) =
            (self.array()?, self.array()?, self.array()?)
        else {
            return Ok(None);
        };
        let is_whole = u64::from_le_bytes(checksum) == found;
        let mark = mark.filter(|_| is_whole);
        Ok(mark.map(|mark| Group {
            number: mark.number,
            sequence: u64::from_le_bytes(sequence),
            sequence_min: mark.sequence_min,
        }))
    }

    /// Reads an item. The inner value is the mark of the group, if the item is one.
    #[expect(clippy::option_option, reason = "the outer one is the end")]
    fn item(&mut self) -> io::Result<Option<Option<GroupMark>>> {
        let Some(start @ [ITEM, _, compression, head @ ..]) = self.array::<21>()? else {
            return Ok(None);
        };
        self.checksum.update(&start);
        // The keyspace and the uncompressed length are not needed.
        let [.., k0, k1, _, _, _, _, r0, r1, r2, r3] = head;
        let key_length = usize::from(u16::from_le_bytes([k0, k1]));
        let record_length = usize::try_from(u32::from_le_bytes([r0, r1, r2, r3]));
        let length = record_length.map_or(usize::MAX, |length| length.saturating_add(key_length));
        if !self.read(length)? {
            return Ok(None);
        }
        self.checksum.update(&self.bytes);
        Ok(Some(match self.bytes.split_at_checked(key_length) {
            Some((GROUP_KEY, record)) if compression == 0 => GroupMark::read(record),
            _ => None,
        }))
    }

    fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let is_read = self.read(N)?;
        Ok(is_read
            .then(|| self.bytes.as_slice().try_into().ok())
            .flatten())
    }

    /// Reads the next bytes; false if the file has fewer.
    fn read(&mut self, count: usize) -> io::Result<bool> {
        let length = as_length(count);
        if length > self.left {
            return Ok(false);
        }
        self.bytes.resize(count, 0);
        // This fails if the file was truncated in the meantime.
        self.input.read_exact(&mut self.bytes)?;
        self.left -= length;
        self.at += length;
        Ok(true)
    }

    /// Whether nothing was written from this position on: the store allocates files in advance.
    fn is_zero_from(&mut self, from: u64) -> io::Result<bool> {
        self.input.seek(SeekFrom::Start(from))?;
        self.left = self.input.get_ref().metadata()?.len().saturating_sub(from);
        while self.left > 0 {
            let left = usize::try_from(self.left).unwrap_or(usize::MAX);
            self.read(left.min(BUFFER_BYTES))?;
            if self.bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn as_length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
/// The size of a read of the file.
const BUFFER_BYTES: usize = 256 * 1024;
/// How far the store may advance its sequence numbers while a group waits to be written.
const SEQUENCE_ROOM: u64 = 1 << 16;
/// Ends each group.
const MAGIC: [u8; 4] = *b"FJL\x03";

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// A group as the store writes it, with a record of that length in front of its mark.
    fn group(number: u64, record_length: usize) -> Vec<u8> {
        let mark = GroupMark {
            number,
            sequence_min: number,
        };
        let record = vec![b'r'; record_length];
        let mut items = Vec::new();
        for (key, record) in [(&b"key"[..], &record[..]), (GROUP_KEY, &mark.record())] {
            items.extend([ITEM, 0, 0]);
            items.extend(1_u64.to_le_bytes());
            items.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
            let length = u32::try_from(record.len()).unwrap().to_le_bytes();
            items.extend([length, length].concat());
            items.extend([key, record].concat());
        }
        let mut bytes = vec![START];
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend(&items);
        bytes.push(END);
        bytes.extend(xxh3_64(&items).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Journals {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("0.jnl"), bytes).unwrap();
        read(directory.path()).unwrap()
    }

    #[test]
    fn groups_of_all_lengths_are_read() {
        // Among them records that end just before, on and behind the end of a window, and ones that no window holds.
        let near = (0..60).map(|less| BUFFER_BYTES - less);
        let lengths = [0, 1, 2 * BUFFER_BYTES, 5 * BUFFER_BYTES + 7].into_iter();
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for (number, length) in (1..).zip(lengths.chain(near)) {
            bytes.extend(group(number, length));
            ends.push(bytes.len());
        }
        let last = u64::try_from(ends.len() - 1).unwrap();
        for zeros in [0, 1, BUFFER_BYTES, 3 * BUFFER_BYTES + 1] {
            let journals = read_bytes(&[&bytes[..], &vec![0; zeros]].concat());
            assert_eq!(journals.last, Some(last), "{zeros}");
            assert!(journals.tail.is_none(), "{zeros}");
        }
        // A byte that is another one, or a cut, ends what is whole in front of its group.
        for index in [1, 3, 4, 10, 40] {
            let (start, end) = (ends[index], ends[index + 1]);
            for at in [start + 1, start + 3, start + 30, end - 20, end - 5, end - 1] {
                let mut damaged = bytes[..end].to_vec();
                damaged[at] ^= 0x10;
                for bytes in [&damaged[..], &bytes[..at]] {
                    let journals = read_bytes(bytes);
                    assert_eq!(journals.last, Some(u64::try_from(index).unwrap()), "{at}");
                    let tail = journals.tail.unwrap();
                    assert_eq!(tail.from, u64::try_from(start).unwrap(), "{at}");
                }
            }
        }
    }
}
