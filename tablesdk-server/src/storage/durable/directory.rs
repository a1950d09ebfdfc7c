//! The data directory of a durable storage: its format, and the process that has it open.
//!
//! `FORMAT` is a line of text with a number; it is the first file that is written in a new data
//! directory. `LOCK` contains the process id of the process that opened the directory last, for
//! error messages, and is locked against a second process. `records` belongs to the embedded store.
//! An open data directory can be removed, moved or replaced while a process uses it. That process
//! would continue to write to unreachable files: [`Directory::check_in_place`] detects this.

use std::error::Error;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::private;
use crate::storage::is_exhausted;

/// A data directory of the right format.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Locked while the directory is open.
    lock: OnceLock<File>,
    /// Files that exist as long as the data directory, and their identities.
    landmarks: OnceLock<Vec<(PathBuf, FileId)>>,
    /// Held open, so that the system does not reuse its inode number.
    version: OnceLock<File>,
}

impl Directory {
    /// Creates the data directory, or checks that this version reads and writes its format.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let directory = Self::at(path);
        directory
            .make()
            .map_err(|error| directory.io("cannot be created", &error))?;
        if !directory.has_format()? {
            directory.write_format()?;
        }
        Ok(directory)
    }

    /// Checks that a path is a data directory, and creates none.
    pub(super) fn check_exists(path: &Path) -> io::Result<()> {
        let directory = Self::at(path);
        if directory.has_format()? {
            return Ok(());
        }
        let why = "is not a data directory: it has no file FORMAT";
        Err(directory.error(io::ErrorKind::NotFound, why))
    }

    fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            lock: OnceLock::new(),
            landmarks: OnceLock::new(),
            version: OnceLock::new(),
        }
    }

    /// Returns true if the directory has a file `FORMAT`, which must name the format of this
    /// version.
    fn has_format(&self) -> io::Result<bool> {
        match fs::read(self.format()) {
            Ok(text) => self.check_format(&text).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.io("cannot be read", &error)),
        }
    }

    fn make(&self) -> io::Result<()> {
        let missing = |directory: &&Path| !directory.as_os_str().is_empty() && !directory.exists();
        let made: Vec<_> = self.path.ancestors().take_while(missing).collect();
        private::create_dir_all(&self.path)?;
        made.into_iter().try_for_each(sync_parent)
    }

    /// The directory of the embedded store.
    pub(super) fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// A file that the embedded store writes once.
    fn store_version(&self) -> PathBuf {
        self.records().join("version")
    }

    /// Returns true if there is an embedded store, or if that is not known: opening the store shows
    /// it.
    pub(super) fn has_store(&self) -> bool {
        self.store_version().try_exists().unwrap_or(true)
    }

    /// Creates the directory of the embedded store. The store itself would create one that every
    /// user can read.
    pub(super) fn make_records(&self) -> io::Result<()> {
        let made = private::create_dir_all(&self.records());
        made.map_err(|error| self.io("cannot be written to", &error))
    }

    /// The path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the directory against other processes, before its contents are read.
    pub(super) fn lock(&self) -> io::Result<()> {
        let holder = private::options()
            .truncate(false)
            .open(self.lock_path())
            .map_err(|error| self.io("cannot be written to", &error))?;
        match holder.try_lock() {
            Ok(()) => {
                let _ = self.lock.set(holder);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(self.in_use()),
            Err(TryLockError::Error(error)) => Err(self.io("cannot be locked", &error)),
        }
    }

    /// Writes the number of this process, and syncs the names in the directory.
    pub(super) fn hold(&self) -> io::Result<()> {
        let text = std::process::id().to_string();
        let held = fs::write(self.lock_path(), text)
            .and_then(|()| sync_directory(&self.path))
            .and_then(|()| self.landmarks());
        let landmarks = held.map_err(|error| self.io("cannot be written to", &error))?;
        let _ = self.landmarks.set(landmarks);
        Ok(())
    }

    fn landmarks(&self) -> io::Result<Vec<(PathBuf, FileId)>> {
        let holder = match self.lock.get() {
            Some(locked) => locked.metadata()?,
            None => fs::metadata(self.lock_path())?,
        };
        let version = self.store_version();
        let file = File::open(&version)?;
        let id = file_id(&file.metadata()?);
        let _ = self.version.set(file);
        Ok(vec![(self.lock_path(), file_id(&holder)), (version, id)])
    }

    /// Checks that the path still names the directory that was opened. Other errors, such as a
    /// missing permission, are ignored.
    ///
    /// # Errors
    ///
    /// When it was removed, moved or replaced.
    pub(super) fn check_in_place(&self) -> io::Result<()> {
        use io::ErrorKind::{NotADirectory, NotFound};

        for (path, id) in self.landmarks.get().into_iter().flatten() {
            let is_in_place = match fs::metadata(path) {
                Ok(metadata) => file_id(&metadata) == *id,
                Err(error) => !matches!(error.kind(), NotADirectory | NotFound),
            };
            if !is_in_place {
                let why = "was removed, moved or replaced while it was open, and takes no more writes: stop the server, put the \
                           directory back or restore a backup, and start the server again";
                return Err(self.error(NotFound, why));
            }
        }
        Ok(())
    }

    fn in_use(&self) -> io::Error {
        let holder = fs::read_to_string(self.lock_path()).unwrap_or_default();
        let holder = match holder.trim().parse::<u32>() {
            Ok(id) => format!("process {id}"),
            Err(_) => "another process".to_owned(),
        };
        let why = format!("is in use by {holder}: one server at a time can have it");
        self.error(io::ErrorKind::ResourceBusy, &why)
    }

    /// The error for damaged contents.
    pub(super) fn damaged(&self, why: &str) -> io::Error {
        let why = format!("is damaged: {why}; a backup can be restored into another directory");
        self.error(io::ErrorKind::InvalidData, &why)
    }

    /// Opens some files and closes them again.
    ///
    /// # Errors
    ///
    /// When too many files are open for that.
    pub(super) fn probe_files(&self) -> io::Result<()> {
        let opened = (0..FILES_PROBED).map(|_| File::open(self.format()));
        match opened.collect::<io::Result<Vec<_>>>() {
            Err(error) if is_exhausted(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes as much as the embedded store writes for a table, and removes it.
    ///
    /// # Errors
    ///
    /// When the disk is full or does not take it for another reason, or too many files are open.
    pub(super) fn probe_disk(&self) -> io::Result<()> {
        let path = self.path.join("PROBE");
        let mut file = private::create_file(&path)?;
        // Whatever happens from here on, no file stays, where the system permits that.
        let removed = fs::remove_file(&path);
        // A disk that compresses needs as much room for it as for records.
        let mut bytes = vec![0; PROBE_BYTES / PROBE_PARTS];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let written = (0..PROBE_PARTS).try_for_each(|_| file.write_all(&bytes));
        let written = written.and_then(|()| file.sync_data());
        drop(file);
        removed.or_else(|_| fs::remove_file(&path))?;
        written
    }

    /// Why the embedded store could not be opened, as an error message for the operator.
    pub(super) fn explain(&self, error: fjall::Error) -> io::Error {
        // A file that cannot be opened is not damaged.
        if let Some(exhausted) = exhausted(&error) {
            return exhausted;
        }
        let why = match error {
            fjall::Error::Locked => return self.in_use(),
            fjall::Error::Io(error) => return self.io("cannot be opened", &error),
            error => format!("the store in it says {error}"),
        };
        self.damaged(&why)
    }

    fn format(&self) -> PathBuf {
        self.path.join("FORMAT")
    }

    fn lock_path(&self) -> PathBuf {
        self.path.join("LOCK")
    }

    fn check_format(&self, text: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(text);
        // Compared byte by byte: another line end was not written by this server.
        let line = text.strip_suffix('\n');
        let why = match line.unwrap_or(&text).strip_prefix(FORMAT_NAME) {
            Some(FORMAT_VERSION) if line.is_some() => return Ok(()),
            Some(version) => format!(
                "has format {:?}, as its file FORMAT says, and this version of the server reads and writes format {FORMAT_VERSION}",
                version.chars().take(20).collect::<String>()
            ),
            None => "is not one of this server: its file FORMAT says something else".to_owned(),
        };
        Err(self.error(io::ErrorKind::InvalidData, &why))
    }

    /// Only an empty directory becomes a data directory. The file is complete or absent.
    fn write_format(&self) -> io::Result<()> {
        let write = || {
            let draft = self.path.join("FORMAT.new");
            for entry in fs::read_dir(&self.path)? {
                // A process that was killed here left it.
                if entry?.path() != draft {
                    return Ok(false);
                }
            }
            let mut file = private::create_file(&draft)?;
            writeln!(file, "{FORMAT_NAME}{FORMAT_VERSION}")?;
            file.sync_all()?;
            fs::rename(draft, self.format())?;
            sync_directory(&self.path)?;
            Ok(true)
        };
        match write() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = "is not empty, and not one of this server: it has no file FORMAT";
                Err(self.error(io::ErrorKind::InvalidInput, why))
            }
            Err(error) => Err(self.io("cannot be written to", &error)),
        }
    }

    pub(super) fn io(&self, what: &str, error: &io::Error) -> io::Error {
        if let Some(exhausted) = exhausted(error) {
            return exhausted;
        }
        self.error(error.kind(), &format!("{what}: {error}"))
    }

    fn error(&self, kind: io::ErrorKind, what: &str) -> io::Error {
        io::Error::new(
            kind,
            format!("the data directory {} {what}", self.path.display()),
        )
    }
}

/// Unlocks the directory. To close the file is not enough: a process that this one has just started
/// holds it until it runs its program.
impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(file) = self.lock.get() {
            // What cannot be unlocked is unlocked when the file is closed.
            let _ = file.unlock();
        }
    }
}

/// The identity of a file: device and inode number.
#[cfg(unix)]
type FileId = (u64, u64);

/// On other systems, only its existence is checked.
#[cfg(not(unix))]
type FileId = ();

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn file_id(_: &Metadata) -> FileId {}

/// The error of the system, if too many open files caused an error.
fn exhausted(error: &(dyn Error + 'static)) -> Option<io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && is_exhausted(error)
        {
            return error.raw_os_error().map(io::Error::from_raw_os_error);
        }
        cause = error.source();
    }
    None
}

/// Syncs the name of a directory.
pub(crate) fn sync_parent(directory: &Path) -> io::Result<()> {
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Syncs the names in a directory, on systems where that is possible and necessary.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// With this number of free files, the store can be opened and write a table.
const FILES_PROBED: usize = 16;

/// The size of a table that was just in memory.
const PROBE_BYTES: usize = 16 * 1024 * 1024;
const PROBE_PARTS: usize = 16;

const FORMAT_NAME: &str = "tablesdk-server data, format ";
const FORMAT_VERSION: &str = "4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_just_started_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        directory.lock().unwrap();
        // As a new process has it, before it runs its program.
        let _inherited = directory.lock.get().unwrap().try_clone().unwrap();
        drop(directory);
        let again = Directory::open(place.path()).unwrap();
        again.lock().unwrap();
    }

    #[test]
    fn the_format_is_compared_byte_by_byte() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let written = fs::read(directory.format()).unwrap();
        directory.check_format(&written).unwrap();
        for index in 0..written.len() {
            for bit in 0..8 {
                let mut damaged = written.clone();
                damaged[index] ^= 1 << bit;
                let error = directory.check_format(&damaged).unwrap_err();
                assert!(
                    error.to_string().contains("FORMAT"),
                    "{index} {bit}: {error}"
                );
            }
        }
    }
}
