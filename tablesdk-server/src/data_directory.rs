//! Operations on the data directory of a stopped server: check, backup and restore.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::{Engine, Paging};
use crate::storage::{self, Durability, DurableStorage};
use crate::time::clock::SystemClock;

/// The data directory of a server, while no server has it open.
///
/// The methods block the thread and can take long: within an async runtime, call them in
/// `spawn_blocking`.
///
/// ```
/// use tablesdk_server::{DataDirectory, Durability, TableServer};
///
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let (tables, copy) = (place.path().join("tables"), place.path().join("copy"));
/// let server = TableServer::builder().data(&tables, Durability::Sync).in_process()?;
/// // … and when it has stopped:
/// drop(server);
///
/// let directory = DataDirectory::new(&tables);
/// let report = directory.check(|_| {})?;
/// assert!(report.problems.is_empty());
///
/// let mut backup = Vec::new();
/// directory.backup(&mut backup, |_| {})?;
/// DataDirectory::new(&copy).restore(backup.as_slice(), |_| {})?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DataDirectory {
    path: PathBuf,
}

/// The progress of an operation on a [`DataDirectory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The number of records read or written since the start.
    Records(u64),
}

/// The result of [`DataDirectory::check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The number of tables.
    pub tables: u64,
    /// The number of entities, including those of deleted tables that are not removed yet.
    pub entities: u64,
    /// The damage found, as one sentence each; empty for an undamaged data directory. If there are
    /// very many problems, only the first ones are listed.
    pub problems: Vec<String>,
}

impl DataDirectory {
    /// The data directory at a path. Nothing is read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all data and reports damage: it reads each record, whose checksum the embedded store
    /// verifies, and compares data that is stored twice.
    ///
    /// It opens the data directory as a server does. The store then cuts off what it cannot read at
    /// the end of a journal, such as a write that a crash left incomplete: copy a damaged directory
    /// before you examine it.
    ///
    /// # Errors
    ///
    /// When the check cannot run: a server has the directory open
    /// ([`io::ErrorKind::ResourceBusy`]), it is not a data directory, it has another format, or the
    /// disk returns an error. Damage is not an error, but a problem in the report.
    pub fn check(&self, mut progress: impl FnMut(Progress)) -> io::Result<CheckReport> {
        let engine = match self.engine() {
            Ok(engine) => engine,
            Err(error) if is_damage(&error) => {
                return Ok(CheckReport {
                    problems: vec![error.to_string()],
                    ..CheckReport::default()
                });
            }
            Err(error) => return Err(error),
        };
        let findings = engine.check_records(|count| progress(Progress::Records(count)));
        Ok(CheckReport {
            tables: findings.tables,
            entities: findings.entities,
            problems: findings.problems,
        })
    }

    /// Writes a backup of all data to a writer, such as a file, and returns the number of records.
    ///
    /// [`TableServer::backup`](crate::TableServer::backup) does the same for a running server.
    ///
    /// # Errors
    ///
    /// When the data directory cannot be opened, as for [`DataDirectory::check`], when it is
    /// damaged ([`io::ErrorKind::InvalidData`]), or when the writer returns an error.
    pub fn backup(&self, to: impl Write, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
        let engine = self.engine()?;
        engine.back_up(to, |count| progress(Progress::Records(count)))
    }

    /// Creates the data directory from a backup, and returns the number of records. The directory
    /// must be empty or must not exist.
    ///
    /// The data directory appears only after the whole backup has been read and written. Until
    /// then, the data is in a directory next to it, with the suffix `.restoring` after its name. If
    /// the restore is interrupted, that directory may remain, and the next attempt removes it. A
    /// new data directory is accessible to its owner only (mode 0700); an empty one keeps its mode.
    ///
    /// # Errors
    ///
    /// When the directory is not empty ([`io::ErrorKind::AlreadyExists`]), the backup is incomplete
    /// or damaged ([`io::ErrorKind::InvalidData`]), or the disk returns an error.
    pub fn restore(&self, from: impl Read, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
        let shown = self.path.display();
        if let Ok(mut entries) = fs::read_dir(&self.path)
            && entries.next().is_some()
        {
            let message = format!("the directory {shown} is not empty: restore into a new one");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        if name.is_empty() {
            let message = format!("the directory {shown} has no name: give it by its name");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        name.push(".restoring");
        let draft = self.path.with_file_name(name);
        if draft.exists() {
            fs::remove_dir_all(&draft)?;
        }
        let storage = DurableStorage::open(&draft, Durability::Relaxed)?;
        let restored = storage::restore(from, &storage, |count| progress(Progress::Records(count)));
        // Syncs, and closes it.
        drop(storage);
        let count = match restored {
            Ok(count) => count,
            Err(error) => {
                let _ = fs::remove_dir_all(&draft);
                return Err(error);
            }
        };
        // Verifies that the restored data directory can be opened.
        drop(Self::new(&draft).engine()?);
        if let Ok(replaced) = fs::metadata(&self.path) {
            fs::set_permissions(&draft, replaced.permissions())?;
            fs::remove_dir(&self.path)?;
        }
        fs::rename(&draft, &self.path)?;
        storage::sync_parent(&self.path)?;
        Ok(count)
    }

    fn engine(&self) -> io::Result<Engine> {
        storage::check_exists(&self.path)?;
        let storage = DurableStorage::open(&self.path, Durability::Sync)?;
        let engine = Engine::new(Box::new(storage), Arc::new(SystemClock), Paging::default());
        engine.map_err(|error| {
            let message = format!(
                "the data directory {} is damaged: {error}",
                self.path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }
}

/// Reads a whole backup without storing it, and returns the number of records.
///
/// # Errors
///
/// When the backup is incomplete or damaged ([`io::ErrorKind::InvalidData`]), or cannot be read.
pub fn verify_backup(from: impl Read, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
    let mut count = 0;
    storage::read_backup(from, |records| {
        count += u64::try_from(records.len()).unwrap_or_default();
        progress(Progress::Records(count));
        Ok(())
    })
}

/// Returns true if an error means damage. Another format is not damage: such a directory cannot be
/// checked.
fn is_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("is damaged")
}
