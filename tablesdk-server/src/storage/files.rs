//! Open files: the number that a storage may need, and the errors that mean that too many are open.

use std::io;

/// The number of files that a storage may have open, for the limit of the process; `None` for no
/// limit.
///
/// An eighth of the limit, at least 64 and at most 512: 48 for the journals, for tables that are
/// written and merged, and for the files next to the embedded store, and the rest for tables that
/// stay open between reads. The rest of the process must leave this number free.
pub(crate) fn files_max(limit: Option<u64>) -> u64 {
    limit.map_or(FILES_MAX, |limit| (limit / 8).clamp(FILES_MIN, FILES_MAX))
}

/// The number of tables of the embedded store that stay open between reads.
#[cfg(feature = "durable")]
pub(super) fn tables_kept_open() -> usize {
    let files = files_max(process_files_max()).saturating_sub(FILES_OTHER);
    usize::try_from(files).unwrap_or(usize::MAX)
}

/// The process's limit of open files; `None` if there is none.
pub(crate) fn process_files_max() -> Option<u64> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    None
}

/// Returns true if an error means that too many files are open, in the process or in the system.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;

        let code = error.raw_os_error().map(Errno::from_raw_os_error);
        matches!(code, Some(Errno::MFILE | Errno::NFILE))
    }
    #[cfg(not(unix))]
    {
        // ERROR_TOO_MANY_OPEN_FILES of Windows.
        error.raw_os_error() == Some(4)
    }
}

const FILES_MIN: u64 = 64;
const FILES_MAX: u64 = 512;
#[cfg(feature = "durable")]
const FILES_OTHER: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_gets_a_share_of_the_limit() {
        for (limit, files) in [(64, 64), (1024, 128), (10_000, 512)] {
            assert_eq!(files_max(Some(limit)), files);
        }
        assert_eq!(files_max(None), 512);
    }
}
