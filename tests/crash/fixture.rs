//! Data directories that earlier versions wrote: this version reads them, or reports that it
//! cannot.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use harness::directory::copy_directory;
use tablesdk_server::DataDirectory;

use crate::{content, lines_of_content};

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

#[tokio::test]
async fn a_directory_of_format_4_is_read() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("directory");
    copy_directory(&fixtures().join("directory-format-4"), &directory);
    // Empty directories are not kept in the repository.
    fs::create_dir_all(directory.join("records/keyspaces/1/tables")).unwrap();
    let report = DataDirectory::new(&directory).check(|_| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.tables, report.entities), (2, 3));
    let expected = fs::read_to_string(fixtures().join("directory-format-4.jsonl")).unwrap();
    assert_eq!(content(&directory), lines_of_content(&expected));
}

#[test]
fn directories_of_other_formats_are_refused() {
    let place = tempfile::tempdir().unwrap();
    for format in [1, 2, 3, 5] {
        let directory = place.path().join(format.to_string());
        copy_directory(&fixtures().join("directory-format-4"), &directory);
        let text = format!("tablesdk-server data, format {format}\n");
        fs::write(directory.join("FORMAT"), text).unwrap();
        let error = DataDirectory::new(&directory).check(|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let expected = format!("has format \"{format}\"");
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(error.to_string().contains(&directory.display().to_string()));
    }
}
