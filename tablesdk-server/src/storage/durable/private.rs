//! Directories and files that only the account of the server may read.
//!
//! On Unix, directories are made with mode 0700 and files with 0600, or less where the umask says
//! so; elsewhere they get what their parent passes on. The mode of what exists is never changed: it
//! is the operator's. The embedded store makes its files with the umask alone, commonly 0644, below
//! directories of mode 0700, which no other account can pass through. A umask of 0077, which the
//! unit for systemd sets, makes those files 0600 as well.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory and its missing parents.
pub(super) fn create_dir_all(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file, or truncates an existing one.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    options().truncate(true).open(path)
}

/// Options that open a file for writing, and create it if it does not exist.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
