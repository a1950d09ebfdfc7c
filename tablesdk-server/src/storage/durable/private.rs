//! Directories and files that only the account of the server may read.
//!
//! On Unix, directories are made with mode 0700 and files with 0600, or less where the umask says so; elsewhere they get what
//! their parent passes on. The mode of what exists is never changed: it is the operator's. The embedded store makes its files
//! with the umask alone, commonly 0644, below directories of mode 0700, which no other account can pass through. A umask of
//! 0077, which the unit for systemd sets, makes those files 0600 as well.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a directory, and those above it that are missing.
pub(super) fn create_dir_all(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a file, or empties the one that is there.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    options().truncate(true).open(path)
}

/// How a file is opened for writing, and made if it is not there.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
