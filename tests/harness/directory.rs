//! Copies of data directories that are in use. A copy equals the state after a crash at that
//! moment.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Copies a directory. Zeros at the ends of files stay holes, and files keep their times of
/// modification.
///
/// # Panics
///
/// If the copy fails.
pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_directory(&path, &target);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut copy = File::create(&target).unwrap();
        copy.write_all(&bytes[..used(&bytes)]).unwrap();
        copy.set_len(bytes.len() as u64).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        copy.set_modified(modified).unwrap();
    }
}

/// The files in a directory and its subdirectories, in the order of their names.
///
/// # Panics
///
/// If a file or directory cannot be read.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The length of a file without the zeros at its end, which were never written.
///
/// # Panics
///
/// If a file or directory cannot be read.
pub fn used_length(path: &Path) -> u64 {
    used(&fs::read(path).unwrap()) as u64
}

fn used(bytes: &[u8]) -> usize {
    // Blocks are compared as a whole, for speed.
    let zeros = [0; 4096];
    let blocks = bytes.rchunks(zeros.len());
    let empty: usize = blocks
        .take_while(|block| **block == zeros[..block.len()])
        .map(<[u8]>::len)
        .sum();
    let rest = &bytes[..bytes.len() - empty];
    rest.iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1)
}
