//! What can be done with the folder of a server that does not run: check it, back it up, make one from a backup, and take tables
//! out and in as lines of JSON.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::engine::{Engine, Paging};
use crate::storage::{self, Durability, DurableStorage};
use crate::transfer;

/// The folder that a server keeps its tables in, while no server has it open.
///
/// What it does takes its time, and the thread: within a runtime it belongs into `spawn_blocking`.
///
/// ```
/// use tablesdk_server::{DataFolder, Durability, TableServer};
///
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let (tables, copy) = (place.path().join("tables"), place.path().join("copy"));
/// let server = TableServer::builder().data(&tables, Durability::Sync).in_process()?;
/// // … and when it has stopped:
/// drop(server);
///
/// let folder = DataFolder::new(&tables);
/// let report = folder.check(|_| {})?;
/// assert!(report.problems.is_empty());
///
/// let mut backup = Vec::new();
/// folder.backup(&mut backup, |_| {})?;
/// DataFolder::new(&copy).restore(backup.as_slice(), |_| {})?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DataFolder {
    path: PathBuf,
}

/// How far an operation on a [`DataFolder`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// So many bytes of files were read, since the last time that this was told.
    Bytes(u64),
    /// So many lines of an import are stored, and survive the loss of power: those from its start on.
    Lines(u64),
    /// So many records were read or written, since the start.
    Records(u64),
}

/// What [`DataFolder::check`] has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// How many tables there are.
    pub tables: u64,
    /// How many entities there are, those of tables that were deleted a moment ago included.
    pub entities: u64,
    /// What is worth knowing and no damage, as a sentence each.
    pub notes: Vec<String>,
    /// What is damaged, as a sentence each; nothing in a sound folder. Of very many, the first ones.
    pub problems: Vec<String>,
}

/// What an export or an import was about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transferred {
    /// How many tables there are in it.
    pub tables: u64,
    /// How many entities there are in all of them.
    pub entities: u64,
}

impl DataFolder {
    /// The folder at that path. Nothing is looked at yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of it, and says what is wrong: each file is compared with its checksum, each record is read, and what is stored
    /// twice is compared.
    ///
    /// Opens the folder as a server does, which cuts off what a crash left half written.
    ///
    /// # Errors
    ///
    /// When it cannot be looked at: a server has it open ([`io::ErrorKind::ResourceBusy`]), it is no folder of a server, or one
    /// of another format, or the disk says no. Damage is no error, but a problem in the report.
    pub fn check(&self, mut progress: impl FnMut(Progress)) -> io::Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut is_readable = true;
        match storage::check_journals(&self.path) {
            Ok(note) => report.notes.extend(note),
            Err(error) if is_damage(&error) => {
                report.problems.push(error.to_string());
                is_readable = false;
            }
            Err(error) => return Err(error),
        }
        if is_readable {
            match self.engine() {
                Ok(engine) => {
                    let findings =
                        engine.check_everything(|count| progress(Progress::Records(count)));
                    report.tables = findings.tables;
                    report.entities = findings.entities;
                    report.problems.extend(findings.problems);
                }
                Err(error) if is_damage(&error) => report.problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        let files = storage::check_files(&self.path, |bytes| progress(Progress::Bytes(bytes)))?;
        report.problems.extend(files);
        Ok(report)
    }

    /// Writes all of it to one file, or whatever else takes bytes, and returns how many records that was.
    ///
    /// [`TableServer::backup`](crate::TableServer::backup) does the same for a server that runs.
    ///
    /// # Errors
    ///
    /// When the folder cannot be opened, as for [`DataFolder::check`], is damaged ([`io::ErrorKind::InvalidData`]), or the bytes
    /// are not taken.
    pub fn backup(&self, to: impl Write, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
        storage::check_journals(&self.path)?;
        let engine = self.engine()?;
        engine.back_up(to, |count| progress(Progress::Records(count)))
    }

    /// Makes the folder from a backup, and returns how many records are in it. There must be no folder yet, or an empty one.
    ///
    /// The folder appears once all of the backup has been read and written: where this is interrupted, or the backup turns out
    /// to be damaged, there is none, but for what was written so far beside it, under its name with `.restoring` behind it,
    /// which the next attempt removes. A new folder is for its owner alone (mode 0700), an empty one keeps its mode.
    ///
    /// # Errors
    ///
    /// When there is something in the folder ([`io::ErrorKind::AlreadyExists`]), the backup is not whole
    /// ([`io::ErrorKind::InvalidData`]), or the disk says no.
    pub fn restore(&self, from: impl Read, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
        let shown = self.path.display();
        if let Ok(mut entries) = fs::read_dir(&self.path)
            && entries.next().is_some()
        {
            let message = format!("the folder {shown} is not empty: restore into a new one");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        if name.is_empty() {
            let message = format!("the folder {shown} has no name: give it by its name");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        name.push(".restoring");
        let draft = self.path.with_file_name(name);
        if draft.exists() {
            fs::remove_dir_all(&draft)?;
        }
        let storage = DurableStorage::open(&draft, Durability::Relaxed)?;
        let restored = storage::restore(
            from,
            &storage,
            |count| progress(Progress::Records(count)),
            |commit| commit.wait().map_err(io::Error::other),
        );
        // Syncs, and closes it.
        drop(storage);
        let count = match restored {
            Ok(count) => count,
            Err(error) => {
                let _ = fs::remove_dir_all(&draft);
                return Err(error);
            }
        };
        // It must be one that can be opened.
        drop(Self::new(&draft).engine()?);
        if let Ok(replaced) = fs::metadata(&self.path) {
            fs::set_permissions(&draft, replaced.permissions())?;
            fs::remove_dir(&self.path)?;
        }
        fs::rename(&draft, &self.path)?;
        storage::sync_parent(&self.path)?;
        Ok(count)
    }

    /// Writes the tables of an account and their entities as lines of JSON, each with all that says its types; the protocol
    /// crate's `wire::json_lines` has the format, and other programs read and write it, too. Stored access policies, service
    /// properties and the account itself are in a backup alone.
    ///
    /// Without an account, it is the one that has tables in the folder.
    ///
    /// # Errors
    ///
    /// As [`DataFolder::backup`]; when more than one account has tables, or the one named has none
    /// ([`io::ErrorKind::InvalidInput`]).
    pub fn export(
        &self,
        account: Option<&str>,
        to: impl Write,
        mut progress: impl FnMut(Progress),
    ) -> io::Result<Transferred> {
        storage::check_journals(&self.path)?;
        let engine = self.engine()?;
        let accounts = engine.accounts().map_err(io::Error::other)?;
        let refused = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        let account = match (account, accounts.as_slice()) {
            (Some(account), accounts) if accounts.iter().any(|known| known == account) => account,
            (None, [account]) => account,
            (_, []) => return refused("no account has tables in the folder".to_owned()),
            (None, _) => {
                let names = accounts.join(", ");
                return refused(format!("several accounts have tables, name one: {names}"));
            }
            (Some(account), _) => {
                let names = accounts.join(", ");
                return refused(format!(
                    "{account} has no tables in the folder, only {names}"
                ));
            }
        };
        let totals = transfer::export(&engine, account, to, |entities| {
            progress(Progress::Records(entities));
        })?;
        Ok(Transferred {
            tables: totals.tables,
            entities: totals.entities,
        })
    }

    /// Stores the tables and entities of an [export](DataFolder::export) in an account, beside what is there: tables are
    /// created unless they exist, entities inserted or replaced. They get new timestamps. The folder is made if it is not there.
    ///
    /// To go on with an import that was interrupted, skip as many lines as the last [`Progress::Lines`] told; to repeat it as a
    /// whole does no harm either.
    ///
    /// # Errors
    ///
    /// When a line is not one of an export, breaks a rule of the service, or the end is missing: the message names the line, and
    /// what stands before it may be stored. When the folder cannot be used, as [`DataFolder::backup`].
    pub fn import(
        &self,
        account: &str,
        from: impl io::BufRead,
        skip_lines: u64,
        mut progress: impl FnMut(Progress),
    ) -> io::Result<Transferred> {
        crate::builder::check_account(account)?;
        let engine = self.engine()?;
        let totals = transfer::import(&engine, account, from, skip_lines, |lines| {
            progress(Progress::Lines(lines));
        })?;
        Ok(Transferred {
            tables: totals.tables,
            entities: totals.entities,
        })
    }

    fn engine(&self) -> io::Result<Engine> {
        let storage = DurableStorage::open(&self.path, Durability::Sync)?;
        let engine = Engine::new(Box::new(storage), Arc::new(SystemClock), Paging::default());
        engine.map_err(|error| {
            let message = format!(
                "the data folder {} is damaged: {error}",
                self.path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }
}

/// Reads a backup to its end, keeps nothing of it, and returns how many records are in it.
///
/// # Errors
///
/// When it is not whole ([`io::ErrorKind::InvalidData`]), or cannot be read.
pub fn verify_backup(from: impl Read, mut progress: impl FnMut(Progress)) -> io::Result<u64> {
    let mut count = 0;
    storage::read_backup(from, |records| {
        count += u64::try_from(records.len()).unwrap_or_default();
        progress(Progress::Records(count));
        Ok(())
    })
}

/// A folder of another format is none that could be checked.
fn is_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("is damaged")
}
