//! The catalogs of the embedded store: which files hold its records, and what their checksums are.
//!
//! The store has a checksum of each catalog, and the catalog has a checksum of each file. The store verifies neither when it opens;
//! this module does. It knows where lsm-tree 3 stores the checksums, and nothing else of its files.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Returns a sentence for each catalog with a wrong checksum.
pub(super) fn check(records: &Path) -> io::Result<Vec<String>> {
    let mut damage = Vec::new();
    for directory in keyspaces(records)? {
        match read(&directory) {
            Ok(_) => {}
            Err(why) => damage.push(why),
        }
    }
    Ok(damage)
}

/// Returns a sentence for each table whose checksum is not that in the catalog. The store removes files that no catalog names: a crash
/// left them.
pub(super) fn check_files(
    records: &Path,
    mut progress: impl FnMut(u64),
) -> io::Result<Vec<String>> {
    let mut damage = Vec::new();
    for directory in keyspaces(records)? {
        let Ok(Some(catalog)) = read(&directory) else {
            continue;
        };
        let files = match fs::read_dir(directory.join("tables")) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for file in files {
            let path = file?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(id) = name.and_then(|name| name.parse::<u64>().ok()) else {
                continue;
            };
            // The catalog contains the number of the file, the kind of its checksum, and the checksum.
            let mut entry = id.to_le_bytes().to_vec();
            entry.push(0);
            let is_named = contains(&catalog, &entry);
            entry.extend(checksum_of(&path)?.to_le_bytes());
            if is_named && !contains(&catalog, &entry) {
                damage.push(format!(
                    "{} is damaged: its checksum does not fit",
                    path.display()
                ));
            }
            progress(fs::metadata(&path)?.len());
        }
    }
    Ok(damage)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn keyspaces(records: &Path) -> io::Result<Vec<PathBuf>> {
    let keyspaces = match fs::read_dir(records.join("keyspaces")) {
        Ok(keyspaces) => keyspaces,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    keyspaces.map(|keyspace| Ok(keyspace?.path())).collect()
}

/// The current catalog of a keyspace; `None` if a crash interrupted its creation.
fn read(keyspace: &Path) -> Result<Option<Vec<u8>>, String> {
    let current = keyspace.join("current");
    let found = match fs::read(&current) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", current.display())),
    };
    let Some((version, checksum)) = parse(&found) else {
        return Err(format!("{} is damaged", current.display()));
    };
    let path = keyspace.join(format!("v{version}"));
    let catalog = fs::read(&path).map_err(|error| {
        format!(
            "{}, which {} names, cannot be read: {error}",
            path.display(),
            current.display()
        )
    })?;
    if xxh3_128(&catalog) == checksum {
        return Ok(Some(catalog));
    }
    Err(format!(
        "{} is damaged, or {} is: the checksum of the one is not that in the other",
        path.display(),
        current.display()
    ))
}

/// The number of the current catalog, and its checksum.
fn parse(current: &[u8]) -> Option<(u64, u128)> {
    let (version, rest) = current.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let parsed = (u64::from_le_bytes(*version), u128::from_le_bytes(*checksum));
    // The kind of the checksum.
    (rest == [0]).then_some(parsed)
}

fn checksum_of(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut buffer)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(hasher.digest128());
        };
        hasher.update(read);
    }
}
