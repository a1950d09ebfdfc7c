//! Checks a closed data directory: whether every byte of its files is as it was written.
//!
//! The engine checks the contents of the records.

use std::io;
use std::path::Path;

use super::directory::Directory;
use super::{catalog, recovery};

/// Checks the files that the server reads when it opens the data directory. Returns a sentence about incomplete writes, if there are
/// any.
///
/// # Errors
///
/// When the data directory is in use, does not exist or is damaged.
pub(crate) fn check_journals(path: &Path) -> io::Result<Option<String>> {
    let directory = Directory::existing(path)?;
    directory.lock()?;
    let inspection = recovery::inspect(&directory)?;
    let Some(tail) = inspection.journals.tail else {
        return Ok(None);
    };
    if directory.is_released() {
        // No write was in flight when it was closed cleanly.
        return Err(directory.damaged(&tail.to_string()));
    }
    Ok(Some(format!(
        "{} ends, from byte {} on, with incomplete writes of a crash, which were not acknowledged; they are removed when the data \
         directory is opened",
        tail.path.display(),
        tail.from
    )))
}

/// Checks all bytes of the files that hold records. Returns the problems as one sentence each. Periodically calls `progress` with
/// the number of bytes read since its last call.
pub(crate) fn check_files(path: &Path, progress: impl FnMut(u64)) -> io::Result<Vec<String>> {
    let directory = Directory::existing(path)?;
    directory.lock()?;
    let files = catalog::check_files(&directory.records(), progress);
    files.map_err(|error| directory.io("cannot be read", &error))
}
