//! The folder of a durable storage: which format it has, and who has it open.
//!
//! `FORMAT` is a line of text with a number, written when the folder is made and before anything else is in it; `HOLDER` is the
//! number of the process that opened it last, for the sake of an error message; `records` belongs to the embedded store, whose
//! lock is what really keeps a second process out.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A folder of the right format.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder, or finds out that its format is the one that this version reads and writes.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let folder = Self {
            path: path.to_owned(),
        };
        folder
            .make()
            .map_err(|error| folder.io("cannot be made", &error))?;
        match fs::read(folder.format()) {
            Ok(text) => folder.check_format(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.write_format()?,
            Err(error) => return Err(folder.io("cannot be read", &error)),
        }
        Ok(folder)
    }

    fn make(&self) -> io::Result<()> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made: Vec<_> = self.path.ancestors().take_while(missing).collect();
        fs::create_dir_all(&self.path)?;
        for folder in made {
            match folder.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent)?,
                _ => sync_folder(Path::new("."))?,
            }
        }
        Ok(())
    }

    /// Where the embedded store keeps its files.
    pub(super) fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// Notes that this process has it open, and makes the names in it last.
    pub(super) fn hold(&self) -> io::Result<()> {
        let text = std::process::id().to_string();
        let held = fs::write(self.holder(), text).and_then(|()| sync_folder(&self.path));
        held.map_err(|error| self.io("cannot be written to", &error))
    }

    /// Why the embedded store could not be opened, in the words of whoever chose the folder.
    pub(super) fn explain(&self, error: fjall::Error) -> io::Error {
        let (kind, why) = match error {
            fjall::Error::Locked => {
                let holder = fs::read_to_string(self.holder()).unwrap_or_default();
                let holder = match holder.trim().parse::<u32>() {
                    Ok(id) => format!("process {id}"),
                    Err(_) => "another process".to_owned(),
                };
                let why = format!("is in use by {holder}: one server at a time can have it");
                (io::ErrorKind::ResourceBusy, why)
            }
            fjall::Error::Io(error) => return self.io("cannot be opened", &error),
            error => (
                io::ErrorKind::InvalidData,
                format!("is damaged, or not a folder of this server: {error}"),
            ),
        };
        self.error(kind, &why)
    }

    fn format(&self) -> PathBuf {
        self.path.join("FORMAT")
    }

    fn holder(&self) -> PathBuf {
        self.path.join("HOLDER")
    }

    fn check_format(&self, text: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(text);
        let why = match text.strip_prefix(FORMAT_NAME).map(str::trim) {
            Some(FORMAT_VERSION) => return Ok(()),
            Some(version) => format!(
                "has format {:?}, and this version of the server reads and writes format {FORMAT_VERSION}",
                version.chars().take(20).collect::<String>()
            ),
            None => "is not one of this server: its file FORMAT says something else".to_owned(),
        };
        Err(self.error(io::ErrorKind::InvalidData, &why))
    }

    /// Only a folder with nothing in it becomes one of ours. The file is there as a whole or not at all.
    fn write_format(&self) -> io::Result<()> {
        let write = || {
            let draft = self.path.join("FORMAT.new");
            for entry in fs::read_dir(&self.path)? {
                // A process that was killed right here left it.
                if entry?.path() != draft {
                    return Ok(false);
                }
            }
            let mut file = File::create(&draft)?;
            writeln!(file, "{FORMAT_NAME}{FORMAT_VERSION}")?;
            file.sync_all()?;
            fs::rename(draft, self.format())?;
            sync_folder(&self.path)?;
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

    fn io(&self, what: &str, error: &io::Error) -> io::Error {
        self.error(error.kind(), &format!("{what}: {error}"))
    }

    fn error(&self, kind: io::ErrorKind, what: &str) -> io::Error {
        io::Error::new(
            kind,
            format!("the data folder {} {what}", self.path.display()),
        )
    }
}

/// Makes names in a folder last. Not every system can, and those that cannot need not.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

const FORMAT_NAME: &str = "tablesdk-server data, format ";
const FORMAT_VERSION: &str = "1";
