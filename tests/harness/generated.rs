//! Parts of documents that tests generate.

use std::fs;
use std::path::Path;

/// Asserts that a document is as a test generates it. Where `variable` is in the environment, the document is written instead.
#[track_caller]
pub fn assert_generated(document: &Path, new: &str, variable: &str) {
    if std::env::var_os(variable).is_some() {
        fs::write(document, new).unwrap();
        return;
    }
    let text = fs::read_to_string(document).unwrap();
    assert_eq!(
        text, new,
        "run it again with {variable}=1, and read the difference as a user would"
    );
}
