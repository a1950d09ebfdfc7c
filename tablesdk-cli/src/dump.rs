//! The files of one dump: those that `AzCopy` 7 wrote for a table, or the one in which Azurite
//! stores its tables. This module knows their names, and nothing of what is in them.
//!
//! `AzCopy` wrote a manifest, `ACCOUNT_TABLE_TIME.manifest`, and data files,
//! `ACCOUNT_TABLE_TIME_RANGE_PART_CRC.json`. Ranges and parts are counted from zero: a gap in the
//! numbers shows a missing file, and so does a name in the manifest. The numbers alone do not show
//! a file that is missing at the end of a range, or ranges after the last one. The form of the
//! manifest is not known, and the checksums are not verified.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files of a dump, in their order.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dump {
    /// The table that the names of the files contain.
    pub table: Option<String>,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// Why the files of a dump are not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The folder or the manifest cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Io {
        /// The folder or the manifest.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A data file is missing.
    #[error(
        "{prefix}_{range}_{part}_….json is missing: the dump is not complete. Single data files can be imported"
    )]
    Missing {
        /// The name of the manifest.
        prefix: String,
        /// The number of the range of partition keys.
        range: u32,
        /// The number of the file in it.
        part: u32,
    },
    /// The folder has no dump.
    #[error(
        "{} is a folder, and has neither a manifest of AzCopy nor {AZURITE_FILE}: name a file",
        .0.display()
    )]
    Nothing(PathBuf),
    /// The folder has several dumps.
    #[error("{} has several dumps: name one of the manifests, such as {}", folder.display(), first.display())]
    Several {
        /// The folder.
        folder: PathBuf,
        /// A manifest.
        first: PathBuf,
    },
    /// Two data files have the same numbers.
    #[error("{one} and {other} are the same part of the dump: remove one of them")]
    Twice {
        /// A data file.
        one: String,
        /// Another one.
        other: String,
    },
}

impl Dump {
    /// The dump that a path means: a folder, a manifest or a data file. Any other file is one by
    /// itself.
    ///
    /// # Errors
    ///
    /// When a folder has no dump or several, or a data file is missing.
    pub fn find(path: &Path) -> Result<Self, DumpError> {
        if path.is_dir() {
            return Self::in_folder(path);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if let Some(prefix) = name.strip_suffix(MANIFEST) {
            let folder = path.parent().unwrap_or_else(|| Path::new(""));
            return Self::of_manifest(folder, prefix);
        }
        Ok(Self {
            table: DataFile::parse(name).and_then(|file| table_of(file.prefix)),
            files: vec![path.to_owned()],
        })
    }

    fn in_folder(folder: &Path) -> Result<Self, DumpError> {
        let names = names(folder)?;
        let mut manifests = names.iter().filter_map(|name| name.strip_suffix(MANIFEST));
        match (manifests.next(), manifests.next()) {
            (Some(prefix), None) => Self::of_manifest(folder, prefix),
            (Some(first), Some(_)) => Err(DumpError::Several {
                folder: folder.to_owned(),
                first: folder.join(format!("{first}{MANIFEST}")),
            }),
            (None, _) if names.iter().any(|name| name == AZURITE_FILE) => Ok(Self {
                table: None,
                files: vec![folder.join(AZURITE_FILE)],
            }),
            (None, _) => Err(DumpError::Nothing(folder.to_owned())),
        }
    }

    /// The data files of a manifest, all of which must be there.
    fn of_manifest(folder: &Path, prefix: &str) -> Result<Self, DumpError> {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let names = names(folder)?;
        let listed = listed(&folder.join(format!("{prefix}{MANIFEST}")))?;
        let mut found = BTreeMap::new();
        for name in &names {
            let Some(file) = DataFile::parse(name).filter(|file| file.prefix == prefix) else {
                continue;
            };
            if let Some(one) = found.insert((file.range, file.part), name) {
                return Err(DumpError::Twice {
                    one: one.clone(),
                    other: name.clone(),
                });
            }
        }
        let is_missing = |numbers: &(u32, u32)| !found.contains_key(numbers);
        let gap = first_gap(found.keys().copied());
        let missing = gap.or_else(|| listed.into_iter().filter(is_missing).min());
        if let Some((range, part)) = missing {
            let prefix = prefix.to_owned();
            return Err(DumpError::Missing {
                prefix,
                range,
                part,
            });
        }
        Ok(Self {
            table: table_of(prefix),
            files: found.values().map(|name| folder.join(name)).collect(),
        })
    }

    /// Reads all files, one after the other, with an end of line between them.
    pub fn reader(&self) -> impl Read + Send + use<> {
        DumpReader {
            current: None,
            left: self.files.iter().cloned().collect(),
        }
    }
}

/// The numbers of the first data file that is missing before others, or because there is none.
fn first_gap(found: impl Iterator<Item = (u32, u32)>) -> Option<(u32, u32)> {
    let mut last = None;
    for (range, part) in found {
        // After a file comes the next one of its range, or the first one of the next range.
        let expected = match last {
            None => (0, 0),
            Some((same, part)) if same == range => (range, part + 1),
            Some((before, _)) => (before + 1, 0),
        };
        if (range, part) != expected {
            return Some(expected);
        }
        last = Some((range, part));
    }
    last.is_none().then_some((0, 0))
}

/// The numbers of the data files that a manifest names, in whatever form it does.
fn listed(manifest: &Path) -> Result<Vec<(u32, u32)>, DumpError> {
    let failed = |error| DumpError::Io {
        path: manifest.to_owned(),
        error,
    };
    let mut text = Vec::new();
    let file = File::open(manifest).map_err(failed)?;
    let mut file = file.take(MANIFEST_BYTES_MAX + 1);
    let length = file.read_to_end(&mut text).map_err(failed)?;
    if length as u64 > MANIFEST_BYTES_MAX {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let text = String::from_utf8_lossy(&text);
    let names =
        text.split(|char: char| !char.is_alphanumeric() && !matches!(char, '_' | '.' | '-'));
    let files = names.filter_map(DataFile::parse);
    Ok(files.map(|file| (file.range, file.part)).collect())
}

/// The names of the files in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, DumpError> {
    let failed = |error| DumpError::Io {
        path: folder.to_owned(),
        error,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        // Another name is that of no dump.
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The parts of the name of a data file.
#[derive(Debug, PartialEq)]
struct DataFile<'n> {
    /// The name of its manifest.
    prefix: &'n str,
    range: u32,
    part: u32,
}

impl<'n> DataFile<'n> {
    fn parse(name: &'n str) -> Option<Self> {
        let (rest, crc) = name.strip_suffix(".json")?.rsplit_once('_')?;
        let is_crc = (1..=CRC_DIGITS_MAX).contains(&crc.len())
            && crc.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (rest, part) = rest.rsplit_once('_')?;
        let (prefix, range) = rest.rsplit_once('_')?;
        is_crc.then_some(Self {
            prefix,
            range: range.parse().ok()?,
            part: part.parse().ok()?,
        })
    }
}

/// The table in the name of a manifest, unless the user chose another name.
fn table_of(prefix: &str) -> Option<String> {
    let (rest, time) = prefix.rsplit_once('_')?;
    let (account, table) = rest.split_once('_')?;
    let (day, _) = time.split_once('T')?;
    let is_time = day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit());
    (is_time && !account.is_empty() && !table.is_empty()).then(|| table.to_owned())
}

struct DumpReader {
    current: Option<File>,
    left: VecDeque<PathBuf>,
}

impl Read for DumpReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.current else {
            let Some(path) = self.left.pop_front() else {
                return Ok(0);
            };
            self.current = Some(File::open(path)?);
            return self.read(bytes);
        };
        match file.read(bytes)? {
            0 if bytes.is_empty() || self.left.is_empty() => Ok(0),
            0 => {
                self.current = None;
                (&b"\n"[..]).read(bytes)
            }
            read => Ok(read),
        }
    }
}

const MANIFEST: &str = ".manifest";
const AZURITE_FILE: &str = "__azurite_db_table__.json";
/// A manifest is in memory as a whole.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;
/// The hexadecimal digits of 64 bits.
const CRC_DIGITS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "acct_People_20140903T051850.8128447Z";

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let name = name.replace('~', PREFIX);
            fs::write(folder.path().join(name), "x").unwrap();
        }
        folder
    }

    /// The numbers of the files, or the error.
    fn found(folder: &tempfile::TempDir, name: &str) -> Result<Vec<String>, String> {
        let path = folder.path().join(name.replace('~', PREFIX));
        let dump = Dump::find(&path).map_err(|error| error.to_string())?;
        let names = dump
            .files
            .iter()
            .map(|file| file.file_name().unwrap().to_string_lossy());
        Ok(names.map(|name| name.replace(PREFIX, "~")).collect())
    }

    #[test]
    fn the_data_files_of_a_manifest_are_found_in_their_order() {
        let names = [
            "~_0_10_AB.json",
            "~_1_0_0AB9AC200AB9AC20.json",
            "other_Table_20140903T051850Z_0_0_C3.json",
            "~_notes.json",
        ];
        let parts = (0..10).map(|part| format!("~_0_{part}_C3040FE8.json"));
        let parts: Vec<_> = parts.collect();
        let names = names.into_iter().chain(parts.iter().map(String::as_str));
        let names: Vec<_> = names.chain(["~.manifest"]).collect();
        let folder = folder(&names);
        let expected = parts.iter().map(String::as_str);
        let expected: Vec<_> = expected
            .chain(["~_0_10_AB.json", "~_1_0_0AB9AC200AB9AC20.json"])
            .collect();
        for path in ["", "~.manifest"] {
            assert_eq!(found(&folder, path).unwrap(), expected);
        }
        let dump = Dump::find(folder.path()).unwrap();
        assert_eq!(dump.table.as_deref(), Some("People"));
        let mut all = String::new();
        dump.reader().read_to_string(&mut all).unwrap();
        assert_eq!(all, ["x"; 12].join("\n"));
        // One of them names its table, too.
        assert_eq!(
            found(&folder, "~_0_10_AB.json").unwrap(),
            ["~_0_10_AB.json"]
        );
        let notes = Dump::find(&folder.path().join("notes.json")).unwrap();
        assert_eq!((notes.table, notes.files.len()), (None, 1));
    }

    #[test]
    fn a_dump_that_is_not_complete_is_refused() {
        for (names, problem) in [
            (&["~.manifest"][..], "~_0_0_….json is missing"),
            (&["~.manifest", "~_0_1_AB.json"], "~_0_0_….json is missing"),
            (
                &["~.manifest", "~_0_0_AB.json", "~_0_2_AB.json"],
                "~_0_1_….json is missing",
            ),
            (&["~.manifest", "~_1_0_AB.json"], "~_0_0_….json is missing"),
            (
                &["~.manifest", "~_0_0_AB.json", "~_2_0_AB.json"],
                "~_1_0_….json is missing",
            ),
            (
                &["~.manifest", "~_0_0_AB.json", "~_1_1_AB.json"],
                "~_1_0_….json is missing",
            ),
            (
                &["~.manifest", "~_0_0_AB.json", "~_0_0_AC.json"],
                "are the same part of the dump",
            ),
            (
                &["~.manifest", "b.manifest"],
                "has several dumps: name one of the manifests",
            ),
            (
                &["a.json"],
                "has neither a manifest of AzCopy nor __azurite_db_table__.json",
            ),
        ] {
            let error = found(&folder(names), "").unwrap_err().replace(PREFIX, "~");
            assert!(error.contains(problem), "{names:?}: {error}");
        }
    }

    #[test]
    fn a_data_file_that_the_manifest_names_is_needed() {
        let all = [
            "~_0_0_AB.json",
            "~_0_1_CD.json",
            "~_1_0_EF.json",
            "~_1_1_01.json",
        ];
        for (missing, problem) in [
            ("~_0_1_CD.json", "~_0_1_….json is missing"),
            ("~_1_1_01.json", "~_1_1_….json is missing"),
            ("", ""),
        ] {
            let names = all.iter().copied().filter(|name| *name != missing);
            let folder = folder(&names.chain(["~.manifest"]).collect::<Vec<_>>());
            let listed = all.map(|name| name.replace('~', PREFIX));
            let manifest = folder.path().join(format!("{PREFIX}{MANIFEST}"));
            for text in [
                serde_json::json!({"Files": listed}).to_string(),
                listed
                    .map(|name| format!("https://a/b/{name}\r\n"))
                    .concat(),
            ] {
                fs::write(&manifest, text).unwrap();
                match found(&folder, "") {
                    Ok(names) => assert_eq!((missing, names.len()), ("", 4)),
                    Err(error) => {
                        let error = error.replace(PREFIX, "~");
                        assert!(missing.len() > 1 && error.contains(problem), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_folder_of_azurite_has_one_file_and_a_manifest_may_have_any_name() {
        let azurite = folder(&[AZURITE_FILE, "__azurite_db_blob__.json"]);
        assert_eq!(found(&azurite, "").unwrap(), [AZURITE_FILE]);
        let named = folder(&["abc.manifest", "abc_0_0_AB.json"]);
        let dump = Dump::find(named.path()).unwrap();
        assert_eq!((dump.table, dump.files.len()), (None, 1));
    }
}
