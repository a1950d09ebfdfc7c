//! Parts of documents that tests generate.

use std::fs;
use std::path::Path;

/// Asserts that the part of a document between two marks is as a test generates it. Where `variable` is in the environment, the part is
/// written instead.
#[track_caller]
pub fn assert_generated(document: &Path, marks: [&str; 2], part: &str, variable: &str) {
    let [start, end] = marks;
    let text = fs::read_to_string(document).unwrap();
    let (before, rest) = text.split_once(start).expect("the document has the mark");
    let (_, after) = rest.split_once(end).expect("the part has an end");
    let new = format!("{before}{start}{part}{end}{after}");
    if std::env::var_os(variable).is_some() {
        fs::write(document, new).unwrap();
        return;
    }
    assert_eq!(
        text, new,
        "run it again with {variable}=1, and read the difference as a user would"
    );
}
