//! The output of an export: a file, or a pipe.
//!
//! A file is written as `FILE.part`, and gets its name when it is complete. `FILE.export` contains
//! how far it has come. A link to a file stays: all three are where that file is. A pipe or a
//! device gets what is written at once. CSV is made of the lines at the end: those for a pipe wait
//! in a temporary file.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tablesdk_cli::sheet::{SheetError, Spool, Style, write_sheet};

use crate::error::{AnyError, UsageError};
use crate::state::{
    StateFile, create_private, draft_beside, is_alone, is_file, is_standard, is_streamed,
    open_private, with_suffix,
};

/// The output of an export, with its progress of type `T`.
pub(crate) enum Target<T: Serialize> {
    File(Box<Draft<T>>),
    Stream(Stream),
}

/// A file that is not complete yet.
pub(crate) struct Draft<T: Serialize> {
    file: PathBuf,
    part: PathBuf,
    /// Created by the first write, unless it continues.
    out: Option<File>,
    state: StateFile<Saved<T>>,
    /// The length of what is written.
    bytes: u64,
    sheet: Option<Style>,
}

/// How far the draft has come.
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    bytes: u64,
    #[serde(flatten)]
    progress: T,
}

/// An output that is not a regular file.
pub(crate) struct Stream {
    name: String,
    out: Box<dyn Write + Send>,
    /// The lines of what becomes CSV.
    sheet: Option<(Spool, Style)>,
}

impl<T: Serialize + DeserializeOwned> Target<T> {
    /// Opens the target of `command`, and returns the progress of an earlier run. Nothing is
    /// created. With a style, it becomes CSV.
    pub(crate) fn open(
        path: &Path,
        is_forced: bool,
        sheet: Option<Style>,
        command: String,
    ) -> Result<(Self, Option<T>), AnyError> {
        if is_streamed(path) {
            return Ok((Self::Stream(Stream::open(path, sheet)?), None));
        }
        let (draft, progress) = Draft::open(complete(path, is_forced)?, sheet, command)?;
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
            Self::Stream(stream) => stream.finish(),
        }
    }
}

impl Stream {
    fn open(path: &Path, sheet: Option<Style>) -> Result<Self, AnyError> {
        let (name, out): (_, Box<dyn Write + Send>) = if is_standard(path) {
            ("standard output".to_owned(), Box::new(io::stdout()))
        } else {
            let name = path.display().to_string();
            match File::options().write(true).open(path) {
                Ok(file) => (name, Box::new(file)),
                Err(error) => {
                    let problem = format!("{name} cannot be written: {error}");
                    return Err(UsageError(problem.into()).into());
                }
            }
        };
        let sheet = sheet.map(|style| Spool::new().map(|spool| (spool, style)));
        let sheet = sheet.transpose()?;
        Ok(Self { name, out, sheet })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), AnyError> {
        if let Some((spool, _)) = &mut self.sheet {
            return Ok(spool.write_all(bytes)?);
        }
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| format!("{} cannot be written: {error}", self.name).into())
    }

    fn finish(self) -> Result<(), AnyError> {
        let Some((spool, style)) = self.sheet else {
            return Ok(());
        };
        let written = spool.write_sheet(&[], self.out, style);
        written.map_err(|error| format!("{} cannot be written: {error}", self.name).into())
    }
}

impl<T: Serialize + DeserializeOwned> Draft<T> {
    fn open(
        file: PathBuf,
        sheet: Option<Style>,
        command: String,
    ) -> Result<(Self, Option<T>), AnyError> {
        let (state, saved) = StateFile::<Saved<T>>::open(with_suffix(&file, ".export"), command)?;
        let part = with_suffix(&file, ".part");
        let mut draft = Self {
            file,
            part,
            out: None,
            state,
            bytes: 0,
            sheet,
        };
        let Some(Saved { bytes, progress }) = saved else {
            return match fs::symlink_metadata(&draft.part) {
                Ok(_) => Err(draft.in_the_way()),
                Err(_) => Ok((draft, None)),
            };
        };
        draft.bytes = bytes;
        draft.continue_part()?;
        Ok((draft, Some(progress)))
    }
}

impl<T: Serialize> Draft<T> {
    /// Opens the part of an earlier run.
    fn continue_part(&mut self) -> Result<(), AnyError> {
        let (part, shown) = (self.part.display(), self.file.display());
        let cannot = |error| {
            format!(
                "{part} cannot be continued: {error}; remove it and {shown}.export to start from the beginning"
            )
        };
        let mut out = match open_private(&self.part) {
            Ok(out) if !is_alone(&out, &self.part).map_err(cannot)? => {
                return Err(format!("{part} is being written by another export").into());
            }
            Ok(out) if out.metadata().map_err(cannot)?.len() >= self.bytes => out,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(cannot(error).into());
            }
            _ => {
                return Err(format!(
                    "{part} is shorter than it was: remove it and {shown}.export to start from the beginning"
                )
                .into());
            }
        };
        // What was written after the progress was saved is written again.
        out.set_len(self.bytes).map_err(cannot)?;
        out.seek(SeekFrom::End(0)).map_err(cannot)?;
        self.out = Some(out);
        Ok(())
    }

    /// The error about a part that no progress belongs to.
    fn in_the_way(&self) -> AnyError {
        let (part, shown) = (self.part.display(), self.file.display());
        format!(
            "{part} exists, and {shown}.export does not: if no other export is writing it, remove it, or choose another name than {shown}"
        )
        .into()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                let out = none.insert(create_private(&self.part)?);
                is_alone(out, &self.part)?;
                out
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

    fn finish(mut self) -> Result<(), AnyError> {
        // It may have become something else meanwhile.
        is_file(&self.file)?;
        let Some(style) = self.sheet else {
            let named = fs::rename(&self.part, &self.file);
            named.map_err(|error| self.error(&error))?;
            return self.state.remove();
        };
        if let Some(lines) = &mut self.out {
            // If this fails, it is written again from the lines.
            let written = write_csv(lines, &self.file, style);
            let shown = self.file.display();
            written.map_err(|error| format!("{shown} cannot be written: {error}"))?;
        }
        self.state.remove()?;
        Ok(fs::remove_file(&self.part)?)
    }

    fn error(&self, error: &io::Error) -> AnyError {
        if self.out.is_none() && error.kind() == io::ErrorKind::AlreadyExists {
            return self.in_the_way();
        }
        if self.bytes == 0 && self.out.is_some() {
            // Nothing of the tables is in it. If it stays, the next run writes over it.
            let _ = fs::remove_file(&self.part);
        }
        format!("{} cannot be written: {error}", self.part.display()).into()
    }
}

/// Makes a file of CSV of the lines.
fn write_csv(lines: &mut File, file: &Path, style: Style) -> Result<(), SheetError> {
    let mut csv = draft_beside(file)?;
    write_sheet(lines, &[], &mut csv, style)?;
    csv.as_file().sync_all()?;
    csv.persist(file).map_err(|error| error.error)?;
    Ok(())
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
