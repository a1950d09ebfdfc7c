//! What an export writes: a file, or a pipe.
//!
//! A file is written as `FILE.part`, and gets its name when it is complete. `FILE.export` contains how far it has come. A link to a file
//! stays: all three are where that file is. A pipe or a device gets what is written at once.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::output::{AnyError, UsageError};
use crate::state::{StateFile, is_file, is_standard, is_streamed, open_private, with_suffix};

/// What an export writes, with its progress of type `T`.
pub(crate) enum Target<T: Serialize> {
    File(Box<Draft<T>>),
    Stream(Stream),
}

/// A file that is not complete yet.
pub(crate) struct Draft<T: Serialize> {
    file: PathBuf,
    part: PathBuf,
    /// Created by the first write.
    out: Option<File>,
    state: StateFile<Saved<T>>,
    /// The length of what is written.
    bytes: u64,
}

/// How far the draft has come.
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    bytes: u64,
    #[serde(flatten)]
    progress: T,
}

/// What is no regular file.
pub(crate) struct Stream {
    name: String,
    out: Box<dyn Write + Send>,
}

impl<T: Serialize + DeserializeOwned> Target<T> {
    /// Opens the target of `command`, and returns the progress of an earlier run. Nothing is created.
    pub(crate) fn open(
        path: &Path,
        is_forced: bool,
        command: String,
    ) -> Result<(Self, Option<T>), AnyError> {
        if is_streamed(path) {
            return Ok((Self::Stream(Stream::open(path)?), None));
        }
        let (draft, progress) = Draft::open(complete(path, is_forced)?, command)?;
        Ok((Self::File(Box::new(draft)), progress))
    }
}

impl<T: Serialize> Target<T> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), AnyError> {
        match self {
            Self::File(draft) => draft.write(bytes).map_err(|error| draft.error(&error)),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    /// Saves the progress, which all that is written belongs to.
    pub(crate) fn save(&mut self, progress: T) -> Result<(), AnyError> {
        match self {
            Self::File(draft) => draft.save(progress),
            Self::Stream(_) => Ok(()),
        }
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), AnyError> {
        match self {
            Self::File(draft) => draft.finish(),
            Self::Stream(_) => Ok(()),
        }
    }
}

impl Stream {
    fn open(path: &Path) -> Result<Self, AnyError> {
        if is_standard(path) {
            return Ok(Self {
                name: "standard output".to_owned(),
                out: Box::new(io::stdout()),
            });
        }
        let name = path.display().to_string();
        match File::options().write(true).open(path) {
            Ok(file) => Ok(Self {
                name,
                out: Box::new(file),
            }),
            Err(error) => {
                Err(UsageError(format!("{name} cannot be written: {error}").into()).into())
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), AnyError> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| format!("{} cannot be written: {error}", self.name).into())
    }
}

impl<T: Serialize + DeserializeOwned> Draft<T> {
    fn open(file: PathBuf, command: String) -> Result<(Self, Option<T>), AnyError> {
        let (state, saved) = StateFile::<Saved<T>>::open(with_suffix(&file, ".export"), command)?;
        let part = with_suffix(&file, ".part");
        let has_part = is_file(&part)?;
        let (bytes, progress) = match saved {
            Some(saved) => (saved.bytes, Some(saved.progress)),
            None => (0, None),
        };
        if bytes > 0 && (!has_part || fs::metadata(&part)?.len() < bytes) {
            let (part, shown) = (part.display(), file.display());
            return Err(format!(
                "{part} is shorter than it was: remove it and {shown}.export to start from the beginning"
            )
            .into());
        }
        let draft = Self {
            file,
            part,
            out: None,
            state,
            bytes,
        };
        Ok((draft, progress))
    }
}

impl<T: Serialize> Draft<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                let mut out = open_private(&self.part)?;
                // What was written after the progress was saved is written again.
                out.set_len(self.bytes)?;
                out.seek(SeekFrom::End(0))?;
                none.insert(out)
            }
        };
        out.write_all(bytes)?;
        out.sync_data()?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn save(&mut self, progress: T) -> Result<(), AnyError> {
        let bytes = self.bytes;
        self.state.save(Saved { bytes, progress })
    }

    fn finish(self) -> Result<(), AnyError> {
        // It may have become something else meanwhile.
        is_file(&self.file)?;
        fs::rename(&self.part, &self.file).map_err(|error| self.error(&error))?;
        self.state.remove()
    }

    fn error(&self, error: &io::Error) -> AnyError {
        if self.bytes == 0 {
            // Nothing of the tables is in it. If it stays, the next run writes over it.
            let _ = fs::remove_file(&self.part);
        }
        format!("{} cannot be written: {error}", self.part.display()).into()
    }
}

/// The file to write: the one that a link leads to.
fn complete(file: &Path, is_forced: bool) -> Result<PathBuf, AnyError> {
    let shown = file.display();
    let exists = is_file(file)?;
    if exists && !is_forced {
        return Err(format!("{shown} exists: choose another name, or use --force").into());
    }
    if !fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink()) {
        return Ok(file.to_owned());
    }
    if !exists {
        let problem = format!("{shown} is a link to a file that does not exist: name that file");
        return Err(UsageError(problem.into()).into());
    }
    fs::canonicalize(file).map_err(|error| format!("{shown} cannot be read: {error}").into())
}
