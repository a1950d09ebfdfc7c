//! Documents, and parts of documents, that tests generate.

use std::fs;
use std::path::Path;

/// Asserts that the part of a document between two marks is as a test generates it. Where
/// `variable` is in the environment, the part is written instead.
#[track_caller]
pub fn assert_generated(document: &Path, marks: [&str; 2], part: &str, variable: &str) {
    let [start, end] = marks;
    let text = fs::read_to_string(document).unwrap();
    let (before, rest) = text.split_once(start).expect("the document has the mark");
    let (_, after) = rest.split_once(end).expect("the part has an end");
    assert_generated_file(
        document,
        &format!("{before}{start}{part}{end}{after}"),
        variable,
    );
}

/// Asserts that a document is as a test generates it. Where `variable` is in the environment, the
/// document is written instead.
#[track_caller]
pub fn assert_generated_file(document: &Path, text: &str, variable: &str) {
    if std::env::var_os(variable).is_some() {
        fs::write(document, text).unwrap();
        return;
    }
    assert_eq!(
        fs::read_to_string(document).unwrap(),
        text,
        "run it again with {variable}=1, and read the difference as a user would"
    );
}
