//! What the journals of the embedded store hold, found out before the store itself looks at them.
//!
//! The store takes the first bytes of a journal that it cannot read for the end of what was written when the power went, and
//! cuts the file there, whatever follows. That is right for what nobody was told of, and loses everything behind a damaged byte.
//! So each group of writes carries a number, one more than the one before, and here the journals are read as they lie on the
//! disk: which numbers they hold, and where they stop to make sense. Knows the form of fjall's journals, version 3, but none of
//! the records in them.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::{GROUP_KEY, GroupMark};

/// What the journals of a folder hold.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// The number of the last group in them.
    pub(super) last: Option<u64>,
    /// Where the newest journal stops to make sense before its end.
    pub(super) tail: Option<Tail>,
}

/// Bytes at the end of the newest journal that are not a whole group.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) path: PathBuf,
    /// Where the last whole group ends.
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
    /// Cuts the file where it stops to make sense.
    pub(super) fn cut(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_len(self.from)?;
        file.sync_all()
    }
}

/// Why the journals cannot be what was written.
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

/// Reads all journals in a folder of the store, the oldest first.
pub(super) fn read(folder: &Path) -> Result<Journals, Damage> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| Damage::Io { path, error }
    };
    let mut paths = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Journals::default()),
        Err(error) => return Err(io(folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(io(folder))?.path();
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
            // A journal is synced as a whole before the next one begins.
            return Err(Damage::Broken { path, at: from });
        }
        journals.tail = Some(Tail { path, from });
    }
    Ok(journals)
}

/// A whole group.
struct Group {
    number: u64,
    /// Its place among all that the store did: not in the checksum, and what is too low the store takes for written already.
    sequence: u64,
    /// The place that it could have at the least.
    sequence_min: u64,
}

impl Group {
    /// Whether its place can be right, behind a group that has that one.
    fn stands_behind(&self, before: Option<u64>) -> bool {
        let room = self.sequence_min..=self.sequence_min.saturating_add(SEQUENCE_ROOM);
        room.contains(&self.sequence) && before.is_none_or(|before| before < self.sequence)
    }
}

struct Reader {
    input: BufReader<File>,
    length: u64,
    at: u64,
    checksum: Xxh3,
    buffer: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            length: file.metadata()?.len(),
            input: BufReader::with_capacity(256 * 1024, file),
            at: 0,
            checksum: Xxh3::new(),
            buffer: Vec::new(),
        })
    }

    /// The next group; `None` where there is no whole one.
    fn group(&mut self) -> io::Result<Option<Group>> {
        let (Some([START]), Some(count), Some(sequence)) =
            (self.array()?, self.array()?, self.array()?)
        else {
            return Ok(None);
        };
        self.checksum.reset();
        let mut mark = None;
        for _ in 0..u32::from_le_bytes(count) {
            let Some(found) = self.item()? else {
                return Ok(None);
            };
            mark = mark.or(found);
        }
        // What is between the first item and here.
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

    /// Reads an item; within it, the mark of the group where that is what it is.
    #[expect(clippy::option_option, reason = "the outer one is the end")]
    fn item(&mut self) -> io::Result<Option<Option<GroupMark>>> {
        let Some([ITEM, _, compression]) = self.array()? else {
            return Ok(None);
        };
        // The keyspace, and how long the record is once it is no longer compressed.
        let (Some(_), Some(key_length), Some(_), Some(record_length)) = (
            self.array::<8>()?,
            self.array()?,
            self.array::<4>()?,
            self.array()?,
        ) else {
            return Ok(None);
        };
        let key_length = usize::from(u16::from_le_bytes(key_length));
        let record_length = usize::try_from(u32::from_le_bytes(record_length));
        let length = record_length.map_or(usize::MAX, |length| length.saturating_add(key_length));
        if !self.fill(length)? {
            return Ok(None);
        }
        self.checksum.update(&self.buffer);
        Ok(Some(match self.buffer.split_at_checked(key_length) {
            Some((GROUP_KEY, record)) if compression == 0 => GroupMark::read(record),
            _ => None,
        }))
    }

    fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        Ok(if self.fill(N)? {
            self.checksum.update(&self.buffer);
            self.buffer.as_slice().try_into().ok()
        } else {
            None
        })
    }

    /// Takes the next bytes into the buffer, if there are so many.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        let left = self.length.saturating_sub(self.at);
        let count_as_length = u64::try_from(count).unwrap_or(u64::MAX);
        if count_as_length > left {
            return Ok(false);
        }
        self.buffer.resize(count, 0);
        self.input.read_exact(&mut self.buffer)?;
        self.at += count_as_length;
        Ok(true)
    }

    /// Whether nothing was ever written from there on: the file was made longer than it had to be.
    fn is_zero_from(&mut self, from: u64) -> io::Result<bool> {
        use io::Seek as _;

        self.input.seek(io::SeekFrom::Start(from))?;
        self.at = from;
        while self.at < self.length {
            let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
            self.fill(left.min(ZEROS.len()))?;
            if ZEROS.get(..self.buffer.len()) != Some(&self.buffer) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const ZEROS: &[u8] = &[0; 64 * 1024];
/// How far the store may go on by itself while a group waits to be written.
const SEQUENCE_ROOM: u64 = 1 << 16;
/// Ends each group.
const MAGIC: [u8; 4] = *b"FJL\x03";
