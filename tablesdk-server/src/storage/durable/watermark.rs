//! `WATERMARK`: the number of the newest acknowledged, synced group of writes.
//!
//! It is a small file next to the embedded store, overwritten after each sync and never synced
//! itself. After the end of a process it is up to date; after a power loss its number may be too
//! low, but it is never too high. A data directory whose records end before that number has lost
//! writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::private;

/// The open file `WATERMARK`.
#[derive(Debug)]
pub(super) struct Watermark(File);

impl Watermark {
    /// Reads the number of the last group that is certainly durable; `None` without a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is malformed ([`io::ErrorKind::InvalidData`]).
    pub(super) fn read(directory: &Path) -> io::Result<Option<u64>> {
        match fs::read(path(directory)) {
            Ok(text) => parse(&text).map(Some).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "its checksum does not fit")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the file, which is created if it does not exist, and writes a number.
    pub(super) fn open(directory: &Path, number: u64) -> io::Result<Self> {
        let path = path(directory);
        if !path.try_exists()? {
            let draft = directory.join("WATERMARK.new");
            let mut file = private::create_file(&draft)?;
            file.write_all(text(number).as_bytes())?;
            file.sync_all()?;
            fs::rename(draft, &path)?;
        }
        let watermark = Self(OpenOptions::new().write(true).open(path)?);
        watermark.set(number)?;
        Ok(watermark)
    }

    /// Writes another number.
    pub(super) fn set(&self, number: u64) -> io::Result<()> {
        let mut file = &self.0;
        file.rewind()?;
        file.write_all(text(number).as_bytes())
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("WATERMARK")
}

/// Always of the same length, so that nothing of an earlier one is left.
fn text(number: u64) -> String {
    let number = format!("{number:020}");
    let checksum = xxh3_64(number.as_bytes());
    format!("{number} {checksum:016x}\n")
}

fn parse(bytes: &[u8]) -> Option<u64> {
    let found = std::str::from_utf8(bytes).ok()?;
    let number = found.get(..20)?.parse().ok()?;
    (text(number) == found).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Watermark::read(directory.path()).unwrap(), None);
        let watermark = Watermark::open(directory.path(), 7).unwrap();
        assert_eq!(Watermark::read(directory.path()).unwrap(), Some(7));
        watermark.set(u64::MAX).unwrap();
        assert_eq!(Watermark::read(directory.path()).unwrap(), Some(u64::MAX));
        let whole = fs::read(path(directory.path())).unwrap();
        for index in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[index] ^= 1 << bit;
                assert_eq!(parse(&damaged), None, "{index} {bit}");
            }
            assert_eq!(parse(&whole[..index]), None);
        }
    }
}
