//! A small file that says how far something has come, replaced as a whole so that no crash leaves half of it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::AnyError;

/// Such a file: the first line says what it belongs to, the second how far it has come.
pub struct State {
    path: PathBuf,
    belongs_to: String,
}

impl State {
    /// The state of what `belongs_to` names, and how far it had come, if it was interrupted.
    pub fn open(path: PathBuf, belongs_to: String) -> Result<(Self, Option<String>), AnyError> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        let reached = match &text {
            None => None,
            Some(text) => match text.split_once('\n') {
                Some((first, reached)) if first == belongs_to => Some(reached.trim().to_owned()),
                _ => {
                    let path = path.display();
                    let problem = format!(
                        "{path} is the state of something else than {belongs_to}: remove it to start over"
                    );
                    return Err(problem.into());
                }
            },
        };
        Ok((Self { path, belongs_to }, reached))
    }

    /// Notes how far it has come. What lies before that must be safe already.
    pub fn note(&self, reached: &str) -> Result<(), AnyError> {
        let new = with_suffix(&self.path, ".new");
        let mut file = File::create(&new)?;
        write!(file, "{}\n{reached}\n", self.belongs_to)?;
        file.sync_all()?;
        Ok(fs::rename(new, &self.path)?)
    }

    /// All is done.
    pub fn remove(self) -> Result<(), AnyError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// The path with something at the end of its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
