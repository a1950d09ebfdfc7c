//! The progress of a command in a file, from which the next run continues.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tempfile::NamedTempFile;

use crate::error::{AnyError, UsageError};

/// The progress of a command, of type `T`, in a file that is always replaced as a whole.
pub(crate) struct StateFile<T: Serialize> {
    path: PathBuf,
    /// The command that the progress belongs to.
    command: String,
    /// Progress that is not in the file yet.
    unsaved: Option<T>,
    saved_at: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct Content<T> {
    command: String,
    progress: T,
}

impl<T: Serialize + DeserializeOwned> StateFile<T> {
    /// Opens the state of `command`. Returns the progress of an earlier run.
    pub(crate) fn open(path: PathBuf, command: String) -> Result<(Self, Option<T>), AnyError> {
        let shown = path.display();
        // To read a pipe could wait for ever.
        is_file(&path)?;
        let progress = match fs::read(&path) {
            Ok(json) => {
                let content: Content<T> = serde_json::from_slice(&json)
                    .map_err(|error| format!("{shown} is not the state of a command: {error}"))?;
                if content.command != command {
                    return Err(format!(
                        "{shown} belongs to another command, to the {}: remove it to start from the beginning",
                        content.command
                    )
                    .into());
                }
                Some(content.progress)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{shown} cannot be read: {error}").into()),
        };
        let state = Self {
            path,
            command,
            unsaved: None,
            saved_at: None,
        };
        Ok((state, progress))
    }
}

impl<T: Serialize> StateFile<T> {
    /// Saves the progress. Everything before it must be durable.
    pub(crate) fn save(&mut self, progress: T) -> Result<(), AnyError> {
        self.unsaved = Some(progress);
        self.write()
            .map_err(|error| format!("{} cannot be written: {error}", self.path.display()).into())
    }

    /// Saves the progress, at most once a second. The last progress is saved when the state is
    /// dropped.
    pub(crate) fn save_sometimes(&mut self, progress: T) -> io::Result<()> {
        self.unsaved = Some(progress);
        match self.saved_at {
            Some(at) if at.elapsed() < Duration::from_secs(1) => Ok(()),
            _ => self.write(),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(progress) = &self.unsaved else {
            return Ok(());
        };
        let content = Content {
            command: self.command.clone(),
            progress,
        };
        let mut draft = draft_beside(&self.path)?;
        draft.write_all(&serde_json::to_vec(&content)?)?;
        draft.as_file().sync_all()?;
        draft.persist(&self.path).map_err(|error| error.error)?;
        self.unsaved = None;
        self.saved_at = Some(Instant::now());
        Ok(())
    }

    /// Removes the file: the command is complete.
    pub(crate) fn remove(mut self) -> Result<(), AnyError> {
        self.unsaved = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Saves the last progress of a command that failed or was interrupted.
impl<T: Serialize> Drop for StateFile<T> {
    fn drop(&mut self) {
        // If this fails, the file has an earlier progress.
        let _ = self.write();
    }
}

/// Returns true if a path means standard input, or standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    let names = ["-", "/dev/stdin", "/dev/stdout", "/dev/fd/0", "/dev/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

/// Returns true if a path means a pipe, a device or a terminal. Data that is read or written there
/// cannot be continued, and no file may replace it.
pub(crate) fn is_streamed(path: &Path) -> bool {
    let is_other = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    is_standard(path) || fs::metadata(path).is_ok_and(is_other)
}

/// Returns true if there is a file of that name. Anything else, such as a pipe or a device, is an
/// error: a rename would replace it.
pub(crate) fn is_file(path: &Path) -> Result<bool, AnyError> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(UsageError(
            format!(
                "{shown} exists and is not a regular file: choose another name, since nothing else is replaced"
            )
            .into(),
        )
        .into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{shown} cannot be read: {error}").into()),
    }
}

/// A new file for its owner only, in the folder of another, which it will replace. Its name is
/// random, so that nothing is in its way.
pub(crate) fn draft_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mut prefix = path.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".new")
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))
}

/// Creates a file that only its owner can read. What has the name already, such as a link, is an
/// error.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens such a file of an earlier run. A link is an error, and so is a file of another user, whose
/// permissions cannot be set.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NO_LINK_AND_NO_WAIT);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

#[cfg(unix)]
const NO_LINK_AND_NO_WAIT: i32 = {
    let flags = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK);
    flags.bits().cast_signed()
};

/// Returns true if no other process writes the file of that name. No other process can until this
/// one closes it.
#[cfg(unix)]
pub(crate) fn is_alone(file: &File, path: &Path) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    let locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    // Some file systems have no locks.
    if locked == Err(rustix::io::Errno::WOULDBLOCK) {
        return Ok(false);
    }
    // The process that had the lock may have given the file another name.
    let held = id_of(&file.metadata()?);
    Ok(fs::symlink_metadata(path).is_ok_and(|found| id_of(&found) == held))
}

#[cfg(unix)]
fn id_of(found: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

/// The same. Such a system keeps no other process from the file.
#[cfg(not(unix))]
pub(crate) const fn is_alone(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The path with a suffix after the file name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
